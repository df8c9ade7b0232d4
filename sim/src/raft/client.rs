//! The client of one process: its session, its numbered commands, its calls.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_core::{
    Bid, Boot, Call, ElectionName, ErrorKind, Grant, Input, Outcome, ReleaseOptions, Request, Seen, Signal,
    StoreError, Timing, Wall,
};
use bellwether_raft::answer::{Answer, ElectionView, Refusal};
use bellwether_raft::command::{Act, AskLine, Campaign, Command, ReserveFor, Sequence, SessionId};

/// Where an answer goes: the process, which life of it, and which of its calls.
pub(super) type Return = (usize, u32, u64);

/// Something on its way to the cluster.
#[derive(Clone, Debug)]
pub(super) enum Ask {
    Command(Vec<u8>),
    KeepAlive(SessionId),
    Read,
}

/// Something on its way back.
#[derive(Clone, Debug)]
pub(super) enum Reply {
    Answer(Answer),
    /// The session lives; this is what a node shows of the election.
    Kept(ElectionView),
    /// There is no such session.
    Ended,
    View(ElectionView),
    /// No leader here.
    NotNow,
}

/// What a call is for.
#[derive(Clone, Debug)]
pub(super) enum Want {
    Open,
    Claim(Call, Bid),
    Renew(Call, Grant),
    Release(Call),
    Observe(Call),
    Request(Call),
    Beat,
    Retire,
}

/// A call without an answer.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) want: Want,
    pub(super) ask: Ask,
    left: Boot,
    sequence: Option<u64>,
}

#[derive(Default)]
pub(super) struct Client {
    session: Option<SessionId>,
    opening: bool,
    /// Claims that wait for a session.
    unsent: Vec<(Call, Bid)>,
    pub(super) waiting: BTreeMap<u64, Waiting>,
    tokens: u64,
    sequence: u64,
    in_flight: BTreeSet<u64>,
    /// The campaigns of the candidate that takes part just now.
    campaigns: BTreeSet<u64>,
    /// A candidate has left, and the cluster has not confirmed that it knows.
    pub(super) unretired: Option<bellwether_core::Candidate>,
}

impl Client {
    pub(super) fn has_session(&self) -> bool {
        self.session.is_some()
    }

    /// Opens a session, unless there is one or one is on its way.
    pub(super) fn open(&mut self, now: Boot, nonce: u128, ttl: std::time::Duration) -> Option<u64> {
        if self.session.is_some() || self.opening {
            return None;
        }
        self.opening = true;
        let command = Command::OpenSession { nonce, ttl, label: "sim".to_owned() };
        Some(self.wait(now, Want::Open, Ask::Command(command.encode()), None))
    }

    /// A claim; `None` while it waits for a session.
    pub(super) fn claim(&mut self, now: Boot, on: &ElectionName, call: Call, bid: Bid) -> Option<u64> {
        if self.session.is_none() {
            self.unsent.push((call, bid));
            return None;
        }
        let campaign = Campaign {
            on: on.clone(),
            who: bid.who.clone(),
            floor: bid.floor,
            priority: bid.priority,
            metadata: bid.metadata.clone(),
            cooldown: bid.cooldown,
            danger_reclaim: bid.danger_reclaim,
            wall: Wall::default(),
        };
        self.campaigns.insert(self.sequence + 1);
        self.act(now, Want::Claim(call, bid), Act::Campaign(campaign))
    }

    pub(super) fn unsent(&mut self) -> Vec<(Call, Bid)> {
        std::mem::take(&mut self.unsent)
    }

    pub(super) fn renew(&mut self, now: Boot, call: Call, grant: Grant) -> Option<u64> {
        let session = self.session?;
        Some(self.wait(now, Want::Renew(call, grant), Ask::KeepAlive(session), None))
    }

    pub(super) fn beat(&mut self, now: Boot) -> Option<u64> {
        let session = self.session?;
        Some(self.wait(now, Want::Beat, Ask::KeepAlive(session), None))
    }

    pub(super) fn release(
        &mut self,
        now: Boot,
        on: &ElectionName,
        call: Call,
        grant: &Grant,
        how: ReleaseOptions,
    ) -> Option<u64> {
        let span = Timing::reservation(grant.ttl);
        let act = Act::Resign {
            on: on.clone(),
            epoch: grant.epoch,
            incarnation: grant.incarnation,
            reserve_for: how.reserve_for.map(|id| ReserveFor { id, span }),
            cooldown: how.cooldown,
        };
        self.act(now, Want::Release(call), act)
    }

    pub(super) fn observe(&mut self, now: Boot, call: Call) -> u64 {
        self.wait(now, Want::Observe(call), Ask::Read, None)
    }

    pub(super) fn request(&mut self, now: Boot, on: &ElectionName, call: Call, what: &Request) -> u64 {
        let command = Command::Request { on: on.clone(), epoch: what.epoch, ask: AskLine::from(&what.what) };
        self.wait(now, Want::Request(call), Ask::Command(command.encode()), None)
    }

    /// The candidate has left the election: its campaigns without an answer are to do nothing.
    pub(super) fn retire(
        &mut self,
        now: Boot,
        on: &ElectionName,
        who: &bellwether_core::Candidate,
    ) -> Option<u64> {
        // Without a session, the cluster holds nothing for it.
        self.session?;
        // Also those that were given up: they may still arrive. What is below those in flight does nothing anyway.
        let lowest = self.in_flight.first().copied().unwrap_or(self.sequence + 1);
        self.campaigns = self.campaigns.split_off(&lowest);
        let cancels = self.campaigns.iter().copied().map(Sequence).collect();
        self.unretired = Some(who.clone());
        self.act(now, Want::Retire, Act::Retire { on: on.clone(), incarnation: who.incarnation, cancels })
    }

    fn act(&mut self, now: Boot, want: Want, act: Act) -> Option<u64> {
        let session = self.session?;
        self.sequence += 1;
        self.in_flight.insert(self.sequence);
        let lowest = self.in_flight.first().copied().unwrap_or(self.sequence);
        let (sequence, answered_below) = (Sequence(self.sequence), Sequence(lowest));
        let command = Command::InSession { session, sequence, answered_below, act };
        Some(self.wait(now, want, Ask::Command(command.encode()), Some(self.sequence)))
    }

    fn wait(&mut self, left: Boot, want: Want, ask: Ask, sequence: Option<u64>) -> u64 {
        self.tokens += 1;
        self.waiting.insert(self.tokens, Waiting { want, ask, left, sequence });
        self.tokens
    }

    /// An answer has come, or the client gave up. What the core is to hear.
    pub(super) fn answered(&mut self, now: Boot, token: u64, reply: Option<Reply>) -> Vec<Input> {
        let Some(waiting) = self.waiting.remove(&token) else { return Vec::new() };
        if let Some(sequence) = waiting.sequence {
            self.in_flight.remove(&sequence);
        }
        let mut inputs = Vec::new();
        let is_over =
            matches!(reply, Some(Reply::Ended | Reply::Answer(Answer::Refused(Refusal::NoSuchSession))));
        if is_over && self.session.take().is_some() {
            // Everything in the session has ended with it.
            self.in_flight.clear();
            self.campaigns.clear();
            self.unretired = None;
            inputs.push(Input::Signal(Signal::Gone));
        }
        let seen = |view: &ElectionView| {
            let free_at = view.reservation.map(|span| now + span);
            Seen { free_at, ..view.seen() }
        };
        match waiting.want {
            Want::Open => {
                self.opening = false;
                if let Some(Reply::Answer(Answer::Opened(session))) = reply {
                    self.session = Some(session);
                    self.sequence = 0;
                    self.in_flight.clear();
                } else {
                    let unsent = self.unsent().into_iter();
                    inputs.extend(unsent.map(|(call, _)| Input::Claimed(call, unknown())));
                }
            }
            Want::Claim(call, bid) => {
                let outcome = match reply {
                    Some(Reply::Answer(Answer::Granted { epoch, after_crash })) => Outcome::Done(Grant {
                        epoch,
                        incarnation: bid.who.incarnation,
                        ttl: bid.ttl,
                        counted_from: bid.sent,
                        after_crash,
                    }),
                    Some(Reply::Answer(Answer::Denied(view))) => Outcome::Denied(seen(&view)),
                    _ => unknown(),
                };
                inputs.push(Input::Claimed(call, outcome));
            }
            Want::Renew(call, grant) => {
                let outcome = match reply {
                    Some(Reply::Kept(view)) => {
                        let holder = view.holder.as_ref().map(|holder| holder.who.incarnation);
                        if holder == Some(grant.incarnation) && view.epoch == grant.epoch {
                            Outcome::Done(Grant { counted_from: waiting.left, ..grant })
                        } else {
                            Outcome::Denied(seen(&view))
                        }
                    }
                    Some(Reply::Ended) => Outcome::Denied(Seen::nothing()),
                    _ => unknown(),
                };
                inputs.push(Input::Renewed(call, outcome));
            }
            Want::Release(call) => inputs.push(Input::Released(call, done(reply, seen))),
            Want::Request(call) => inputs.push(Input::Requested(call, done(reply, seen))),
            Want::Observe(call) => {
                let result = match reply {
                    Some(Reply::View(view)) => Ok(seen(&view)),
                    _ => Err(trouble()),
                };
                inputs.push(Input::Observed(call, result));
            }
            Want::Retire if reply.is_some() => self.unretired = None,
            Want::Beat | Want::Retire => {}
        }
        inputs
    }
}

fn done(reply: Option<Reply>, seen: impl Fn(&ElectionView) -> Seen) -> Outcome<()> {
    match reply {
        Some(Reply::Answer(Answer::Done)) => Outcome::Done(()),
        Some(Reply::Answer(Answer::Denied(view))) => Outcome::Denied(seen(&view)),
        Some(Reply::Answer(Answer::Refused(Refusal::NoSuchSession)) | Reply::Ended) => {
            Outcome::Denied(Seen::nothing())
        }
        _ => unknown(),
    }
}

pub(super) fn unknown<T>() -> Outcome<T> {
    Outcome::Unknown(trouble())
}

fn trouble() -> StoreError {
    StoreError::new(ErrorKind::Unavailable, "raft", "no answer")
}
