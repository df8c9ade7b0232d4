//! How long to wait after an error.
//!
//! A denial is not an error: a candidate that was denied waits for a change instead.

use std::fmt;
use std::time::Duration;

use crate::{Boot, Rng, StoreError};

/// The longest pause of any strategy: a mistyped base or multiplier must not put a candidate to sleep for a year.
pub const RETRY_MAX: Duration = Duration::from_secs(3_600);

/// What a strategy knows about the errors so far.
#[derive(Debug)]
#[non_exhaustive]
pub struct RetryContext<'a> {
    /// The number of errors in a row, from 1.
    pub attempt: u32,
    /// Time since the first error in this row.
    pub elapsed: Duration,
    /// The pause before the attempt that failed; `None` at the first error.
    pub previous: Option<Duration>,
    /// The error itself.
    pub last_error: &'a StoreError,
}

impl<'a> RetryContext<'a> {
    /// The first error in a row, to try out a strategy.
    pub fn first(last_error: &'a StoreError) -> RetryContext<'a> {
        RetryContext { attempt: 1, elapsed: Duration::ZERO, previous: None, last_error }
    }
}

/// Decides the pause after an error. `None` gives up, and the candidate stops.
pub trait RetryStrategy: fmt::Debug + Send + Sync + 'static {
    /// The pause before the next attempt, at most [`RETRY_MAX`].
    fn next_delay(&self, context: &RetryContext<'_>, rng: &mut Rng) -> Option<Duration>;

    /// The longest pause of this strategy. The bound on recovery is computed from it.
    fn longest(&self) -> Duration {
        RETRY_MAX
    }
}

/// `base × multiplier^(attempt − 1)`, at most `max`, give or take `jitter` of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exponential {
    /// The first pause.
    pub base: Duration,
    /// The longest pause before jitter.
    pub max: Duration,
    /// Growth from one pause to the next; below 1 counts as 1.
    pub multiplier: f64,
    /// The share of the pause by which it varies either way, 0 to 1.
    pub jitter: f64,
}

impl Default for Exponential {
    fn default() -> Exponential {
        Exponential {
            base: Duration::from_millis(50),
            max: Duration::from_secs(5),
            multiplier: 2.0,
            jitter: 0.1,
        }
    }
}

impl Exponential {
    fn jitter(&self) -> f64 {
        if self.jitter.is_finite() { self.jitter.clamp(0.0, 1.0) } else { 0.0 }
    }
}

impl RetryStrategy for Exponential {
    fn next_delay(&self, context: &RetryContext<'_>, rng: &mut Rng) -> Option<Duration> {
        let multiplier = if self.multiplier.is_finite() { self.multiplier.max(1.0) } else { 1.0 };
        // In floating point the power runs into infinity instead of overflowing, and `min` brings it back:
        // the millionth attempt waits `max` like the twentieth.
        let power = multiplier.powf(f64::from(context.attempt.saturating_sub(1)));
        let max = self.max.as_secs_f64();
        let grown = (self.base.as_secs_f64() * power).min(max);
        let grown = if grown.is_finite() { grown } else { max };
        let moved = grown * (1.0 + self.jitter() * (2.0 * rng.unit() - 1.0));
        Some(seconds(moved))
    }

    fn longest(&self) -> Duration {
        seconds(self.max.as_secs_f64() * (1.0 + self.jitter()))
    }
}

/// Always the same pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixed(
    /// The pause.
    pub Duration,
);

impl RetryStrategy for Fixed {
    fn next_delay(&self, _: &RetryContext<'_>, _: &mut Rng) -> Option<Duration> {
        Some(self.0)
    }

    fn longest(&self) -> Duration {
        self.0
    }
}

/// Random between `base` and three times the previous pause, at most `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecorrelatedJitter {
    /// The shortest pause.
    pub base: Duration,
    /// The longest pause.
    pub max: Duration,
}

impl RetryStrategy for DecorrelatedJitter {
    fn next_delay(&self, context: &RetryContext<'_>, rng: &mut Rng) -> Option<Duration> {
        let previous = context.previous.unwrap_or(self.base);
        Some(rng.between(self.base, previous.saturating_mul(3)).min(self.max))
    }

    fn longest(&self) -> Duration {
        self.max
    }
}

/// Follows another strategy, and gives up after a number of errors in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtMost<S> {
    /// Gives up at this number of errors in a row.
    pub attempts: u32,
    /// The strategy until then.
    pub then: S,
}

impl<S: RetryStrategy> RetryStrategy for AtMost<S> {
    fn next_delay(&self, context: &RetryContext<'_>, rng: &mut Rng) -> Option<Duration> {
        if context.attempt >= self.attempts { None } else { self.then.next_delay(context, rng) }
    }

    fn longest(&self) -> Duration {
        self.then.longest()
    }
}

/// A circuit breaker: after many errors in a row, the candidate waits longer before it tries again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breaker {
    /// The number of errors in a row that opens the breaker; at least 1.
    pub failures: u32,
    /// How long the breaker stays open. Then the candidate makes one attempt, and another error opens the breaker again.
    pub open_for: Duration,
}

impl Default for Breaker {
    /// Ten failures, thirty seconds.
    fn default() -> Breaker {
        Breaker { failures: 10, open_for: Duration::from_secs(30) }
    }
}

impl Breaker {
    /// Until when the candidate makes no attempt, after the `errors`-th error in a row at `now`.
    pub(crate) fn open_until(&self, errors: u32, now: Boot) -> Option<Boot> {
        (errors >= self.failures).then(|| now + self.open_for)
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(RETRY_MAX).min(RETRY_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn delay(strategy: &dyn RetryStrategy, attempt: u32, previous: Option<Duration>) -> Option<Duration> {
        let error = StoreError::new(ErrorKind::Unavailable, "test", "away");
        let context = RetryContext { attempt, previous, ..RetryContext::first(&error) };
        strategy.next_delay(&context, &mut Rng::new(u64::from(attempt)))
    }

    #[test]
    fn exponential_grows_to_its_maximum_and_stays_there_for_ever() {
        let plain = Exponential { jitter: 0.0, ..Exponential::default() };
        let millis = |attempt| delay(&plain, attempt, None).unwrap().as_millis();
        assert_eq!([1, 2, 3, 4].map(millis), [50, 100, 200, 400]);
        for attempt in [8, 1_025, 1_000_000, u32::MAX] {
            assert_eq!(millis(attempt), 5_000);
        }
    }

    #[test]
    fn jitter_moves_the_pause_either_way_within_its_share() {
        let jittery = Exponential { jitter: 0.1, ..Exponential::default() };
        let all: Vec<_> = (100..200).map(|a| delay(&jittery, a, None).unwrap().as_millis()).collect();
        assert!(all.iter().all(|ms| (4_500..=5_500).contains(ms)), "{all:?}");
        assert!(all.iter().any(|ms| *ms < 4_900) && all.iter().any(|ms| *ms > 5_100));
    }

    #[test]
    fn nonsense_parameters_give_a_bounded_pause() {
        for (multiplier, jitter) in [(f64::NAN, f64::NAN), (f64::INFINITY, 9.0), (-3.0, -1.0)] {
            let odd = Exponential { base: Duration::MAX, max: Duration::MAX, multiplier, jitter };
            assert!(delay(&odd, 5, None).unwrap() <= RETRY_MAX);
        }
    }

    #[test]
    fn decorrelated_jitter_stays_between_base_and_thrice_the_last() {
        let (base, max) = (Duration::from_secs(1), Duration::from_secs(30));
        let strategy = DecorrelatedJitter { base, max };
        let mut previous = None;
        for attempt in 1..500 {
            let next = delay(&strategy, attempt, previous).unwrap();
            assert!(
                next >= base && next <= (previous.unwrap_or(base) * 3).min(max),
                "{next:?} after {previous:?}"
            );
            previous = Some(next);
        }
        assert_eq!(delay(&strategy, 9, Some(Duration::MAX)).map(|d| d <= max), Some(true));
    }

    #[test]
    fn the_longest_pause_includes_the_jitter() {
        let near =
            |strategy: &dyn RetryStrategy, millis| strategy.longest().abs_diff(Duration::from_millis(millis));
        assert!(near(&Exponential::default(), 5_500) < Duration::from_micros(1));
        let jitter = DecorrelatedJitter { base: Duration::from_millis(1), max: Duration::from_millis(70) };
        assert_eq!(jitter.longest(), jitter.max);
        assert_eq!(AtMost { attempts: 3, then: Fixed(jitter.max) }.longest(), jitter.max);
    }

    #[test]
    fn a_strategy_that_names_no_longest_pause_is_reckoned_with_the_longest_there_is() {
        #[derive(Debug)]
        struct Own;
        impl RetryStrategy for Own {
            fn next_delay(&self, _: &RetryContext<'_>, _: &mut Rng) -> Option<Duration> {
                None
            }
        }
        assert_eq!(Own.longest(), RETRY_MAX);
    }

    #[test]
    fn a_strategy_can_give_up() {
        let thrice = AtMost { attempts: 3, then: Fixed(Duration::from_secs(5)) };
        assert_eq!(delay(&thrice, 2, None), Some(Duration::from_secs(5)));
        assert_eq!(delay(&thrice, 3, None), None);
    }

    #[test]
    fn the_breaker_opens_at_its_threshold_and_again_at_every_error_after_it() {
        let breaker = Breaker { failures: 3, open_for: Duration::from_secs(30) };
        let now = Boot::from_nanos(7);
        assert_eq!(breaker.open_until(2, now), None);
        assert_eq!(breaker.open_until(3, now), Some(now + Duration::from_secs(30)));
        assert_eq!(breaker.open_until(4, now), Some(now + Duration::from_secs(30)));
    }
}
