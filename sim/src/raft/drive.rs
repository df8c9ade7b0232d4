//! What a process does: it drives its cores, as the contract of [`Core`](bellwether_core::Core) asks.

use bellwether_core::{Call, CoreEvent, Input, Outcome, Output, Reason, Seen, Signal, StateName, StoreCall};

use super::client::{Renewal, Renewed, Reply, Return};
use super::process::RaftCandidate;
use super::world::{Happening, RaftWorld, say};
use crate::faults::WorldFault;
use crate::invariants::{BrokenInvariant, conflict, exclusion, order};
use crate::key::{ElectionKey, Seat};
use crate::time::MILLI;

impl RaftWorld {
    pub(super) fn candidate(&mut self, seat: Seat) -> &mut RaftCandidate {
        &mut self.processes[seat.node].candidates[seat.place]
    }

    /// Hands an input to the core and does what it wants done.
    pub(super) fn tell(&mut self, seat: Seat, input: Input) {
        let boot = self.processes[seat.node].machine.show(self.now);
        if self.candidate(seat).core.is_some() && !matches!(input, Input::Timeout) {
            say!(self, "{seat} hears {input:?}");
        }
        let candidate = self.candidate(seat);
        let led = candidate.believed();
        let Some(core) = &mut candidate.core else { return };
        let is_over = match &input {
            Input::Signal(Signal::Gone) => true,
            Input::Signal(Signal::Changed(seen)) => {
                led.is_some_and(|led| conflict::news_says_over(seen, led))
            }
            _ => false,
        };
        core.handle(boot, input);
        let leads = candidate.believed();
        if let (true, Some(led)) = (is_over, led) {
            self.judge(conflict::check(led, leads));
        }
        while let Some(output) = self.candidate(seat).core.as_mut().and_then(|core| core.poll_output()) {
            self.output(seat, output);
        }
        let candidate = self.candidate(seat);
        if candidate.core.is_none() {
            return;
        }
        let (believed, working) = (candidate.believed(), candidate.work.map(|work| work.epoch));
        self.judge(exclusion::agree(believed, working));
        self.settle(seat);
    }

    fn output(&mut self, seat: Seat, output: Output) {
        match output {
            Output::Believe { epoch, until } => self.believe(seat, epoch, until),
            Output::EndWork { epoch, by, .. } => self.end_work(seat, epoch, by),
            Output::ExtendStop { epoch, by } => {
                if let Some(work) = self.candidate(seat).work.as_mut().filter(|work| work.epoch == epoch) {
                    work.until = work.until.max(by);
                }
            }
            Output::Event { what, .. } => self.told(seat, &what),
            Output::Call(call, what) => self.call(seat, call, what),
        }
    }

    fn told(&mut self, seat: Seat, told: &CoreEvent) {
        say!(self, "{seat} tells {told:?}");
        let verdict = self.candidate(seat).alternation.told(told);
        self.judge(verdict);
        if let CoreEvent::Lost { reason, .. } | CoreEvent::Suspended { reason, .. } = told
            && self.now >= self.steady_from
            && *reason != Reason::Preempted
        {
            let said = format!("{seat} lost the lead for {reason:?} with no fault about");
            self.judge(Err(BrokenInvariant::new("recovery", said)));
        }
    }

    fn call(&mut self, seat: Seat, call: Call, what: StoreCall) {
        say!(self, "{seat} calls {what:?}");
        let nonce = u128::from(self.rng.next_u64());
        let candidate = self.candidate(seat);
        let working = candidate.work.map(|work| work.epoch);
        let place = (seat.place, candidate.key);
        let process = &mut self.processes[seat.node];
        let now = process.machine.boot(self.now);
        let client = &mut process.client;
        let (token, unsent) = match what {
            StoreCall::Claim(bid) => {
                let (ttl, claimed) = (bid.ttl, client.claim(now, place, call, bid));
                (claimed.or_else(|| client.open(now, nonce, ttl)), None)
            }
            StoreCall::Renew { grant, sent } => {
                let renewal = Renewal { place: seat.place, key: place.1, call, grant };
                match client.renew(now, renewal, sent) {
                    Some(Renewed::Leaves(token)) => (Some(token), None),
                    Some(Renewed::Waits) => (None, None),
                    Some(Renewed::Answered(input)) => (None, Some(*input)),
                    None => (None, Some(Input::Renewed(call, Outcome::Denied(Seen::nothing())))),
                }
            }
            StoreCall::Release(grant, how) => {
                let token = client.release(now, place, call, &grant, how);
                self.judge(order::check(grant.epoch, working));
                (token, Some(Input::Released(call, Outcome::Denied(Seen::nothing()))))
            }
            StoreCall::Observe => (Some(client.observe(now, place, call)), None),
            StoreCall::Request(request) => (Some(client.request(now, place, call, &request)), None),
        };
        match (token, unsent) {
            (Some(token), _) => self.send(seat.node, token),
            // Without a session there is nothing to renew or release any more; or a young keepalive has renewed it.
            (None, Some(input)) => self.tell(seat, input),
            (None, None) => {}
        }
    }

    /// A message leaves. If no answer comes, the same is sent once more, and then the client gives up.
    fn send(&mut self, slot: usize, token: u64) {
        let to = (slot, self.processes[slot].life, token);
        let patience = self.options.shortest_ttl() / 3;
        self.deliver(to);
        self.plan(patience / 2, Happening::Again(to));
        self.plan(patience, Happening::Answer(to, None));
    }

    pub(super) fn send_again(&mut self, slot: usize, life: u32, token: u64) {
        // What was answered meanwhile waits no more.
        if self.processes[slot].life == life {
            self.deliver((slot, life, token));
        }
    }

    fn deliver(&mut self, to: Return) {
        let Some(waiting) = self.processes[to.0].client.waiting.get(&to.2) else { return };
        let ask = waiting.ask.clone();
        if self.processes[to.0].cut_until > self.now || self.chance(self.options.net.call_lost) {
            self.tally.count(WorldFault::CallLost);
            return;
        }
        if self.chance(self.options.net.twice) {
            self.tally.count(WorldFault::CallTwice);
            let after = self.latency() + self.rng.below(self.options.longest_ttl());
            self.plan(after, Happening::Arrive(to, ask.clone()));
        }
        let after = self.latency();
        self.plan(after, Happening::Arrive(to, ask));
    }

    pub(super) fn answered(&mut self, (slot, life, token): Return, reply: Option<Reply>) {
        let process = &mut self.processes[slot];
        // No leader there: the client asks again, or gives up.
        if process.life != life || !process.is_up || matches!(reply, Some(Reply::NotNow)) {
            return;
        }
        let now = process.machine.show(self.now);
        let had = process.client.has_session();
        let inputs = process.client.answered(now, token, reply);
        for (place, input) in inputs {
            match place {
                Some(place) => self.tell(Seat { node: slot, place }, input),
                None => self.seats(slot).for_each(|seat| self.tell(seat, input.clone())),
            }
        }
        let client = &mut self.processes[slot].client;
        if !had && client.has_session() {
            for (place, call, bid) in client.unsent() {
                self.call(Seat { node: slot, place }, call, StoreCall::Claim(bid));
            }
        }
        if let Some(token) = self.processes[slot].client.beat_again(now) {
            self.send(slot, token);
        }
    }

    pub(super) fn news(&mut self, slot: usize, life: u32, key: ElectionKey, signal: &Signal) {
        if self.processes[slot].life != life || self.processes[slot].cut_until > self.now {
            return;
        }
        for seat in self.seats(slot) {
            if self.candidate(seat).key == key {
                self.tell(seat, Input::Signal(signal.clone()));
            }
        }
    }

    /// A session is kept alive, whether it leads or not.
    pub(super) fn beat(&mut self, slot: usize, life: u32) {
        let process = &mut self.processes[slot];
        if process.life != life || !process.is_up {
            return;
        }
        let now = process.machine.boot(self.now);
        if let Some(token) = process.client.beat(now) {
            self.send(slot, token);
        }
        // A session that lives on must not hold anything for a candidate that is gone.
        for (key, who) in self.processes[slot].client.leavers() {
            if let Some(token) = self.processes[slot].client.retire(now, key, &who) {
                self.send(slot, token);
            }
        }
        self.plan(self.options.longest_ttl() / 3, Happening::Beat(slot, life));
    }

    pub(super) fn timer(&mut self, seat: Seat, life: u32) {
        let (now, is_new) = (self.now, self.processes[seat.node].life == life);
        let candidate = self.candidate(seat);
        if !is_new || now < candidate.timer.0 {
            return;
        }
        candidate.timer = (u64::MAX, None);
        self.tell(seat, Input::Timeout);
    }

    /// After a candidate has done everything it wanted: its next time-out, and whether it takes part any more.
    fn settle(&mut self, seat: Seat) {
        let late = if !self.healing && self.rng.one_in(20) { self.rng.below(20 * MILLI) } else { 1_000 };
        let now = self.now;
        let process = &mut self.processes[seat.node];
        let (life, candidate) = (process.life, &mut process.candidates[seat.place]);
        let Some(core) = &candidate.core else { return };
        let (due, is_over) = (core.poll_timeout(), core.state() == StateName::Stopped && core.is_quiet());
        if candidate.timer.1 != due {
            let at = due.map(|due| process.machine.when(due).max(now).saturating_add(late));
            candidate.timer = (at.unwrap_or(u64::MAX), due);
            if let Some(at) = at {
                self.plan(at - now, Happening::Timer(seat, life));
            }
        }
        let process = &mut self.processes[seat.node];
        let candidate = &mut process.candidates[seat.place];
        if !is_over || std::mem::replace(&mut candidate.retired, true) {
            return;
        }
        let (boot, key, who) = (process.machine.boot(now), candidate.key, candidate.who.clone());
        if let Some(token) = process.client.retire(boot, key, &who) {
            self.send(seat.node, token);
        }
        let after = if self.healing { 10 * MILLI } else { self.rng.below(2 * self.options.longest_ttl()) };
        self.plan(after, Happening::Start(seat));
    }
}
