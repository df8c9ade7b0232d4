//! What the driver reports of itself, at the instant it happens: how long calls took and how they ended, the connection, states, and
//! gaps without a leader.
//!
//! The driver calls an observer in the middle of its work, so an observer must not be able to hold it up. Therefore an observer is not
//! user code: it is a set of counters ([`Measured`]) that are added to without a lock, without a system call but for reading the
//! clock, and without memory being allocated. Whoever reads them, however slowly, reads the same counters and holds nobody up.
//! A candidate without an observer does not even read the clock for it.

mod gaps;
mod histogram;
mod measured;
mod renewals;

use std::sync::Arc;

use bellwether_core::{Boot, Candidate, Epoch, Input, Outcome, Reason, Seen, StoreCall, StoreError};
use gaps::Gaps;

pub(crate) use gaps::Gap;
#[cfg(feature = "metrics")]
pub(crate) use histogram::Histogram;
pub(crate) use measured::{Ended, Kind, Measured};
pub(crate) use renewals::Renewal;

use crate::connection::Connection;
use crate::event::{Event, What};
use crate::time::Time;

/// Watches one start of one candidate. The driver owns it.
pub(crate) struct Observer {
    measured: Arc<Measured>,
    gaps: Gaps,
    leading_since: Option<Boot>,
}

impl Observer {
    #[cfg_attr(not(feature = "metrics"), expect(dead_code, reason = "nothing else reads the counters"))]
    pub(crate) fn new(measured: Arc<Measured>) -> Observer {
        Observer { measured, gaps: Gaps::default(), leading_since: None }
    }

    /// A call is about to be made.
    pub(crate) fn call(&self, time: &Time, what: &StoreCall) -> Stopwatch {
        let kind = match what {
            StoreCall::Claim(_) => Kind::Claim,
            StoreCall::Renew { .. } => Kind::Renew,
            StoreCall::Release(..) => Kind::Release,
            StoreCall::Observe => Kind::Observe,
            StoreCall::Request(_) => Kind::Request,
        };
        Stopwatch { measured: Arc::clone(&self.measured), time: time.clone(), begun: time.boot(), kind }
    }

    /// The machine is about to be told this.
    pub(crate) fn input(&mut self, now: Boot, who: &Candidate, input: &Input) {
        if let Some(seen) = seen(input) {
            self.gaps.saw(now, who, seen);
        }
    }

    pub(crate) fn event(&mut self, event: &Event) {
        match &event.what {
            What::StateChanged { from, to } => self.measured.transition(*from, *to),
            What::Acquired { .. } | What::Resumed { .. } => {
                self.leading_since = Some(event.boot);
                if let Some((gap, span)) = self.gaps.acquired(event.boot) {
                    self.measured.gap(gap, span);
                }
            }
            What::Released { confirmed, .. } => self.ended(event.boot, *confirmed),
            What::Lost { reason, deadline, released, .. } => {
                self.lost(event.boot.min(*deadline), *reason, *released)
            }
            What::Suspended { reason, deadline, .. } => self.lost(event.boot.min(*deadline), *reason, false),
            What::Error(error) => self.measured.failure(error.kind()),
            _ => {}
        }
    }

    pub(crate) fn connection(&self, now: Connection) {
        self.measured.set_connection(now);
    }

    /// The highest epoch of the election that is known.
    pub(crate) fn epoch(&self, highest: Epoch) {
        self.measured.set_epoch(highest);
    }

    fn lost(&mut self, at: Boot, reason: Reason, released: bool) {
        self.measured.loss(reason);
        self.ended(at, released);
    }

    fn ended(&mut self, at: Boot, released: bool) {
        if let Some(since) = self.leading_since.take() {
            self.measured.led(at.since(since));
        }
        self.gaps.ended(at, released);
    }
}

/// Measures one call.
pub(crate) struct Stopwatch {
    measured: Arc<Measured>,
    time: Time,
    begun: Boot,
    kind: Kind,
}

impl Stopwatch {
    /// The answer is here.
    pub(crate) fn stop(self, answer: &Input) {
        let Some(how) = ended(answer) else { return };
        let now = self.time.boot();
        let took = now.since(self.begun);
        self.measured.call(self.kind, how, took);
        if self.kind == Kind::Renew {
            self.measured.renewals.add(Renewal { at: now, took, how });
        }
    }
}

fn ended(answer: &Input) -> Option<Ended> {
    fn of<T>(outcome: &Outcome<T>) -> Ended {
        match outcome {
            Outcome::Done(_) => Ended::Done,
            Outcome::Denied(_) => Ended::Denied,
            Outcome::Unknown(_) => Ended::Unknown,
            Outcome::Refused(_) => Ended::Refused,
        }
    }
    let failed = |error: &StoreError| if error.is_retryable() { Ended::Unknown } else { Ended::Refused };
    match answer {
        Input::Claimed(_, outcome) | Input::Renewed(_, outcome) => Some(of(outcome)),
        Input::Released(_, outcome) | Input::Requested(_, outcome) => Some(of(outcome)),
        Input::Observed(_, result) => Some(result.as_ref().map_or_else(failed, |_| Ended::Done)),
        _ => None,
    }
}

/// What this input shows of the record.
fn seen(input: &Input) -> Option<&Seen> {
    use bellwether_core::Signal::Changed;
    match input {
        Input::Signal(Changed(seen)) | Input::Observed(_, Ok(seen)) => Some(seen),
        Input::Claimed(_, Outcome::Denied(seen)) | Input::Renewed(_, Outcome::Denied(seen)) => Some(seen),
        _ => None,
    }
}
