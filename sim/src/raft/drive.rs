//! What a process does: it drives its core, as the contract of [`Core`](bellwether_core::Core) asks.

use bellwether_core::{Boot, CoreEvent, Epoch, Input, Outcome, Output, Seen, Signal, StateName, StoreCall};

use super::client::{Reply, Return, unknown};
use super::world::{Happening, RaftWorld, say};
use crate::faults::WorldFault;
use crate::invariants::exclusion::{self, SimLeadership};
use crate::invariants::{conflict, order};
use crate::node::SimWork;
use crate::time::{MILLI, nanos};

impl RaftWorld {
    /// Hands an input to the core and does what it wants done.
    pub(super) fn tell(&mut self, slot: usize, input: Input) {
        let process = &mut self.processes[slot];
        let boot = process.machine.show(self.now);
        let Some(core) = &mut process.core else { return };
        if !matches!(input, Input::Timeout) {
            say!(self, "{slot} hears {input:?}");
        }
        let led = core.leadership().map(|(epoch, _)| epoch);
        let is_over = match &input {
            Input::Signal(Signal::Gone) => true,
            Input::Signal(Signal::Changed(seen)) => {
                led.is_some_and(|led| conflict::news_says_over(seen, led))
            }
            _ => false,
        };
        core.handle(boot, input);
        if let (true, Some(led)) = (is_over, led) {
            let leads = core.leadership().map(|(epoch, _)| epoch);
            self.judge(conflict::check(led, leads));
        }
        while let Some(output) = self.processes[slot].core.as_mut().and_then(|core| core.poll_output()) {
            self.output(slot, output);
        }
        let process = &self.processes[slot];
        let Some(core) = &process.core else { return };
        let believed = core.leadership().map(|(epoch, _)| epoch);
        self.judge(exclusion::agree(believed, process.work.map(|work| work.epoch)));
        self.settle(slot);
    }

    fn output(&mut self, slot: usize, output: Output) {
        match output {
            Output::Believe { epoch, until } => self.believe(slot, epoch, until),
            Output::EndWork { epoch, by, .. } => self.end_work(slot, epoch, by),
            Output::ExtendStop { epoch, by } => {
                if let Some(work) = self.processes[slot].work.as_mut().filter(|work| work.epoch == epoch) {
                    work.until = work.until.max(by);
                }
            }
            Output::Event { what, .. } => self.told(slot, &what),
            Output::Call(call, what) => self.call(slot, call, what),
        }
    }

    fn told(&mut self, slot: usize, told: &CoreEvent) {
        say!(self, "{slot} tells {told:?}");
        let verdict = self.processes[slot].alternation.told(told);
        self.judge(verdict);
    }

    fn call(&mut self, slot: usize, call: bellwether_core::Call, what: StoreCall) {
        say!(self, "{slot} calls {what:?}");
        let on = self.election.clone();
        let nonce = u128::from(self.rng.next_u64());
        let working = self.processes[slot].work.map(|work| work.epoch);
        let process = &mut self.processes[slot];
        let now = process.machine.boot(self.now);
        let client = &mut process.client;
        let (token, unsent) = match what {
            StoreCall::Claim(bid) => {
                let (ttl, claimed) = (bid.ttl, client.claim(now, &on, call, bid));
                (claimed.or_else(|| client.open(now, nonce, ttl)), None)
            }
            StoreCall::Renew { grant, .. } => {
                let token = client.renew(now, call, grant);
                (token, Some(Input::Renewed(call, Outcome::Denied(Seen::nothing()))))
            }
            StoreCall::Release(grant, how) => {
                let token = client.release(now, &on, call, &grant, how);
                self.judge(order::check(grant.epoch, working));
                (token, Some(Input::Released(call, Outcome::Denied(Seen::nothing()))))
            }
            StoreCall::Observe => (Some(client.observe(now, call)), None),
            StoreCall::Request(request) => (Some(client.request(now, &on, call, &request)), None),
        };
        match (token, unsent) {
            (Some(token), _) => self.send(slot, token),
            // Without a session there is nothing to renew or release any more.
            (None, Some(input)) => self.tell(slot, input),
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
        if process.life != life || process.core.is_none() || matches!(reply, Some(Reply::NotNow)) {
            return;
        }
        let now = process.machine.show(self.now);
        let had = process.client.has_session();
        let inputs = process.client.answered(now, token, reply);
        for input in inputs {
            self.tell(slot, input);
        }
        let client = &mut self.processes[slot].client;
        if !had && client.has_session() {
            for (call, bid) in client.unsent() {
                self.call(slot, call, StoreCall::Claim(bid));
            }
        }
    }

    pub(super) fn news(&mut self, slot: usize, life: u32, signal: Signal) {
        if self.processes[slot].life == life && self.processes[slot].cut_until <= self.now {
            self.tell(slot, Input::Signal(signal));
        }
    }

    /// A session is kept alive, whether it leads or not.
    pub(super) fn beat(&mut self, slot: usize, life: u32) {
        let process = &mut self.processes[slot];
        if process.life != life || process.core.is_none() {
            return;
        }
        let now = process.machine.boot(self.now);
        if let Some(token) = process.client.beat(now) {
            self.send(slot, token);
        }
        // A session that lives on must not hold anything for a candidate that is gone.
        let client = &mut self.processes[slot].client;
        let gone = client.unretired.clone();
        let on = self.election.clone();
        if let Some(token) = gone.and_then(|who| client.retire(now, &on, &who)) {
            self.send(slot, token);
        }
        self.plan(self.options.longest_ttl() / 3, Happening::Beat(slot, life));
    }

    fn believe(&mut self, slot: usize, epoch: Epoch, until: Boot) {
        let now = self.now;
        let process = &mut self.processes[slot];
        let leadership = SimLeadership { who: process.who.incarnation, epoch };
        let alternates = process.alternation.believes(epoch);
        let begins = process.work.is_none_or(|work| work.epoch != epoch);
        if begins {
            process.work = Some(SimWork { epoch, since: now, until });
        } else if let Some(work) = &mut process.work {
            work.until = until;
        }
        self.judge(alternates);
        self.trace.mix(epoch.get());
        for other in self.others_leading(slot) {
            let verdict = exclusion::check(leadership, other, &self.losses).map(drop);
            self.judge(verdict);
        }
        if begins {
            say!(self, "{slot} LEADS under {epoch:?}");
            self.tally.elections += 1;
            let verdict = self.epochs.begins(leadership, &self.losses);
            self.judge(verdict);
        }
    }

    fn end_work(&mut self, slot: usize, epoch: Epoch, by: Boot) {
        let process = &mut self.processes[slot];
        let verdict = process.alternation.ends(epoch);
        if let Some(work) = process.work.as_mut().filter(|work| work.epoch == epoch) {
            work.until = work.until.min(by);
        }
        let (life, killed) = (process.life, process.machine.when(by).max(self.now));
        let stop_timeout = nanos(self.options.plans[slot].settings.options().stop_timeout);
        let left = (killed - self.now).max(stop_timeout.min(MILLI));
        let takes = if self.rng.one_in(4) { left } else { self.rng.below(left + 1) / 2 };
        self.plan(takes + 1, Happening::WorkOver(slot, life, epoch));
        self.judge(verdict);
    }

    pub(super) fn work_over(&mut self, slot: usize, life: u32, epoch: Epoch) {
        let now = self.now;
        let process = &mut self.processes[slot];
        if process.life != life || process.work.is_none_or(|work| work.epoch != epoch) {
            return;
        }
        if let Some(work) = process.work.take() {
            let end = process.machine.when(work.until).clamp(work.since, now.max(work.since));
            self.tally.led += u128::from(end - work.since);
        }
        process.alternation.ended(epoch);
        self.tell(slot, Input::WorkEnded(epoch));
    }

    pub(super) fn timer(&mut self, slot: usize, life: u32) {
        let process = &mut self.processes[slot];
        if process.life != life || self.now < process.timer.0 {
            return;
        }
        process.timer = (u64::MAX, None);
        self.tell(slot, Input::Timeout);
    }

    /// After a process has done everything it wanted: its next time-out, and whether it takes part any more.
    fn settle(&mut self, slot: usize) {
        let late = if !self.healing && self.rng.one_in(20) { self.rng.below(20 * MILLI) } else { 1_000 };
        let (now, on) = (self.now, self.election.clone());
        let process = &mut self.processes[slot];
        let Some(core) = &process.core else { return };
        let (due, life) = (core.poll_timeout(), process.life);
        if process.timer.1 != due {
            let at = due.map(|due| process.machine.when(due).max(now).saturating_add(late));
            process.timer = (at.unwrap_or(u64::MAX), due);
            if let Some(at) = at {
                self.plan(at - now, Happening::Timer(slot, life));
            }
        }
        let process = &mut self.processes[slot];
        let Some(core) = &process.core else { return };
        if core.state() != StateName::Stopped
            || !core.is_quiet()
            || std::mem::replace(&mut process.retired, true)
        {
            return;
        }
        for (call, _) in process.client.unsent() {
            self.tell(slot, Input::Claimed(call, unknown()));
        }
        let process = &mut self.processes[slot];
        let (boot, who) = (process.machine.boot(now), process.who.clone());
        if let Some(token) = process.client.retire(boot, &on, &who) {
            self.send(slot, token);
        }
        let after = if self.healing { 10 * MILLI } else { self.rng.below(2 * self.options.longest_ttl()) };
        self.plan(after, Happening::Start(slot));
    }
}
