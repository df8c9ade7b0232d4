//! Wrappers that make a store misbehave, on demand and the same way every time.
//!
//! Two things can be wrapped. [`FaultyRegister`] sits *below* the real [`Lease`](crate::Lease), which so meets lost
//! answers and late writes as it would on a bad network: the better test where there is a register.
//! [`FaultyBackend`] sits above any backend, for stores that hold by session.
//!
//! Both ask one [`Faults`] before every call. It says what happens to the next call of a kind, to every call of a
//! kind until [`heal`](Faults::heal), or to all of them (latency). Nothing is drawn at random and nothing waits for a
//! guessed time: what is held back is held by a [`Gate`] that the test opens.

mod backend;
mod gate;
mod register;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwether_core::{ErrorKind, StoreError};

pub use backend::FaultyBackend;
pub use gate::{GATE_MAX, Gate};
pub use register::FaultyRegister;

use crate::{Fut, lock};

/// Makes a call that can be made again and later out of one that borrows.
macro_rules! again {
    ($self:ident, $($owned:ident),* => |$inner:ident| $call:expr) => {{
        let $inner = Arc::clone(&$self.inner);
        $(let $owned = $owned.to_owned();)*
        move || -> $crate::Fut<'static, _> {
            let $inner = Arc::clone(&$inner);
            $(let $owned = $owned.clone();)*
            Box::pin(async move { $call.await })
        }
    }};
}

use again;

/// How many plans may wait. A test that queues more has lost count.
pub const PLANS_MAX: usize = 1_024;

/// What kind of call a fault is meant for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// A register's load; a backend's observe and listing.
    Read,
    /// A register's write; a backend's claim, renew, release and request.
    Write,
    /// History, cooldowns and create-once notes.
    Note,
}

/// What happens to a call.
#[derive(Clone, Debug)]
pub enum Fault {
    /// Nothing: to let calls through before a planned one.
    None,
    /// It reaches the store this much later.
    Slow(Duration),
    /// It never reaches the store, and the caller gets an error of this kind.
    Fails(ErrorKind),
    /// It is done, and the caller is told that nobody knows.
    LosesAnswer,
    /// It is done, and done again by somebody who missed the first answer; the caller gets the second one. A
    /// compare-and-set then conflicts with itself.
    Twice,
    /// It is done at once, and the answer waits at the gate.
    HoldsAnswer(Gate),
    /// The caller is told at once that nobody knows; it is done when the gate opens.
    HoldsDelivery(Gate),
}

/// The handle by which a test says what goes wrong. Clones share the plans.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    plans: Arc<Mutex<Plans>>,
}

#[derive(Debug, Default)]
struct Plans {
    next: HashMap<Op, VecDeque<Fault>>,
    always: HashMap<Op, Fault>,
    latency: Duration,
    calls: HashMap<Op, u64>,
}

impl Faults {
    /// Nothing goes wrong yet.
    pub fn new() -> Faults {
        Faults::default()
    }

    /// The next call of this kind that has no plan yet meets this.
    pub fn next(&self, op: Op, fault: Fault) {
        let mut plans = lock(&self.plans);
        let queue = plans.next.entry(op).or_default();
        assert!(queue.len() < PLANS_MAX, "more than {PLANS_MAX} faults are planned");
        queue.push_back(fault);
    }

    /// Every call of this kind meets this, once the planned ones are used up, until told otherwise.
    pub fn always(&self, op: Op, fault: Fault) {
        lock(&self.plans).always.insert(op, fault);
    }

    /// Every call takes this much longer to reach the store.
    pub fn latency(&self, latency: Duration) {
        lock(&self.plans).latency = latency;
    }

    /// From now on nothing goes wrong. Gates that are closed stay closed.
    pub fn heal(&self) {
        let mut plans = lock(&self.plans);
        plans.next.clear();
        plans.always.clear();
        plans.latency = Duration::ZERO;
    }

    /// How many calls of this kind have been made.
    pub fn calls(&self, op: Op) -> u64 {
        lock(&self.plans).calls.get(&op).copied().unwrap_or(0)
    }

    fn take(&self, op: Op) -> (Duration, Fault) {
        let mut plans = lock(&self.plans);
        *plans.calls.entry(op).or_default() += 1;
        let planned = plans.next.get_mut(&op).and_then(VecDeque::pop_front);
        let fault = planned.or_else(|| plans.always.get(&op).cloned()).unwrap_or(Fault::None);
        (plans.latency, fault)
    }

    /// Makes a call, with whatever is planned for it. `lost` is the answer that says how it failed.
    async fn meet<T: Send + 'static>(
        &self,
        op: Op,
        store: &'static str,
        call: impl Fn() -> Fut<'static, T> + Send + 'static,
        lost: impl Fn(StoreError) -> T,
    ) -> T {
        let (latency, fault) = self.take(op);
        if !latency.is_zero() {
            tokio::time::sleep(latency).await;
        }
        let gone = |what: &str| lost(StoreError::new(ErrorKind::TimedOut, store, what));
        match fault {
            Fault::None => call().await,
            Fault::Slow(span) => {
                tokio::time::sleep(span).await;
                call().await
            }
            Fault::Fails(kind) => lost(StoreError::new(kind, store, "a fault was planned: it was not sent")),
            Fault::LosesAnswer => {
                let _ = call().await;
                gone("a fault was planned: the answer was lost")
            }
            Fault::Twice => {
                let _ = call().await;
                call().await
            }
            Fault::HoldsAnswer(gate) => {
                let answer = call().await;
                gate.stand().await;
                gate.passed();
                answer
            }
            Fault::HoldsDelivery(gate) => {
                tokio::spawn(async move {
                    gate.stand().await;
                    let _ = call().await;
                    gate.passed();
                });
                gone("a fault was planned: it is still under way")
            }
        }
    }
}
