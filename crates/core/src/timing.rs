//! Durations that are safe together.
//!
//! ```text
//! sent            renew                 stop      deadline   sent + ttl
//!  ├────────────────┼──────────────────────┼──────────┼──────────┤
//!  │ call leaves    │ next renewal leaves  │ work is  │ belief   │ earliest takeover, on the
//!  │                │                      │ told to  │ ends     │ taker's own clock, from when
//!  │                │                      │ stop     │          │ it first saw the record
//! ```

use std::fmt;
use std::time::Duration;

use crate::Boot;

/// The shortest and longest ttl. Below a tenth of a second, a pause of the scheduler ends leaderships; above a day, the ttl is
/// surely mistyped.
pub const TTL_RANGE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(86_400));

/// The time from KILL to the deadline, where the work is a process: the kernel needs it to tear a process tree down.
pub const KILL_LEAD: Duration = Duration::from_millis(50);

/// The longest wait of a follower that keeps losing races for a free record. Fifty followers that claim within it are a millisecond apart on
/// average.
const STAGGER_MAX: Duration = Duration::from_millis(50);

/// Settings that are not safe or contradict each other, and what to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadSettings(String);

impl BadSettings {
    pub(crate) fn new(sentence: impl Into<String>) -> BadSettings {
        BadSettings(sentence.into())
    }
}

impl fmt::Display for BadSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadSettings {}

/// Durations that were checked against each other: every `Timing` is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    ttl: Duration,
    renew: Duration,
    retry: Duration,
    margin: Duration,
    call_timeout: Duration,
    work_grace: Duration,
}

/// Durations to check with [`Timing::new`]. `None` stands for a default that depends on the ttl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimingOptions {
    /// How long a grant lasts without renewal.
    pub ttl: Duration,
    /// The ttl is rounded up to a multiple of this, because the store keeps no finer ones; zero for any.
    pub ttl_unit: Duration,
    /// The time from one renewal to the next; by default a third of the ttl.
    pub renew: Option<Duration>,
    /// The pause before trying again, where the store announces no change; by default 2/15 of the ttl.
    pub retry: Option<Duration>,
    /// How much earlier than the ttl the leader stops; by default a tenth of the ttl.
    pub margin: Option<Duration>,
    /// After this time the outcome of a call counts as unknown; by default three fifths of the renewal interval.
    pub call_timeout: Option<Duration>,
    /// The time between telling the work to stop and killing it; zero for work that can be dropped.
    pub work_grace: Duration,
}

impl Default for TimingOptions {
    fn default() -> TimingOptions {
        TimingOptions {
            ttl: Duration::from_secs(15),
            ttl_unit: Duration::ZERO,
            renew: None,
            retry: None,
            margin: None,
            call_timeout: None,
            work_grace: Duration::ZERO,
        }
    }
}

impl TimingOptions {
    /// The ttl as the store keeps it.
    pub fn rounded_ttl(&self) -> Duration {
        let (ttl, unit) = (self.ttl, self.ttl_unit);
        let over = ttl.as_nanos().checked_rem(unit.as_nanos()).unwrap_or(0);
        let missing = if over == 0 { 0 } else { unit.as_nanos() - over };
        ttl.saturating_add(Duration::from_nanos(u64::try_from(missing).unwrap_or(u64::MAX)))
    }
}

impl Timing {
    /// Checks the options against each other.
    pub fn new(options: &TimingOptions) -> Result<Timing, BadSettings> {
        let ttl = options.rounded_ttl();
        let (shortest, longest) = TTL_RANGE;
        if ttl < shortest || ttl > longest {
            return Err(BadSettings::new(format!(
                "the ttl must be from {shortest:?} to 24h, and it is {ttl:?}"
            )));
        }
        let renew = options.renew.unwrap_or(ttl / 3);
        let timing = Timing {
            ttl,
            renew,
            retry: options.retry.unwrap_or(ttl * 2 / 15),
            margin: options.margin.unwrap_or(ttl / 10),
            call_timeout: options.call_timeout.unwrap_or(renew * 3 / 5),
            work_grace: options.work_grace,
        };
        timing.check()?;
        Ok(timing)
    }

    fn check(&self) -> Result<(), BadSettings> {
        let Timing { ttl, renew, retry, margin, call_timeout, work_grace } = *self;
        let bad = |sentence: String| Err(BadSettings::new(sentence));
        let shortest = Duration::from_millis(1);
        for (name, value) in
            [("renew interval", renew), ("retry interval", retry), ("call time-out", call_timeout)]
        {
            if value < shortest {
                return bad(format!("the {name} must be at least 1ms, and it is {value:?}"));
            }
        }
        if margin < ttl / 100 || margin > ttl / 2 {
            return bad(format!(
                "the margin must be from a hundredth to a half of the ttl ({:?} to {:?}), and it is {margin:?}: \
                 it pays for clocks of different speed",
                ttl / 100,
                ttl / 2
            ));
        }
        if renew > ttl / 3 {
            return bad(format!(
                "the renew interval must be at most a third of the ttl, so that one failed renewal is not the \
                 end: lower it from {renew:?} to {:?}, or raise the ttl to {:?}",
                ttl / 3,
                renew * 3
            ));
        }
        if retry > ttl {
            return bad(format!(
                "the retry interval must not be longer than the ttl ({ttl:?}): lower it from {retry:?}"
            ));
        }
        if call_timeout > renew {
            return bad(format!(
                "the call time-out must not be longer than the renew interval ({renew:?}), so that a hung \
                 renewal leaves time for another: lower it from {call_timeout:?}"
            ));
        }
        let needed = renew + call_timeout + self.stop_lead() + margin;
        if needed > ttl {
            return bad(format!(
                "a renewal that hangs for its time-out would already end the leadership: renew interval \
                 {renew:?} + call time-out {call_timeout:?} + stopping the work {:?} + margin {margin:?} are \
                 {needed:?}, and the ttl is {ttl:?}: shorten the grace ({work_grace:?}) or raise the ttl",
                self.stop_lead()
            ));
        }
        Ok(())
    }

    /// How long a grant lasts without renewal.
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// The time from one renewal to the next.
    pub fn renew(&self) -> Duration {
        self.renew
    }

    /// The pause before trying again, where the store announces no change.
    pub fn retry(&self) -> Duration {
        self.retry
    }

    /// The pause after a renewal that failed.
    pub(crate) fn renew_again(&self) -> Duration {
        self.retry.min(self.renew)
    }

    /// The longest wait before a claim on a free record, after lost races. A candidate that stepped down stays away for a retry interval or
    /// longer, so half of that leaves the others time to claim before it comes back.
    pub fn stagger_max(&self) -> Duration {
        STAGGER_MAX.min(self.retry / 2)
    }

    /// How much earlier than the ttl the leader stops.
    pub fn margin(&self) -> Duration {
        self.margin
    }

    /// After this time the outcome of a call counts as unknown.
    pub fn call_timeout(&self) -> Duration {
        self.call_timeout
    }

    /// The time between telling the work to stop and killing it.
    pub fn work_grace(&self) -> Duration {
        self.work_grace
    }

    /// How long before the deadline the work is told to stop.
    pub fn stop_lead(&self) -> Duration {
        if self.work_grace.is_zero() { Duration::ZERO } else { self.work_grace + KILL_LEAD }
    }

    /// How long after the call the leader believes in a grant of `granted`. A store that grants less than the ttl shortens this;
    /// one that grants more does not lengthen it.
    pub fn belief(&self, granted: Duration) -> Duration {
        granted.min(self.ttl).saturating_sub(self.margin)
    }

    /// When the leadership ends, for a call sent at `sent`.
    pub fn deadline(&self, sent: Boot, granted: Duration) -> Boot {
        sent + self.belief(granted)
    }

    /// How long a released record is reserved for the named successor: `min(ttl / 5, 1 s)`.
    pub fn reservation(ttl: Duration) -> Duration {
        (ttl / 5).min(Duration::from_secs(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_defaults_follow_from_a_ttl_of_15_seconds() {
        let timing = Timing::new(&TimingOptions::default()).unwrap();
        assert_eq!((timing.ttl(), timing.renew(), timing.retry()), (ms(15_000), ms(5_000), ms(2_000)));
        assert_eq!((timing.margin(), timing.call_timeout()), (ms(1_500), ms(3_000)));
    }

    #[test]
    fn common_leases_are_accepted() {
        for (ttl, renew) in [(10_000, 3_000), (10_000, 1_000), (5_000, 1_000), (15_000, 5_000)] {
            Timing::new(&TimingOptions { ttl: ms(ttl), renew: Some(ms(renew)), ..Default::default() })
                .unwrap();
        }
    }

    #[test]
    fn unsafe_timings_are_refused_with_what_to_change() {
        let base = TimingOptions { ttl: ms(3_000), ..Default::default() };
        let cases = [
            (TimingOptions { ttl: Duration::ZERO, ..base }, "ttl must be"),
            (TimingOptions { ttl: Duration::MAX, ..base }, "ttl must be"),
            (TimingOptions { renew: Some(ms(1_001)), ..base }, "a third of the ttl"),
            (TimingOptions { renew: Some(Duration::ZERO), ..base }, "renew interval must be at least"),
            (TimingOptions { retry: Some(ms(3_001)), ..base }, "retry interval"),
            (TimingOptions { margin: Some(Duration::ZERO), ..base }, "margin must be"),
            (TimingOptions { margin: Some(ms(1_501)), renew: Some(ms(500)), ..base }, "margin must be"),
            (TimingOptions { call_timeout: Some(ms(1_500)), ..base }, "call time-out"),
            (TimingOptions { work_grace: ms(2_000), ..base }, "shorten the grace"),
            (TimingOptions { work_grace: Duration::from_secs(1 << 40), ..base }, "shorten the grace"),
        ];
        for (options, part) in cases {
            let said = Timing::new(&options).unwrap_err().to_string();
            assert!(said.contains(part), "{said}");
        }
    }

    #[test]
    fn what_just_keeps_within_the_limits_is_accepted() {
        let base = TimingOptions { ttl: ms(3_000), ..Default::default() };
        let one = Some(ms(1));
        // 1000 + 600 + 300 for the renewal, its time-out and the margin; the rest is for stopping the work.
        let grace = ms(1_100) - KILL_LEAD;
        for options in [
            TimingOptions { renew: one, retry: one, call_timeout: one, ..base },
            TimingOptions { margin: Some(ms(30)), ..base },
            TimingOptions { margin: Some(ms(1_500)), renew: Some(ms(500)), ..base },
            TimingOptions { retry: Some(ms(3_000)), ..base },
            TimingOptions { call_timeout: Some(ms(1_000)), ..base },
            TimingOptions { work_grace: grace, ..base },
        ] {
            let timing = Timing::new(&options).unwrap();
            assert_eq!(timing.work_grace(), options.work_grace);
        }
        Timing::new(&TimingOptions { work_grace: grace + ms(1), ..base }).unwrap_err();
    }

    #[test]
    fn a_record_is_kept_for_a_fifth_of_the_ttl_and_for_a_second_at_most() {
        assert_eq!(Timing::reservation(ms(3_000)), ms(600));
        assert_eq!(Timing::reservation(ms(15_000)), ms(1_000));
    }

    #[test]
    fn claims_are_staggered_by_50_ms_or_half_the_retry_interval() {
        let most =
            |ttl| Timing::new(&TimingOptions { ttl: ms(ttl), ..Default::default() }).unwrap().stagger_max();
        assert_eq!((most(15_000), most(750), most(300)), (ms(50), ms(50), ms(20)));
    }

    #[test]
    fn a_store_that_grants_less_shortens_belief_and_one_that_grants_more_does_not_lengthen_it() {
        let timing = Timing::new(&TimingOptions::default()).unwrap();
        assert_eq!(timing.belief(ms(20_000)), ms(13_500));
        assert_eq!(timing.belief(ms(9_000)), ms(7_500));
        assert_eq!(timing.belief(ms(1)), Duration::ZERO);
    }

    #[test]
    fn a_ttl_is_rounded_up_to_what_the_store_keeps() {
        let ttl = |ttl, ttl_unit| {
            Timing::new(&TimingOptions { ttl: ms(ttl), ttl_unit: ms(ttl_unit), ..Default::default() })
                .unwrap()
                .ttl()
        };
        assert_eq!(ttl(1_001, 1_000), ms(2_000));
        assert_eq!(ttl(2_000, 1_000), ms(2_000));
        assert_eq!(ttl(20, 1_000), ms(1_000));
        assert_eq!(ttl(1_001, 0), ms(1_001));
        assert!(
            Timing::new(&TimingOptions { ttl: Duration::MAX, ttl_unit: ms(1_000), ..Default::default() })
                .is_err()
        );
    }
}
