//! The counters of one election: written by the driver, read by whoever wants to know.
//!
//! Their number is fixed, whatever happens in the election: one for each word of a closed list.

use std::sync::Mutex;
use std::sync::Weak;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use bellwether_core::{Epoch, ErrorKind, Reason, StateName};

use super::{Gap, histogram::Histogram, renewals::Renewals};
use crate::connection::Connection;
use crate::shared::Shared;

/// A kind of call to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Claim,
    Renew,
    Release,
    Observe,
    Request,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Done,
    Denied,
    Unknown,
    Refused,
}

impl Kind {
    pub(crate) const ALL: [Kind; 5] = [Kind::Claim, Kind::Renew, Kind::Release, Kind::Observe, Kind::Request];

    #[cfg(feature = "metrics")]
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Kind::Claim => "claim",
            Kind::Renew => "renew",
            Kind::Release => "release",
            Kind::Observe => "observe",
            Kind::Request => "request",
        }
    }
}

impl Ended {
    pub(crate) const ALL: [Ended; 4] = [Ended::Done, Ended::Denied, Ended::Unknown, Ended::Refused];

    #[cfg(feature = "metrics")]
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Ended::Done => "success",
            Ended::Denied => "denied",
            Ended::Unknown => "unknown",
            Ended::Refused => "refused",
        }
    }
}

const STATES: usize = StateName::ALL.len();

/// The counters of one election.
#[derive(Debug)]
pub(crate) struct Measured {
    /// Those that count here: one, unless a program has two candidates with the same election and id. Locked by readers and at a
    /// start, never by the driver.
    #[cfg_attr(not(feature = "metrics"), expect(dead_code, reason = "only readers want to know"))]
    pub(crate) candidates: Mutex<Vec<Weak<Shared>>>,
    connection: AtomicU8,
    epoch: AtomicU64,
    transitions: [[AtomicU64; STATES]; STATES],
    failures: [AtomicU64; ErrorKind::ALL.len()],
    losses: [AtomicU64; Reason::ALL.len()],
    calls: [[AtomicU64; Ended::ALL.len()]; Kind::ALL.len()],
    call_nanos: [AtomicU64; Kind::ALL.len()],
    pub(crate) renewals: Renewals,
    pub(crate) renewed: Histogram<10>,
    pub(crate) not_renewed: Histogram<10>,
    pub(crate) led: Histogram<12>,
    pub(crate) handovers: Histogram<16>,
    pub(crate) failovers: Histogram<16>,
}

impl Default for Measured {
    fn default() -> Measured {
        let (ms, second) = (Duration::from_millis(1), Duration::from_secs(1));
        Measured {
            candidates: Mutex::default(),
            connection: AtomicU8::new(0),
            epoch: AtomicU64::new(0),
            transitions: std::array::from_fn(|_| zeros()),
            failures: zeros(),
            losses: zeros(),
            calls: std::array::from_fn(|_| zeros()),
            call_nanos: zeros(),
            renewals: Renewals::default(),
            renewed: Histogram::from(ms),
            not_renewed: Histogram::from(ms),
            led: Histogram::from(second),
            handovers: Histogram::from(ms),
            failovers: Histogram::from(ms),
        }
    }
}

fn zeros<const N: usize>() -> [AtomicU64; N] {
    std::array::from_fn(|_| AtomicU64::new(0))
}

fn place<T: PartialEq>(all: &[T], one: &T) -> usize {
    all.iter().position(|other| other == one).expect("a word is in the list of all words")
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// What the driver reports.
impl Measured {
    pub(super) fn call(&self, kind: Kind, how: Ended, took: Duration) {
        let row = place(&Kind::ALL, &kind);
        count(&self.calls[row][place(&Ended::ALL, &how)]);
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.call_nanos[row].fetch_add(nanos, Ordering::Relaxed);
        match (kind, how) {
            (Kind::Renew, Ended::Done) => self.renewed.add(took),
            (Kind::Renew, _) => self.not_renewed.add(took),
            _ => {}
        }
    }

    pub(super) fn transition(&self, from: StateName, to: StateName) {
        count(&self.transitions[place(&StateName::ALL, &from)][place(&StateName::ALL, &to)]);
    }

    pub(super) fn failure(&self, kind: ErrorKind) {
        count(&self.failures[place(&ErrorKind::ALL, &kind)]);
    }

    pub(super) fn loss(&self, reason: Reason) {
        count(&self.losses[place(&Reason::ALL, &reason)]);
    }

    pub(super) fn led(&self, span: Duration) {
        self.led.add(span);
    }

    pub(super) fn gap(&self, gap: Gap, span: Duration) {
        match gap {
            Gap::Handover => self.handovers.add(span),
            Gap::Failover => self.failovers.add(span),
        }
    }

    pub(super) fn set_connection(&self, now: Connection) {
        self.connection.store(u8::from(now == Connection::Connected), Ordering::Relaxed);
    }

    pub(super) fn set_epoch(&self, highest: Epoch) {
        self.epoch.fetch_max(highest.get(), Ordering::Relaxed);
    }
}

/// What readers ask for.
#[cfg(feature = "metrics")]
impl Measured {
    pub(crate) fn is_connected(&self) -> bool {
        self.connection.load(Ordering::Relaxed) == 1
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }

    pub(crate) fn calls(&self, kind: Kind, how: Ended) -> u64 {
        self.calls[place(&Kind::ALL, &kind)][place(&Ended::ALL, &how)].load(Ordering::Relaxed)
    }

    pub(crate) fn call_time(&self, kind: Kind) -> Duration {
        Duration::from_nanos(self.call_nanos[place(&Kind::ALL, &kind)].load(Ordering::Relaxed))
    }

    pub(crate) fn transitions(&self, from: StateName, to: StateName) -> u64 {
        let row = &self.transitions[place(&StateName::ALL, &from)];
        row[place(&StateName::ALL, &to)].load(Ordering::Relaxed)
    }

    pub(crate) fn failures(&self, kind: ErrorKind) -> u64 {
        self.failures[place(&ErrorKind::ALL, &kind)].load(Ordering::Relaxed)
    }

    pub(crate) fn losses(&self, reason: Reason) -> u64 {
        self.losses[place(&Reason::ALL, &reason)].load(Ordering::Relaxed)
    }

    /// The time until the last deadline of those that lead; `None` when nobody here leads. By the deadline itself, so that it is right
    /// while the driver does not run.
    pub(crate) fn remaining(&self) -> Option<Duration> {
        let candidates = bellwether_backend::lock(&self.candidates);
        candidates.iter().filter_map(Weak::upgrade).filter_map(|shared| shared.remaining()).max()
    }
}
