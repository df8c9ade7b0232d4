//! Claim, renew and release.

use std::sync::Arc;
use std::time::Duration;

use bellwether_backend::lock;
use bellwether_core::{Bid, Boot, ElectionName, Grant, Outcome, ReleaseOptions, Seen, StoreError, Timing};

use super::Shared;
use super::session::{Number, Session};
use crate::answer::{Answer, ElectionView, Refusal};
use crate::command::{Act, Campaign, Command, ReserveFor};
use crate::errors::{refused, senseless, unavailable};

/// How often a claim opens another session because the one it had has ended. Twice in a row ends in an error: the cluster does not keep
/// what it has just opened.
const TRIES: usize = 2;

impl Shared {
    pub(super) async fn claim(self: Arc<Self>, on: ElectionName, bid: Bid) -> Outcome<Grant> {
        for _ in 0..TRIES {
            let session = match self.session(bid.ttl).await {
                Ok(session) => session,
                // Nothing of the claim itself has left.
                Err(error) => return Outcome::failed(error),
            };
            match self.claim_in(&session, &on, &bid).await {
                Ok(Answer::Granted { epoch, after_crash }) => {
                    return Outcome::Done(Grant {
                        epoch,
                        incarnation: bid.who.incarnation,
                        ttl: bid.ttl,
                        counted_from: bid.sent,
                        after_crash,
                    });
                }
                Ok(Answer::Denied(view)) => return Outcome::Denied(self.denied_by(&view, &bid)),
                Ok(Answer::Refused(Refusal::NoSuchSession)) => self.ended(&session),
                Ok(Answer::Refused(refusal)) => return Outcome::failed(refused(&refusal)),
                Ok(_) => return Outcome::Unknown(senseless()),
                Err(error) => return Outcome::failed(error),
            }
        }
        Outcome::Unknown(unavailable(
            "the session ended before it was used: check the load of the cluster's nodes",
        ))
    }

    async fn claim_in(
        &self,
        session: &Arc<Session>,
        on: &ElectionName,
        bid: &Bid,
    ) -> Result<Answer, StoreError> {
        let campaign = Campaign {
            on: on.clone(),
            who: bid.who.clone(),
            floor: bid.floor,
            priority: bid.priority,
            metadata: bid.metadata.clone(),
            cooldown: bid.cooldown,
            danger_reclaim: bid.danger_reclaim,
            wall: self.link.clock().wall(),
        };
        let incarnation = bid.who.incarnation;
        let number = session.number().await;
        lock(&self.candidates).claims(on, incarnation, &number, bid.sent);
        let answer = self.act(&number, Act::Campaign(campaign)).await;
        let mut candidates = lock(&self.candidates);
        let claim = (session.id, number.sequence);
        match &answer {
            Ok(Answer::Granted { epoch, .. }) => {
                candidates.answered(on, incarnation, claim, Some((*epoch, bid.sent)));
            }
            Ok(Answer::Denied(_)) => candidates.answered(on, incarnation, claim, None),
            Ok(_) | Err(_) => candidates.unanswered(on, incarnation, bid.sent),
        }
        answer
    }

    /// A denial, by this machine's clock. Where nobody leads, the election is kept for another for a moment.
    fn denied_by(&self, view: &ElectionView, bid: &Bid) -> Seen {
        let mut seen = view.seen();
        let is_kept = view.holder.is_none() && view.reserved_for.as_ref().is_some_and(|id| *id != bid.who.id);
        if let Some(span) = view.reservation.filter(|_| is_kept) {
            seen.free_at = Some(self.link.clock().boot() + span);
        }
        seen
    }

    pub(super) async fn renew(&self, on: &ElectionName, grant: &Grant, sent: Boot) -> Outcome<Grant> {
        // Where the session is over, so is every grant of it.
        let Some(session) = lock(&self.candidates).led_in(on, grant) else {
            return Outcome::Denied(Seen::nothing());
        };
        let beat = session.renewed(&self.link, (on, grant.epoch), grant.counted_from, sent).await;
        let beat = match beat {
            Ok(beat) => beat,
            Err(error) => return Outcome::failed(error),
        };
        if beat.is_end() {
            self.ended(&session);
            return Outcome::Denied(Seen::nothing());
        }
        // Looked up again: it may have been released meanwhile.
        let mut candidates = lock(&self.candidates);
        if candidates.led_in(on, grant).is_none() {
            return Outcome::Denied(Seen::nothing());
        }
        if !beat.proves(on, grant.epoch) {
            // Ended by hand, or taken over by another start of the same id.
            candidates.released(on, grant.epoch, grant.incarnation);
            return Outcome::Denied(Seen::nothing());
        }
        candidates.renewed(on, grant, beat.left);
        Outcome::Done(Grant { counted_from: beat.left, ..grant.clone() })
    }

    pub(super) async fn release(
        self: Arc<Self>,
        on: ElectionName,
        grant: Grant,
        how: ReleaseOptions,
    ) -> Outcome<()> {
        let known = lock(&self.candidates).session_of(&on, grant.incarnation);
        let session = match known.or_else(|| self.session_now(grant.ttl)).filter(|session| !session.is_over())
        {
            Some(session) => session,
            // No session, no grant; but the grant may be of another connection, and the cluster knows.
            None => match self.session(grant.ttl).await {
                Ok(session) => session,
                Err(error) => return Outcome::failed(error),
            },
        };
        let span = Timing::reservation(grant.ttl);
        let resign = Act::Resign {
            on: on.clone(),
            epoch: grant.epoch,
            incarnation: grant.incarnation,
            reserve_for: how.reserve_for.map(|id| ReserveFor { id, span }),
            cooldown: how.cooldown,
        };
        let number = session.number().await;
        let answer = self.act(&number, resign).await;
        let over = || lock(&self.candidates).released(&on, grant.epoch, grant.incarnation);
        match answer {
            Ok(Answer::Done) => {
                over();
                Outcome::Done(())
            }
            Ok(Answer::Denied(view)) => {
                over();
                Outcome::Denied(view.seen())
            }
            Ok(Answer::Refused(Refusal::NoSuchSession)) => {
                self.ended(&session);
                Outcome::Denied(Seen::nothing())
            }
            Ok(Answer::Refused(refusal)) => Outcome::failed(refused(&refusal)),
            Ok(_) => Outcome::Unknown(senseless()),
            Err(error) => Outcome::failed(error),
        }
    }

    /// Sends a command of a session until it is answered. Every try has the same number.
    pub(super) async fn act(&self, number: &Number, act: Act) -> Result<Answer, StoreError> {
        let command = Command::InSession {
            session: number.session.id,
            sequence: number.sequence,
            answered_below: number.answered_below(),
            act,
        };
        self.propose(&command, number.session.limit()).await
    }
}

/// The pause between two looks at what a session leads and who waits in it.
pub(super) fn interval(ttl: Duration) -> Duration {
    ttl / 3
}
