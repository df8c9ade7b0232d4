//! The client of one process: its session, which all of its candidates share, its numbered commands, its calls.
//!
//! One keepalive renews everything that the session leads. A renewal is answered by the last one, if that is young, or else by the next one
//! that leaves: as in the client of `backends/raft`.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_core::{
    Bid, Boot, Call, Candidate, Epoch, ErrorKind, Grant, Input, Outcome, ReleaseOptions, Request, Seen,
    Signal, StoreError, Timing, Wall,
};
use bellwether_raft::answer::{Answer, ElectionView, Refusal};
use bellwether_raft::command::{Act, AskLine, Campaign, Command, ReserveFor, Sequence, SessionId};

use crate::key::ElectionKey;

/// How much of its ttl a keepalive may be old and still answer a renewal.
const YOUNG: u32 = 6;

/// Where an answer goes: the process, which life of it, and which of its calls.
pub(super) type Return = (usize, u32, u64);

/// Something on its way to the cluster.
#[derive(Clone, Debug)]
pub(super) enum Ask {
    Command(Vec<u8>),
    KeepAlive(SessionId),
    Read(ElectionKey),
}

/// Something on its way back.
#[derive(Clone, Debug)]
pub(super) enum Reply {
    Answer(Answer),
    /// The session lives, and leads these.
    Kept(BTreeSet<(ElectionKey, Epoch)>),
    /// There is no such session.
    Ended,
    View(ElectionView),
    /// No leader here.
    NotNow,
}

/// What a call is for. Those of candidates name the place of theirs in the process.
#[derive(Clone, Debug)]
pub(super) enum Want {
    Open,
    Claim(usize, Call, Bid),
    Release(usize, Call),
    Observe(usize, Call),
    Request(usize, Call),
    /// A keepalive, and the renewals that wait for it.
    Beat(Vec<Renewal>),
    Retire(Candidate),
}

/// A leadership that is to be renewed.
#[derive(Clone, Debug)]
pub(super) struct Renewal {
    pub(super) place: usize,
    pub(super) key: ElectionKey,
    pub(super) call: Call,
    pub(super) grant: Grant,
}

/// What becomes of a renewal at first.
pub(super) enum Renewed {
    /// A keepalive leaves for it.
    Leaves(u64),
    /// It waits for the next one.
    Waits,
    /// It is answered.
    Answered(Box<Input>),
}

/// What the last keepalive showed.
#[derive(Clone, Debug)]
struct Beat {
    /// The instant before it left.
    left: Boot,
    led: BTreeSet<(ElectionKey, Epoch)>,
}

impl Beat {
    fn proves(&self, renewal: &Renewal) -> bool {
        self.led.contains(&(renewal.key, renewal.grant.epoch))
    }

    /// What it says to a renewal.
    fn answer(&self, renewal: Renewal) -> Input {
        let outcome = match self.proves(&renewal) {
            true => Outcome::Done(Grant { counted_from: self.left, ..renewal.grant }),
            false => Outcome::Denied(Seen::nothing()),
        };
        Input::Renewed(renewal.call, outcome)
    }
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
    unsent: Vec<(usize, Call, Bid)>,
    pub(super) waiting: BTreeMap<u64, Waiting>,
    tokens: u64,
    sequence: u64,
    in_flight: BTreeSet<u64>,
    /// The campaigns of each candidate, by its incarnation.
    campaigns: BTreeMap<u128, BTreeSet<u64>>,
    /// Candidates that have left, where the cluster has not confirmed that it knows.
    leavers: Vec<(ElectionKey, Candidate)>,
    /// The last keepalive that was answered.
    last: Option<Beat>,
    /// A keepalive is on its way.
    beating: bool,
    /// Renewals that wait for the next one.
    next: Vec<Renewal>,
}

impl Client {
    pub(super) fn has_session(&self) -> bool {
        self.session.is_some()
    }

    /// Whether the cluster may not know yet that this candidate has left.
    pub(super) fn is_leaving(&self, who: &Candidate) -> bool {
        self.leavers.iter().any(|(_, leaver)| leaver == who)
    }

    /// Candidates that have left, where the cluster has not confirmed that it knows.
    pub(super) fn leavers(&self) -> Vec<(ElectionKey, Candidate)> {
        self.leavers.clone()
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
    pub(super) fn claim(
        &mut self,
        now: Boot,
        (place, key): (usize, ElectionKey),
        call: Call,
        bid: Bid,
    ) -> Option<u64> {
        if self.session.is_none() {
            self.unsent.push((place, call, bid));
            return None;
        }
        let campaign = Campaign {
            on: key.name(),
            who: bid.who.clone(),
            floor: bid.floor,
            priority: bid.priority,
            metadata: bid.metadata.clone(),
            cooldown: bid.cooldown,
            danger_reclaim: bid.danger_reclaim,
            wall: Wall::default(),
        };
        self.campaigns.entry(bid.who.incarnation.bits()).or_default().insert(self.sequence + 1);
        self.act(now, Want::Claim(place, call, bid), Act::Campaign(campaign))
    }

    pub(super) fn unsent(&mut self) -> Vec<(usize, Call, Bid)> {
        std::mem::take(&mut self.unsent)
    }

    /// A renewal that was asked for at `sent`; `None` without a session.
    pub(super) fn renew(&mut self, now: Boot, renewal: Renewal, sent: Boot) -> Option<Renewed> {
        self.session?;
        let Grant { counted_from, ttl, .. } = renewal.grant;
        let earliest = (counted_from + std::time::Duration::from_nanos(1)).max(sent - ttl / YOUNG);
        let young = self.last.as_ref().filter(|beat| beat.left >= earliest && beat.proves(&renewal));
        if let Some(young) = young {
            return Some(Renewed::Answered(Box::new(young.answer(renewal))));
        }
        self.next.push(renewal);
        Some(self.beat(now).map_or(Renewed::Waits, Renewed::Leaves))
    }

    /// A keepalive for all who wait for one, unless one is on its way.
    pub(super) fn beat(&mut self, now: Boot) -> Option<u64> {
        let session = self.session.filter(|_| !self.beating)?;
        self.beating = true;
        let renewals = std::mem::take(&mut self.next);
        Some(self.wait(now, Want::Beat(renewals), Ask::KeepAlive(session), None))
    }

    /// The next keepalive, where somebody waits for one.
    pub(super) fn beat_again(&mut self, now: Boot) -> Option<u64> {
        if self.next.is_empty() { None } else { self.beat(now) }
    }

    pub(super) fn release(
        &mut self,
        now: Boot,
        (place, key): (usize, ElectionKey),
        call: Call,
        grant: &Grant,
        how: ReleaseOptions,
    ) -> Option<u64> {
        let span = Timing::reservation(grant.ttl);
        let act = Act::Resign {
            on: key.name(),
            epoch: grant.epoch,
            incarnation: grant.incarnation,
            reserve_for: how.reserve_for.map(|id| ReserveFor { id, span }),
            cooldown: how.cooldown,
        };
        self.act(now, Want::Release(place, call), act)
    }

    pub(super) fn observe(&mut self, now: Boot, (place, key): (usize, ElectionKey), call: Call) -> u64 {
        self.wait(now, Want::Observe(place, call), Ask::Read(key), None)
    }

    pub(super) fn request(
        &mut self,
        now: Boot,
        (place, key): (usize, ElectionKey),
        call: Call,
        what: &Request,
    ) -> u64 {
        let (on, ask) = (key.name(), AskLine::from(&what.what));
        let command = Command::Request { on, epoch: what.epoch, ask };
        self.wait(now, Want::Request(place, call), Ask::Command(command.encode()), None)
    }

    /// The candidate has left the election: its campaigns without an answer are to do nothing.
    pub(super) fn retire(&mut self, now: Boot, key: ElectionKey, who: &Candidate) -> Option<u64> {
        // Without a session, the cluster holds nothing for it.
        self.session?;
        // Also those that were given up: they may still arrive. What is below those in flight does nothing anyway.
        let lowest = self.in_flight.first().copied().unwrap_or(self.sequence + 1);
        let campaigns = self.campaigns.entry(who.incarnation.bits()).or_default();
        *campaigns = campaigns.split_off(&lowest);
        let cancels = campaigns.iter().copied().map(Sequence).collect();
        if !self.is_leaving(who) {
            self.leavers.push((key, who.clone()));
        }
        let act = Act::Retire { on: key.name(), incarnation: who.incarnation, cancels };
        self.act(now, Want::Retire(who.clone()), act)
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

    /// An answer has come, or the client gave up. What which candidate's core is to hear, `None` for all of them.
    pub(super) fn answered(
        &mut self,
        now: Boot,
        token: u64,
        reply: Option<Reply>,
    ) -> Vec<(Option<usize>, Input)> {
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
            self.leavers.clear();
            self.last = None;
            let denied = |renewal: Renewal| {
                (Some(renewal.place), Input::Renewed(renewal.call, Outcome::Denied(Seen::nothing())))
            };
            inputs.push((None, Input::Signal(Signal::Gone)));
            inputs.extend(std::mem::take(&mut self.next).into_iter().map(denied));
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
                    inputs.extend(
                        unsent.map(|(place, call, _)| (Some(place), Input::Claimed(call, unknown()))),
                    );
                }
            }
            Want::Claim(place, call, bid) => {
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
                inputs.push((Some(place), Input::Claimed(call, outcome)));
            }
            Want::Beat(renewals) => {
                self.beating = false;
                let beat = match reply {
                    Some(Reply::Kept(led)) => Some(Beat { left: waiting.left, led }),
                    // What was led has ended.
                    Some(Reply::Ended) => Some(Beat { left: waiting.left, led: BTreeSet::new() }),
                    _ => None,
                };
                for renewal in renewals {
                    let (place, call) = (renewal.place, renewal.call);
                    let unheard = || Input::Renewed(call, unknown());
                    inputs
                        .push((Some(place), beat.as_ref().map_or_else(unheard, |beat| beat.answer(renewal))));
                }
                self.last = beat.filter(|_| self.session.is_some()).or(self.last.take());
            }
            Want::Release(place, call) => {
                inputs.push((Some(place), Input::Released(call, done(reply, seen))))
            }
            Want::Request(place, call) => {
                inputs.push((Some(place), Input::Requested(call, done(reply, seen))))
            }
            Want::Observe(place, call) => {
                let result = match reply {
                    Some(Reply::View(view)) => Ok(seen(&view)),
                    _ => Err(trouble()),
                };
                inputs.push((Some(place), Input::Observed(call, result)));
            }
            Want::Retire(who) if reply.is_some() => self.leavers.retain(|(_, leaver)| *leaver != who),
            Want::Retire(_) => {}
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
