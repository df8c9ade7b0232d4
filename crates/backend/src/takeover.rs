//! When may a lock that came free be led on, and when does a heartbeat count? Pure judgement for stores where holding is
//! a property of a live session, as advisory locks of PostgreSQL are.
//!
//! Every process has two sessions: A has the lock, B the leader's *presence*, and the server ends either after a ttl of
//! silence. The argument for exclusion:
//!
//! - a leader believes from before it asked either session, and only if both answered, for ttl − margin;
//! - so while it believes, at least its B stands at the server, whatever became of A: a taker that finds nobody
//!   present leads at once, and one that finds somebody waits until that one is gone too;
//! - unless the server itself ended all sessions at once: it restarted, crashed, or another one was promoted. Then the
//!   last renewal was before that, and the wait is a ttl from then;
//! - the last renewal was before the lock was granted to the taker in any case, so a whole ttl from then is always
//!   enough.
//!
//! It owns no state but that of one takeover. It assumes that instants are read where the fields say, and that nobody but
//! the process itself, the server's time-out or the server's own end closes *both* sessions of a leader. Asking, and keeping
//! the order of what is asked, is left to the backend.

use std::time::Duration;

use bellwether_core::Boot;

/// A lock that was granted and is not led on yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    granted: Boot,
    ttl: Duration,
}

/// What the session of presence has to find at the server before this process becomes present there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Whatever it finds: a whole ttl has passed with the lock in hand.
    pub by_force: bool,
    /// Nobody else is present, and the server has not ended sessions of its own accord for this long, on its own clock.
    pub quiet: Duration,
}

/// A holder that was seen, and has not said since that it released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Witness {
    /// When, read after the answer.
    pub(crate) at: Boot,
    /// How long its session had been silent then.
    pub(crate) silent: Duration,
}

impl Taken {
    /// `granted` was read after the answer that brought the lock.
    pub(crate) fn new(granted: Boot, ttl: Duration) -> Taken {
        Taken { granted, ttl }
    }

    /// By then nobody believes, whatever happened before the lock was granted.
    pub(crate) fn until(&self) -> Boot {
        self.granted + self.ttl
    }

    /// What B has to find. `now` was read before B is asked; `stood_since` is when the younger of this process's own
    /// two sessions was there, read *after* it was opened.
    ///
    /// A session that has stood for a ttl proves by itself that the server did not end sessions meanwhile. Only a
    /// younger one has to take the server's word for it.
    pub(crate) fn condition(&self, now: Boot, stood_since: Boot) -> Condition {
        let stood = now.since(stood_since) >= self.ttl;
        let quiet = if stood { Duration::ZERO } else { self.ttl };
        Condition { by_force: now >= self.until(), quiet }
    }
}

impl Condition {
    /// Whatever is found: for what is led already, and for a lock that was in hand for a ttl.
    pub const BY_FORCE: Condition = Condition { by_force: true, quiet: Duration::ZERO };

    /// Never met: for a look at what there is.
    pub const NEVER: Condition = Condition { by_force: false, quiet: Duration::MAX };

    /// Whether it is met by what is found. PostgreSQL asks the same in one statement with the taking of presence.
    pub fn is_met(&self, others_present: bool, quiet: Duration) -> bool {
        self.by_force || (!others_present && quiet >= self.quiet)
    }
}

impl Witness {
    /// Whether its session ended while it was still talking, as opposed to having been silent for its ttl.
    pub(crate) fn crashed(self, now: Boot, ttl: Duration) -> bool {
        let since = now.since(self.at);
        self.silent + since + ttl / 20 < ttl || since > ttl
    }
}

/// What a heartbeat proves of a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proven {
    /// It counts, from before either session was asked.
    Held,
    /// The lock is gone: so is the leadership.
    Lost,
    /// The lock is there and presence is not: B was replaced. Become present, and beat again.
    Absent,
    /// Nobody knows.
    Nothing,
}

impl Proven {
    /// By a heartbeat that left after the renewal was asked for: whether A has the lock and whether B is present; `None` where no
    /// answer came.
    pub(crate) fn by(lock: Option<bool>, presence: Option<bool>) -> Proven {
        match (lock, presence) {
            (Some(false), _) => Proven::Lost,
            (Some(true), Some(true)) => Proven::Held,
            (Some(true), Some(false)) => Proven::Absent,
            (Some(true), None) | (None, _) => Proven::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(10);

    fn at(seconds: u64) -> Boot {
        Boot::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn a_session_that_has_stood_for_a_ttl_needs_nobodys_word() {
        let taken = Taken::new(at(100), TTL);
        let condition = taken.condition(at(100), at(90));
        assert_eq!(condition, Condition { by_force: false, quiet: Duration::ZERO });
        assert!(condition.is_met(false, Duration::ZERO));
        assert!(!condition.is_met(true, TTL * 9), "somebody is present");
    }

    #[test]
    fn a_younger_one_waits_until_the_server_was_quiet_for_a_ttl() {
        let condition = Taken::new(at(100), TTL).condition(at(101), at(92));
        assert!(!condition.is_met(false, TTL - Duration::from_millis(1)));
        assert!(condition.is_met(false, TTL));
    }

    #[test]
    fn a_ttl_with_the_lock_in_hand_is_enough_whoever_is_present() {
        let taken = Taken::new(at(100), TTL);
        assert!(!taken.condition(at(109), at(109)).by_force);
        assert!(taken.condition(at(110), at(109)).is_met(true, Duration::ZERO));
        assert_eq!(taken.until(), at(110));
    }

    #[test]
    fn a_holder_that_went_while_it_talked_crashed_and_one_that_fell_silent_did_not() {
        let crashed = |silent, seen| {
            Witness { at: at(seen), silent: Duration::from_secs(silent) }.crashed(at(100), TTL)
        };
        assert!(crashed(1, 98) && crashed(0, 80));
        assert!(!crashed(9, 99));
        assert!(!crashed(0, 90), "seen a ttl ago, and no longer");
    }

    #[test]
    fn silence_that_all_but_reached_the_ttl_is_no_crash() {
        let last = |millis| Witness { at: at(99), silent: Duration::from_millis(millis) };
        assert!(last(8_499).crashed(at(100), TTL));
        assert!(!last(8_500).crashed(at(100), TTL), "a twentieth of the ttl is left for being late");
    }

    #[test]
    fn a_heartbeat_counts_only_if_both_sessions_answered_for_it() {
        let proves = Proven::by;
        assert_eq!(proves(Some(true), Some(true)), Proven::Held);
        assert_eq!(proves(Some(true), Some(false)), Proven::Absent);
        assert_eq!(proves(Some(true), None), Proven::Nothing);
        assert_eq!(proves(None, Some(true)), Proven::Nothing);
        for presence in [None, Some(false), Some(true)] {
            assert_eq!(proves(Some(false), presence), Proven::Lost);
        }
    }
}
