//! What a driver of cores does, as the contract of [`Core`](bellwether_core::Core) asks: every call is made, none
//! is dropped, every answer is given back however late, time-outs are kept. One driver serves all candidates of a process: what
//! is told of one election goes to its candidates, what is told of the connection goes to all.

use bellwether_core::{CoreEvent, ElectionName, Input, Outcome, Output, Reason, Signal, StoreCall};

use crate::call::Purpose;
use crate::connection::lock;
use crate::invariants::{conflict, exclusion, requests};
use crate::key::{ElectionKey, Seat};
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
            idle = if moved || self.nodes[node].is_woken() { 0 } else { idle + 1 };
            news_next = !news_next;
        }
        for seat in self.seats(node) {
            self.settle(seat);
        }
    }

    fn hear_news(&mut self, node: usize) -> bool {
        let mut moved = false;
        while let Some(notice) = self.nodes[node].poll_notice() {
            moved = true;
            for seat in self.hearers(node, notice.election.as_ref()) {
                self.tell(seat, Input::Signal(notice.signal.clone()));
            }
        }
        moved
    }

    /// Whom news of that election concerns, or news of all. Whoever has left an election hears no more of it, though a look for it was
    /// still under way.
    fn hearers(&self, node: usize, on: Option<&ElectionName>) -> Vec<Seat> {
        let key = on.map(ElectionKey::of);
        let hears = |seat: &Seat| {
            let candidate = self.candidate(*seat);
            candidate.follows && key.is_none_or(|key| candidate.key == key)
        };
        self.seats(node).filter(hears).collect()
    }

    fn hear_answers(&mut self, node: usize) -> bool {
        let (mut moved, mut from) = (false, 0);
        while let Some((answered, purpose, place)) = self.nodes[node].poll_task(&mut from) {
            moved = true;
            if let Some(input) = answered {
                self.answered(Seat { node, place }, input, purpose);
            }
        }
        moved
    }

    /// An answer to a call: what it says about others is compared with what the core makes of it.
    fn answered(&mut self, seat: Seat, input: Input, purpose: Purpose) {
        let node = &mut self.nodes[seat.node];
        let boot = node.machine.boot(self.now);
        let me = &mut node.candidates[seat.place];
        let led = me.believed();
        let mut over = None;
        match (&input, purpose) {
            (Input::Claimed(_, Outcome::Done(grant)), _) => {
                let settle = me.core.settings().options().settle;
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
        self.tell(seat, input);
        if let Some(led) = over {
            self.judge(conflict::check(led, self.candidate(seat).believed()));
        }
    }

    /// Hands an input to the core and does what it wants done.
    pub(crate) fn tell(&mut self, seat: Seat, input: Input) {
        let boot = self.nodes[seat.node].machine.show(self.now);
        if !matches!(input, Input::Timeout) {
            say!(self, "{seat} hears {input:?}");
        }
        if self.nodes[seat.node].process.is_none() {
            return;
        }
        let me = self.candidate_mut(seat);
        let led = me.believed();
        let over = match (&input, led) {
            (Input::Signal(Signal::Changed(seen)), Some(led)) => conflict::news_says_over(seen, led),
            (Input::Signal(Signal::Gone), Some(_)) => true,
            _ => false,
        };
        let priority = me.core.settings().options().priority;
        let (mut asked, mut cooldown, mut ill) = (None, None, false);
        match &input {
            Input::Signal(Signal::Changed(_) | Signal::Restored) => me.troubled = false,
            Input::Signal(Signal::Requested(request)) if requests::binds(&request.what, priority) => {
                let leads = led == Some(request.epoch);
                asked = Some((request.epoch, requests::over_by(&request.what, boot, leads)));
            }
            Input::Claimed(_, Outcome::Denied(seen)) => cooldown = seen.cooldown,
            Input::Health(false) => ill = true,
            Input::Health(true) => me.health.told(true),
            _ => {}
        }
        me.core.handle(boot, input);
        while let Some(output) = self.candidate_mut(seat).core.poll_output() {
            self.output(seat, output);
        }
        if let (true, Some(led)) = (over, led) {
            self.judge(conflict::check(led, self.candidate(seat).believed()));
        }
        // Only now: what time alone had made due was done before the core heard of this.
        let me = self.candidate_mut(seat);
        asked.into_iter().for_each(|(epoch, over_by)| me.requests.heard(epoch, boot, over_by));
        cooldown.into_iter().for_each(|span| me.cooldown.begins(boot, span));
        if ill {
            me.health.told(false);
        }
        let believed = me.believed();
        let threshold = me.core.settings().options().health_failures;
        let verdicts = [
            exclusion::agree(believed, me.work.map(|work| work.epoch)),
            me.grants.check(boot),
            me.requests.check(believed, boot),
            me.health.leads(threshold, believed),
        ];
        verdicts.into_iter().for_each(|verdict| self.judge(verdict));
    }

    fn output(&mut self, seat: Seat, output: Output) {
        match output {
            Output::Believe { epoch, until } => self.believe(seat, epoch, until),
            Output::EndWork { epoch, by, why } => {
                self.end_work(seat, epoch, by, why.is_none_or(Reason::is_planned));
            }
            Output::ExtendStop { epoch, by } => self.extend_stop(seat, epoch, by),
            Output::Event { what, .. } => self.told(seat, &what),
            Output::Call(call, what) => {
                say!(self, "{seat} calls {what:?} ({call:?})");
                self.judge_call(seat, &what);
                self.nodes[seat.node].begin(seat.place, call, what);
            }
        }
    }

    /// A call that a core wants made.
    fn judge_call(&mut self, seat: Seat, call: &StoreCall) {
        let (now, node) = (self.now, &mut self.nodes[seat.node]);
        let boot = node.machine.boot(now);
        let me = &mut node.candidates[seat.place];
        let mut verdicts = vec![me.quiet.calls(now, me.core.calls_unanswered())];
        match call {
            StoreCall::Release(grant, options) => {
                me.grants.given_back(grant.epoch);
                if let Some(span) = options.cooldown {
                    me.cooldown.begins(boot, span);
                }
            }
            StoreCall::Claim(_) => {
                verdicts.push(me.cooldown.claims(boot));
                verdicts.push(me.health.claims(me.core.settings().options().health_failures));
            }
            _ => {}
        }
        verdicts.into_iter().for_each(|verdict| self.judge(verdict));
    }

    fn told(&mut self, seat: Seat, told: &CoreEvent) {
        say!(self, "{seat} tells {told:?}");
        let me = self.candidate_mut(seat);
        let (key, verdict) = (me.key, me.alternation.told(told));
        match told {
            CoreEvent::Error(_) => me.troubled = true,
            CoreEvent::AcquireFailed { .. } | CoreEvent::Acquired { .. } => me.troubled = false,
            _ => {}
        }
        self.judge(verdict);
        if let CoreEvent::Lost { reason, .. } | CoreEvent::Suspended { reason, .. } = told {
            self.healing_lost(seat, key, *reason);
        }
    }
}
