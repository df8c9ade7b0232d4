//! Inputs in any order: no rule breaks.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::script::{
    Kind, Sent, answer, away, boot, e, forbidden, grant, held_by, held_by_me, id, me, ms, sent_by,
};
use super::witness::Witness;
use crate::{
    Ask, Boot, Breaker, Call, Core, Grant, Input, Options, Outcome, Proof, Request, Rng, Seen, Settings,
    Signal,
};

const SEEDS: u64 = 2_000;
const INPUTS: u64 = 200;

#[test]
fn promotion_and_demotion_alternate_and_no_rule_breaks_whatever_comes_in() {
    let mut leaderships = 0;
    for seed in 0..SEEDS {
        let mut world = World::new(seed);
        let done = catch_unwind(AssertUnwindSafe(|| (0..INPUTS).for_each(|_| world.step())));
        if let Err(panic) = done {
            eprintln!("seed {seed}, {:?}; the last inputs:", world.core.settings().options());
            world
                .history
                .iter()
                .for_each(|(now, input)| eprintln!("{} {input:?}", now.as_nanos() / 1_000_000));
            resume_unwind(panic);
        }
        leaderships += world.witness.leaderships;
    }
    assert!(leaderships > SEEDS * 2, "hardly anything was led: {leaderships} leaderships");
}

/// A store, a program and a network that do anything at all.
struct World {
    core: Core,
    witness: Witness,
    rng: Rng,
    now: Boot,
    /// What the machine takes for now.
    read: Boot,
    calls: Vec<(Call, Sent)>,
    issued: u64,
    history: VecDeque<(Boot, Input)>,
}

impl World {
    fn new(seed: u64) -> World {
        let mut rng = Rng::new(seed);
        let settings = Settings::new(options(&mut rng)).expect("these are allowed");
        World {
            core: Core::new(settings, me(), seed),
            witness: Witness::new(),
            now: boot(rng.below(10_000)),
            read: Boot::default(),
            calls: Vec::new(),
            issued: 0,
            history: VecDeque::new(),
            rng,
        }
    }

    fn step(&mut self) {
        self.pass_time();
        // Now and then the clock was read long before it is used.
        let read = if self.rng.one_in(50) { self.now - ms(self.rng.below(5_000)) } else { self.now };
        self.read = self.core.now.max(read);
        let input = self.input();
        if self.history.len() == 16 {
            self.history.pop_front();
        }
        self.history.push_back((self.now, input.clone()));
        self.witness.input(&input);
        self.core.handle(read, input);
        let outputs: Vec<_> = std::iter::from_fn(|| self.core.poll_output()).collect();
        self.calls.extend(outputs.iter().filter_map(|output| sent_by(output, self.read)));
        self.witness.outputs(self.core.now, &outputs);
        self.witness.look_at(&self.core, self.core.now);
    }

    fn pass_time(&mut self) {
        let span = match self.rng.below(20) {
            0..8 => 0,
            8..12 => self.rng.below(20),
            12..16 => self.core.poll_timeout().map_or(0, |due| due.since(self.now).as_millis() as u64 + 1),
            16..19 => self.rng.below(3_000),
            _ => self.rng.below(60_000),
        };
        self.now = self.now + ms(span.min(60_000));
    }

    fn input(&mut self) -> Input {
        match self.rng.below(100) {
            0..50 => self.answer(),
            50..54 => self.garbage(),
            54..66 => Input::Signal(self.signal()),
            66..71 => Input::Health(!self.rng.one_in(4)),
            71..73 => Input::Validate,
            73..83 => Input::WorkEnded(self.witness.working.unwrap_or(e(self.rng.below(9)))),
            83..85 => Input::WorkEnded(e(self.rng.below(self.issued + 2))),
            85..92 => Input::Start,
            92..94 => Input::Stop,
            94..96 => Input::StepDown { to: self.rng.one_in(2).then(|| id("c")) },
            _ => Input::Timeout,
        }
    }

    /// Of a call that was made: the last one mostly, else any; mostly once, sometimes again.
    fn answer(&mut self) -> Input {
        let Some(last) = self.calls.len().checked_sub(1) else { return Input::Timeout };
        let which = if self.rng.one_in(3) { self.rng.below(last as u64 + 1) as usize } else { last };
        let (call, sent) = self.calls[which];
        if !self.rng.one_in(10) {
            self.calls.remove(which);
        }
        let outcome = self.outcome(sent.at, sent.kind);
        answer(sent.kind, call, outcome)
    }

    /// Of a call that was never made, or was another kind of call.
    fn garbage(&mut self) -> Input {
        let kinds = [Kind::Claim, Kind::Renew, Kind::Release, Kind::Observe, Kind::Request];
        let kind = kinds[self.rng.below(5) as usize];
        let at = self.read - ms(self.rng.below(20_000));
        // Not of the next call, which the machine may make before it hears the answer.
        let call = self.rng.below(self.core.calls.last().0 + 1);
        let call = Call(if self.rng.one_in(5) { call + 1_000 } else { call });
        let outcome = self.outcome(at, kind);
        answer(kind, call, outcome)
    }

    fn outcome(&mut self, sent: Boot, kind: Kind) -> Outcome<Grant> {
        match self.rng.below(40) {
            0..26 => Outcome::Done(self.grant(sent, kind)),
            26..34 => Outcome::Denied(self.seen()),
            34..39 => Outcome::Unknown(away()),
            _ => Outcome::Refused(forbidden()),
        }
    }

    fn grant(&mut self, sent: Boot, kind: Kind) -> Grant {
        let epoch = match self.core.leadership() {
            _ if self.rng.one_in(12) => self.rng.below(self.issued + 3),
            Some((epoch, _)) if kind == Kind::Renew => epoch.get(),
            _ => self.issued + 1,
        };
        self.issued = self.issued.max(epoch);
        Grant { after_crash: self.rng.one_in(4), ..grant(epoch, sent) }
    }

    fn seen(&mut self) -> Seen {
        let epoch = (self.issued + self.rng.below(3)).saturating_sub(1);
        self.issued = self.issued.max(epoch);
        let held = if self.rng.one_in(3) { held_by_me(epoch) } else { held_by("b", epoch) };
        let proofs = [Proof::Record, Proof::Alive, Proof::Dead, Proof::Released, Proof::Absent];
        Seen {
            holder: held.holder.filter(|_| !self.rng.one_in(4)),
            epoch: held.epoch.filter(|_| !self.rng.one_in(8)),
            proof: proofs[self.rng.below(5) as usize],
            free_at: self.rng.one_in(3).then(|| boot(self.rng.below(100_000))),
            cooldown: self.rng.one_in(12).then(|| ms(self.rng.below(5_000))),
            priority: self.rng.one_in(2).then(|| self.rng.below(5) as i32),
            ..Seen::nothing()
        }
    }

    fn signal(&mut self) -> Signal {
        let epoch = self.core.leadership().map_or(e(self.rng.below(9)), |(epoch, _)| epoch);
        match self.rng.below(13) {
            0..6 => Signal::Changed(self.seen()),
            6 => Signal::Requested(Request { epoch, what: Ask::StepDown { to: None } }),
            7 => Signal::Requested(Request { epoch, what: Ask::Preempt { by: id("b"), priority: 3 } }),
            8..10 => Signal::Doubt,
            10 => Signal::Gone,
            _ => Signal::Restored,
        }
    }
}

fn options(rng: &mut Rng) -> Options {
    let mut options = Options {
        failed_renewals: rng.one_in(3).then_some(2),
        disconnect_grace: rng.one_in(3).then(|| ms(10_000)),
        reconnect_grace: rng.one_in(2).then(|| ms(1 + rng.below(20_000))),
        auto_reacquire: !rng.one_in(5),
        cooldown: rng.one_in(4).then(|| ms(1 + rng.below(3_000))),
        priority: 2,
        preempt: rng.one_in(2),
        health_failures: rng.one_in(4).then_some(2),
        validation: rng.one_in(3).then(|| ms(5_000)),
        breaker: rng.one_in(3).then_some(Breaker { failures: 3, open_for: ms(4_000) }),
        ..Options::default()
    };
    if rng.one_in(3) {
        options.timing.work_grace = ms(2_000);
    }
    if rng.one_in(3) {
        options.stop_timeout = ms(1 + rng.below(40_000));
    }
    options
}
