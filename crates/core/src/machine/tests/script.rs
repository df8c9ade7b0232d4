//! A candidate on a stage: virtual milliseconds, inputs by name, outputs as short sentences.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::{
    Ask, Boot, Call, Candidate, CandidateId, Core, CoreEvent, Epoch, ErrorKind, Exponential, Grant, Holder,
    Incarnation, Input, Options, Outcome, Output, Proof, Request, Seen, Settings, Signal, StoreCall,
    StoreError,
};

/// The candidate on stage is always `a`; this is its start.
const ME: Incarnation = Incarnation::from_bits(0xa);

/// What a call was, so that its answer comes back as the right input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Claim,
    Renew,
    Release,
    Observe,
    Request,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) kind: Kind,
    pub(super) at: Boot,
}

/// The stage.
pub(super) struct Script {
    pub(super) core: Core,
    pub(super) sent: BTreeMap<u64, Sent>,
    now: Boot,
    log: Vec<String>,
}

impl Script {
    /// With the default settings, but no jitter: then every instant can be told beforehand.
    pub(super) fn new() -> Script {
        Script::with(|_| {})
    }

    pub(super) fn with(change: impl FnOnce(&mut Options)) -> Script {
        let mut options = Options {
            strategy: std::sync::Arc::new(Exponential { jitter: 0.0, ..Exponential::default() }),
            ..Options::default()
        };
        change(&mut options);
        let settings = Settings::new(options).expect("a test uses settings that are allowed");
        let core = Core::new(settings, me(), 1);
        Script { core, sent: BTreeMap::new(), now: Boot::default(), log: Vec::new() }
    }

    /// Started at 0 ms, with the first claim (#1) under way.
    pub(super) fn acquiring(change: impl FnOnce(&mut Options)) -> Script {
        let mut script = Script::with(change);
        if script.core.settings().options().health_failures.is_some() {
            script.feed(Input::Health(true));
        }
        script.feed(Input::Start);
        assert_eq!(script.state(), "acquiring");
        script.told();
        script
    }

    /// Leading e5 since a claim at 0 ms, so until 13500 ms.
    pub(super) fn leading(change: impl FnOnce(&mut Options)) -> Script {
        let mut script = Script::acquiring(change);
        script.granted(5);
        assert_eq!(script.leads(), Some((5, 13_500)));
        script.told();
        script
    }

    /// Lets time pass as a good driver does: every timer on the way fires at its instant.
    pub(super) fn at(&mut self, ms: u64) -> &mut Script {
        let until = boot(ms);
        while let Some(due) = self.core.poll_timeout().filter(|due| *due <= until) {
            assert!(due > self.now, "a timer at {} ms, which is not after now: {:?}", millis(due), self.core);
            self.now = due;
            self.feed(Input::Timeout);
        }
        self.now = until;
        self
    }

    /// Goes on to the next timer.
    pub(super) fn next(&mut self) -> &mut Script {
        self.at(self.wakes().expect("it waits for an instant"))
    }

    /// Lets time pass with nobody looking: a paused process.
    pub(super) fn pause_until(&mut self, ms: u64) -> &mut Script {
        self.now = boot(ms);
        self
    }

    pub(super) fn feed(&mut self, input: Input) -> &mut Script {
        self.core.handle(self.now, input);
        while let Some(output) = self.core.poll_output() {
            if let Some((call, sent)) = sent_by(&output, self.now) {
                self.sent.insert(call.0, sent);
            }
            self.log.push(say(&output));
        }
        self
    }

    pub(super) fn signal(&mut self, signal: Signal) -> &mut Script {
        self.feed(Input::Signal(signal))
    }

    /// The watch shows this.
    pub(super) fn changed(&mut self, seen: Seen) -> &mut Script {
        self.signal(Signal::Changed(seen))
    }

    pub(super) fn work_ended(&mut self, epoch: u64) -> &mut Script {
        self.feed(Input::WorkEnded(e(epoch)))
    }

    /// The last call is answered: granted, or renewed, under that epoch.
    pub(super) fn granted(&mut self, epoch: u64) -> &mut Script {
        self.granted_to(self.last(), epoch)
    }

    /// That call is answered: granted, or renewed, counting from when it was sent.
    pub(super) fn granted_to(&mut self, call: u64, epoch: u64) -> &mut Script {
        let grant = self.grant_for(call, epoch);
        self.answer(call, Outcome::Done(grant))
    }

    /// As [`Script::granted`], on evidence that the leader before crashed.
    pub(super) fn granted_after_crash(&mut self, epoch: u64) -> &mut Script {
        let grant = Grant { after_crash: true, ..self.grant_for(self.last(), epoch) };
        self.answer(self.last(), Outcome::Done(grant))
    }

    pub(super) fn grant_for(&self, call: u64, epoch: u64) -> Grant {
        grant(epoch, self.sent[&call].at)
    }

    /// The last call is answered: somebody else is in the way.
    pub(super) fn denied_by(&mut self, id: &str) -> &mut Script {
        self.denied(held_by(id, 9))
    }

    pub(super) fn denied(&mut self, seen: Seen) -> &mut Script {
        self.answer(self.last(), Outcome::Denied(seen))
    }

    /// The last call is answered: perhaps, perhaps not.
    pub(super) fn unknown(&mut self) -> &mut Script {
        self.answer(self.last(), Outcome::Unknown(away()))
    }

    /// The last call is answered: no, and never.
    pub(super) fn refused(&mut self) -> &mut Script {
        self.answer(self.last(), Outcome::Refused(forbidden()))
    }

    /// The last call, a look or a release, is answered.
    pub(super) fn looked(&mut self, seen: Seen) -> &mut Script {
        self.looked_at(self.last(), seen)
    }

    pub(super) fn looked_at(&mut self, call: u64, seen: Seen) -> &mut Script {
        self.feed(Input::Observed(Call(call), Ok(seen)))
    }

    pub(super) fn released(&mut self) -> &mut Script {
        let call = Call(self.last());
        self.feed(Input::Released(call, Outcome::Done(())))
    }

    /// That call is answered, as whatever it was.
    pub(super) fn answer(&mut self, call: u64, outcome: Outcome<Grant>) -> &mut Script {
        let kind = self.sent[&call].kind;
        self.feed(answer(kind, Call(call), outcome))
    }

    /// The number of the last call.
    pub(super) fn last(&self) -> u64 {
        *self.sent.keys().next_back().expect("a call was made")
    }

    /// How many calls of that kind were made.
    pub(super) fn calls(&self, kind: Kind) -> usize {
        self.sent.values().filter(|sent| sent.kind == kind).count()
    }

    pub(super) fn state(&self) -> &'static str {
        self.core.state().as_str()
    }

    /// The leadership, and until when it is believed.
    pub(super) fn leads(&self) -> Option<(u64, u64)> {
        self.core.leadership().map(|(epoch, deadline)| (epoch.get(), millis(deadline)))
    }

    /// How long until the next timer.
    pub(super) fn waits(&self) -> Option<u64> {
        self.wakes().map(|wakes| wakes - millis(self.now))
    }

    /// When the next timer is due.
    pub(super) fn wakes(&self) -> Option<u64> {
        self.core.poll_timeout().map(millis)
    }

    /// Everything said since the last question.
    pub(super) fn told(&mut self) -> String {
        self.log.drain(..).collect::<Vec<_>>().join(", ")
    }

    /// Of everything said since the last question, what users hear, without the changes of state and leader.
    pub(super) fn heard(&mut self) -> String {
        let inside =
            ["claim#", "renew#", "release#", "observe#", "ask#", "believe", "end_work", "state", "leader"];
        let outside = |line: &String| !inside.iter().any(|word| line.starts_with(word));
        self.log.drain(..).filter(outside).collect::<Vec<_>>().join(", ")
    }
}

/// The call in this output, if it is one, and what it was.
pub(super) fn sent_by(output: &Output, now: Boot) -> Option<(Call, Sent)> {
    let Output::Call(call, what) = output else { return None };
    let (kind, at) = match what {
        StoreCall::Claim(bid) => (Kind::Claim, bid.sent),
        StoreCall::Renew { sent, .. } => (Kind::Renew, *sent),
        StoreCall::Release(..) => (Kind::Release, now),
        StoreCall::Observe => (Kind::Observe, now),
        StoreCall::Request(_) => (Kind::Request, now),
    };
    Some((*call, Sent { kind, at }))
}

/// The answer to a call of that kind.
pub(super) fn answer(kind: Kind, call: Call, outcome: Outcome<Grant>) -> Input {
    let done = match &outcome {
        Outcome::Done(_) => Outcome::Done(()),
        Outcome::Denied(seen) => Outcome::Denied(seen.clone()),
        Outcome::Unknown(error) => Outcome::Unknown(error.clone()),
        Outcome::Refused(error) => Outcome::Refused(error.clone()),
    };
    match kind {
        Kind::Claim => Input::Claimed(call, outcome),
        Kind::Renew => Input::Renewed(call, outcome),
        Kind::Release => Input::Released(call, done),
        Kind::Request => Input::Requested(call, done),
        Kind::Observe => match outcome {
            Outcome::Unknown(error) | Outcome::Refused(error) => Input::Observed(call, Err(error)),
            Outcome::Denied(seen) => Input::Observed(call, Ok(seen)),
            Outcome::Done(grant) => Input::Observed(call, Ok(held_by_me(grant.epoch.get()))),
        },
    }
}

pub(super) fn me() -> Candidate {
    Candidate { id: id("a"), incarnation: ME }
}

pub(super) fn grant(epoch: u64, counted_from: Boot) -> Grant {
    let ttl = Duration::from_secs(15);
    Grant { epoch: e(epoch), incarnation: ME, ttl, counted_from, after_crash: false }
}

/// A record that names that candidate, which is not this very start of `a`.
pub(super) fn held_by(name: &str, epoch: u64) -> Seen {
    let incarnation = Some(Incarnation::from_bits(0xb));
    Seen {
        holder: Some(Holder { id: id(name), incarnation }),
        epoch: Some(e(epoch)),
        proof: Proof::Record,
        ..Seen::nothing()
    }
}

pub(super) fn held_by_me(epoch: u64) -> Seen {
    Seen { holder: Some(Holder { id: id("a"), incarnation: Some(ME) }), ..held_by("a", epoch) }
}

pub(super) fn released(epoch: u64) -> Seen {
    Seen { holder: None, epoch: Some(e(epoch)), proof: Proof::Released, ..Seen::nothing() }
}

pub(super) fn away() -> StoreError {
    StoreError::new(ErrorKind::Unavailable, "test", "away")
}

pub(super) fn forbidden() -> StoreError {
    StoreError::new(ErrorKind::PermissionDenied, "test", "not for you")
}

pub(super) fn id(name: &str) -> CandidateId {
    CandidateId::new(name).expect("a test uses names that are allowed")
}

pub(super) fn e(number: u64) -> Epoch {
    Epoch::new(number).expect("a test uses small epochs")
}

pub(super) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(super) fn boot(millis: u64) -> Boot {
    Boot::default() + ms(millis)
}

fn millis(at: Boot) -> u64 {
    at.as_nanos() / 1_000_000
}

fn say(output: &Output) -> String {
    match output {
        Output::Call(call, what) => say_call(call.0, what),
        Output::Believe { epoch, until } => format!("believe e{epoch} until {}", millis(*until)),
        Output::EndWork { epoch, by, why } => {
            let why = why.map_or("chosen", |reason| reason.as_str());
            format!("end_work e{epoch} by {} {why}", millis(*by))
        }
        Output::ExtendStop { epoch, by } => format!("extend_stop e{epoch} by {}", millis(*by)),
        Output::Event { what, .. } => tell(what),
    }
}

fn say_call(call: u64, what: &StoreCall) -> String {
    match what {
        StoreCall::Claim(bid) if bid.floor == Epoch::ZERO => format!("claim#{call}"),
        StoreCall::Claim(bid) => format!("claim#{call} above e{}", bid.floor),
        StoreCall::Renew { grant, .. } => format!("renew#{call} e{}", grant.epoch),
        StoreCall::Observe => format!("observe#{call}"),
        StoreCall::Release(grant, options) => {
            let to = options.reserve_for.as_ref().map_or(String::new(), |to| format!(" to {to}"));
            let cooldown = options.cooldown.map_or(String::new(), |c| format!(" cooldown {}", c.as_millis()));
            format!("release#{call} e{}{to}{cooldown}", grant.epoch)
        }
        StoreCall::Request(Request { epoch, what: Ask::Preempt { by, priority } }) => {
            format!("ask#{call} e{epoch} preempt by {by} {priority}")
        }
        StoreCall::Request(Request { epoch, what: Ask::StepDown { .. } | Ask::StepDownLater { .. } }) => {
            format!("ask#{call} e{epoch} step_down")
        }
    }
}

fn tell(event: &CoreEvent) -> String {
    match event {
        CoreEvent::StateChanged { from, to } => format!("state {}→{}", from.as_str(), to.as_str()),
        CoreEvent::Acquired { epoch, .. } => format!("acquired e{epoch}"),
        CoreEvent::Resumed { epoch, .. } => format!("resumed e{epoch}"),
        CoreEvent::Released { epoch, confirmed: true } => format!("released e{epoch}"),
        CoreEvent::Released { epoch, confirmed: false } => format!("released e{epoch} unconfirmed"),
        CoreEvent::Lost { epoch, reason, released, .. } => {
            let released = if *released { " (released)" } else { "" };
            format!("lost e{epoch} {}{released}", reason.as_str())
        }
        CoreEvent::Suspended { epoch, reason, .. } => format!("suspended e{epoch} {}", reason.as_str()),
        CoreEvent::AcquireFailed { holder: Some(holder) } => format!("acquire_failed {holder}"),
        CoreEvent::AcquireFailed { holder: None } => "acquire_failed".to_owned(),
        CoreEvent::LeaderChanged { leader: Some(leader), .. } => format!("leader {leader}"),
        CoreEvent::LeaderChanged { leader: None, .. } => "leader nobody".to_owned(),
        CoreEvent::Danger { epoch, .. } => format!("danger e{epoch}"),
        CoreEvent::Error(error) => format!("error {}", error.kind().as_str()),
        CoreEvent::Stopped => "stopped".to_owned(),
    }
}
