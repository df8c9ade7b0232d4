//! What a driver of the core does, as the contract of [`Core`](bellwether_core::Core) asks: every call is made, none
//! is dropped, every answer is given back however late, the work is stopped when told, time-outs are kept.

use std::sync::Arc;

use bellwether_core::{
    Boot, Candidate, CoreEvent, Epoch, Input, Outcome, Output, Reason, Signal, StateName, StoreCall,
};

use crate::call::Purpose;
use crate::connection::lock;
use crate::invariants::exclusion::{self, SimLeadership};
use crate::invariants::{conflict, requests};
use crate::node::SimWork;
use crate::queue::WorldEvent;
use crate::time::{MILLI, nanos};
use crate::world::{World, say};

impl World {
    /// Lets a process read its news and answers, act on them, and send what it wants to send.
    pub(crate) fn step(&mut self, node: usize) {
        if !self.nodes[node].runs() {
            return;
        }
        self.nodes[node].machine.show(self.now);
        lock(&self.nodes[node].connection).now = self.now;
        // Answers and news are ready at once; which of them a driver takes first is a matter of luck. But no call succeeds over a
        // connection that is back before that is heard.
        let back = lock(&self.nodes[node].connection).is_back();
        let mut news_next = self.rng.one_in(2) || back;
        let mut idle = 0;
        while idle < 2 && self.violation.is_none() {
            let moved = if news_next { self.hear_news(node) } else { self.hear_answers(node) };
            self.flush(node);
            idle = if moved { 0 } else { idle + 1 };
            news_next = !news_next;
        }
        self.settle(node);
    }

    fn hear_news(&mut self, node: usize) -> bool {
        let mut moved = false;
        while let Some(signal) = self.nodes[node].poll_signal() {
            moved = true;
            // Whoever has left the election hears no more of it, though a look for it was still under way.
            if lock(&self.nodes[node].connection).followed {
                self.tell(node, Input::Signal(signal));
            }
        }
        moved
    }

    fn hear_answers(&mut self, node: usize) -> bool {
        let (mut moved, mut from) = (false, 0);
        while let Some((answered, purpose)) = self.nodes[node].poll_task(&mut from) {
            moved = true;
            if let Some(input) = answered {
                self.answered(node, input, purpose);
            }
        }
        moved
    }

    /// An answer to a call: what it says about others is compared with what the core makes of it.
    fn answered(&mut self, node: usize, input: Input, purpose: Purpose) {
        let me = &mut self.nodes[node];
        let Some(process) = &me.process else { return };
        let led = process.core.leadership().map(|(epoch, _)| epoch);
        let mut over = None;
        match (&input, purpose) {
            (Input::Claimed(_, Outcome::Done(grant)), _) => {
                let boot = me.machine.boot(self.now);
                let settle = process.core.settings().options().settle;
                // What was granted over the head of a present leadership is given back when its work has ended.
                let until = match me.work {
                    Some(work) if work.epoch < grant.epoch => {
                        work.until.max(boot) + std::time::Duration::from_secs(1)
                    }
                    _ if grant.after_crash => boot + settle + settle / 10,
                    _ => boot,
                };
                me.grants.granted(grant.epoch, until);
            }
            (Input::Renewed(_, Outcome::Denied(seen)), Purpose::Renew(_, epoch))
                if led == Some(epoch) && conflict::says_over(seen, &me.who, epoch) =>
            {
                over = led;
            }
            _ => {}
        }
        self.tell(node, input);
        if let Some(led) = over {
            self.judge_over(node, led);
        }
    }

    fn judge_over(&mut self, node: usize, led: Epoch) {
        let leads = self.nodes[node].process.as_ref().and_then(|process| process.core.leadership());
        self.judge(conflict::check(led, leads.map(|(epoch, _)| epoch)));
    }

    /// Hands an input to the core and does what it wants done.
    pub(crate) fn tell(&mut self, node: usize, input: Input) {
        let boot = self.nodes[node].machine.show(self.now);
        if !matches!(input, Input::Timeout) {
            say!(self, "{node} hears {input:?}");
        }
        let Some(process) = &mut self.nodes[node].process else { return };
        let led = process.core.leadership().map(|(epoch, _)| epoch);
        let over = match (&input, led) {
            (Input::Signal(Signal::Changed(seen)), Some(led)) => conflict::news_says_over(seen, led),
            (Input::Signal(Signal::Gone), Some(_)) => true,
            _ => false,
        };
        let priority = process.core.settings().options().priority;
        let (mut asked, mut cooldown, mut ill) = (None, None, false);
        if let Input::Signal(Signal::Changed(_) | Signal::Restored) = &input {
            self.nodes[node].troubled = false;
        }
        match &input {
            Input::Signal(Signal::Requested(request)) if requests::binds(&request.what, priority) => {
                let leads = led == Some(request.epoch);
                asked = Some((request.epoch, requests::over_by(&request.what, boot, leads)));
            }
            Input::Claimed(_, Outcome::Denied(seen)) => cooldown = seen.cooldown,
            Input::Health(false) => ill = true,
            Input::Health(true) => self.nodes[node].health.told(true),
            _ => {}
        }
        if let Some(process) = &mut self.nodes[node].process {
            process.core.handle(boot, input);
        }
        while let Some(output) = self.nodes[node].process.as_mut().and_then(|p| p.core.poll_output()) {
            self.output(node, output);
        }
        if let (true, Some(led)) = (over, led) {
            self.judge_over(node, led);
        }
        // Only now: what time alone had made due was done before the core heard of this.
        let me = &mut self.nodes[node];
        asked.into_iter().for_each(|(epoch, over_by)| me.requests.heard(epoch, boot, over_by));
        cooldown.into_iter().for_each(|span| me.cooldown.begins(boot, span));
        if ill {
            me.health.told(false);
        }
        let Some(process) = &me.process else { return };
        let believed = process.core.leadership().map(|(epoch, _)| epoch);
        let threshold = process.core.settings().options().health_failures;
        let verdicts = [
            exclusion::agree(believed, me.work.map(|work| work.epoch)),
            me.grants.check(boot),
            me.requests.check(believed, boot),
            me.health.leads(threshold, believed),
        ];
        verdicts.into_iter().for_each(|verdict| self.judge(verdict));
    }

    fn output(&mut self, node: usize, output: Output) {
        match output {
            Output::Believe { epoch, until } => self.believe(node, epoch, until),
            Output::EndWork { epoch, by, why } => {
                self.end_work(node, epoch, by, why.is_none_or(Reason::is_planned));
            }
            Output::ExtendStop { epoch, by } => self.extend_stop(node, epoch, by),
            Output::Event { what, .. } => self.told(node, &what),
            Output::Call(call, what) => {
                say!(self, "{node} calls {what:?} ({call:?})");
                self.judge_call(node, &what);
                self.nodes[node].begin(&self.election, call, what);
            }
        }
    }

    /// A call that the core wants made.
    fn judge_call(&mut self, node: usize, call: &StoreCall) {
        let me = &mut self.nodes[node];
        let Some(process) = &me.process else { return };
        let mut verdicts = vec![me.quiet.calls(self.now, process.core.calls_unanswered())];
        let boot = me.machine.boot(self.now);
        match call {
            StoreCall::Release(grant, options) => {
                me.grants.given_back(grant.epoch);
                if let Some(span) = options.cooldown {
                    me.cooldown.begins(boot, span);
                }
            }
            StoreCall::Claim(_) => {
                verdicts.push(me.cooldown.claims(boot));
                verdicts.push(me.health.claims(process.core.settings().options().health_failures));
            }
            _ => {}
        }
        verdicts.into_iter().for_each(|verdict| self.judge(verdict));
    }

    fn believe(&mut self, node: usize, epoch: Epoch, until: Boot) {
        let me = &mut self.nodes[node];
        let leadership = SimLeadership { who: me.who.incarnation, epoch };
        let alternates = me.alternation.believes(epoch);
        let begins = me.work.is_none_or(|work| work.epoch != epoch);
        if begins {
            me.work = Some(SimWork { epoch, since: self.now, until });
            me.grants.led(epoch);
        } else if let Some(work) = &mut me.work {
            work.until = until;
        }
        self.judge(alternates);
        self.trace.mix(epoch.get());
        for other in self.others_leading(node) {
            if self.clones.excuse(leadership, other) {
                continue;
            }
            match exclusion::check(leadership, other, &self.losses) {
                Ok(excused) => self.tally.excused += u64::from(excused && begins),
                Err(finding) => self.judge(Err(finding)),
            }
        }
        if begins {
            self.tally.elections += 1;
            say!(self, "{node} LEADS under {epoch:?}");
            let verdict = self.epochs.begins(leadership, &self.losses);
            self.judge(verdict);
            let verdict = self.owners.owns(leadership, &self.losses);
            self.judge(verdict);
            self.healing_led(node);
        }
    }

    /// The work is told to stop: it takes its time, sometimes more than it has.
    fn end_work(&mut self, node: usize, epoch: Epoch, by: Boot, planned: bool) {
        let me = &mut self.nodes[node];
        let verdict = me.alternation.ends(epoch);
        if let Some(work) = &mut me.work
            && work.epoch == epoch
        {
            work.until = work.until.min(by);
        }
        let killed = me.machine.when(by).max(self.now);
        let stop_timeout =
            me.process.as_ref().map_or(0, |process| nanos(process.core.settings().options().stop_timeout));
        // An end that is forced is one: whatever protects the work ends then, and so does the work.
        let left = (killed - self.now).max(if planned { stop_timeout } else { 0 });
        let takes = match self.rng.below(16) {
            0..=3 => 0,
            4 => left + self.rng.below(20 * MILLI),
            _ => self.rng.below(left + 1) / 2,
        };
        say!(self, "{node} STOPS work of {epoch:?}, over in {takes}ns of {left}ns");
        let whose = self.nodes[node].who.incarnation;
        self.queue.push(self.now + takes + 1, WorldEvent::WorkOver(node, whose, epoch));
        self.judge(verdict);
    }

    /// The work is protected for longer while it stops.
    fn extend_stop(&mut self, node: usize, epoch: Epoch, by: Boot) {
        if let Some(work) = self.nodes[node].work.as_mut().filter(|work| work.epoch == epoch) {
            work.until = work.until.max(by);
        }
    }

    pub(crate) fn work_over(&mut self, node: usize, epoch: Epoch) {
        let me = &mut self.nodes[node];
        if me.process.is_none() || me.work.is_none_or(|work| work.epoch != epoch) {
            return;
        }
        if me.frozen {
            me.work_over = Some(epoch);
            return;
        }
        self.forget_work(node);
        self.nodes[node].alternation.ended(epoch);
        self.tell(node, Input::WorkEnded(epoch));
        self.step(node);
    }

    /// The work is gone, one way or the other.
    pub(crate) fn forget_work(&mut self, node: usize) {
        let me = &mut self.nodes[node];
        if let Some(work) = me.work.take() {
            let end = me.machine.when(work.until).clamp(work.since, self.now.max(work.since));
            self.tally.led += u128::from(end - work.since);
        }
    }

    fn told(&mut self, node: usize, told: &CoreEvent) {
        say!(self, "{node} tells {told:?}");
        let verdict = self.nodes[node].alternation.told(told);
        self.judge(verdict);
        match told {
            CoreEvent::Error(_) => self.nodes[node].troubled = true,
            CoreEvent::AcquireFailed { .. } | CoreEvent::Acquired { .. } => self.nodes[node].troubled = false,
            _ => {}
        }
        if let CoreEvent::Lost { reason, .. } | CoreEvent::Suspended { reason, .. } = told {
            self.healing_lost(node, *reason);
        }
    }

    /// After a process has done everything it wanted: its next time-out, and whether it takes part any more.
    fn settle(&mut self, node: usize) {
        let me = &self.nodes[node];
        let Some(process) = &me.process else { return };
        let due = process.core.poll_timeout();
        if me.timer.1 != due {
            let at = due.map(|due| me.machine.when(due).max(self.now));
            let at = at.map_or(u64::MAX, |at| at.saturating_add(self.lateness()));
            self.nodes[node].timer = (at, due);
            if due.is_some() {
                self.queue.push(at, WorldEvent::Timer(node));
            }
        }
        let Some(process) = &self.nodes[node].process else { return };
        let believed = process.core.leadership().map(|(epoch, _)| epoch);
        let verdict = self.nodes[node].requests.check_heard(believed);
        self.judge(verdict);
        let Some(process) = &self.nodes[node].process else { return };
        if self.nodes[node].slot.is_none() || process.core.state() != StateName::Stopped {
            return;
        }
        if process.core.is_quiet() && lock(&self.nodes[node].connection).followed {
            let backend = Arc::clone(&process.backend);
            backend.unfollow(&self.election);
            backend.retire(&self.election, &self.nodes[node].who);
        }
        if !self.nodes[node].start_planned {
            self.nodes[node].start_planned = true;
            let pause = match self.heal {
                Some(_) => 10 * MILLI,
                None => self.rng.below(2 * self.options.longest_ttl()),
            };
            self.queue.push(self.now + pause, WorldEvent::StartAgain(node));
        }
    }

    pub(crate) fn timer(&mut self, node: usize) {
        let me = &mut self.nodes[node];
        // A time-out that was moved is another event; one of a process that stands still waits for it.
        if !me.runs() || self.now < me.timer.0 {
            return;
        }
        me.timer = (u64::MAX, None);
        self.tell(node, Input::Timeout);
        self.step(node);
    }

    /// Who was stopped takes part again as a new incarnation on the same connection, once nothing of the old one
    /// is under way: that is what a program's `stop` and `start` do.
    pub(crate) fn start_again(&mut self, node: usize) {
        let me = &self.nodes[node];
        let Some(process) = &me.process else { return };
        if me.frozen || !process.core.is_quiet() {
            let pause = if self.heal.is_some() { MILLI } else { 100 * MILLI };
            self.queue.push(self.now + pause, WorldEvent::StartAgain(node));
            return;
        }
        let settings = process.core.settings().clone();
        let who = Candidate { id: me.who.id.clone(), incarnation: self.draw_incarnation() };
        let core = self.candidate(settings, who);
        self.nodes[node].begin_anew(core);
        say!(self, "{node} is now {:?}", self.nodes[node].who);
        self.start(node);
    }
}
