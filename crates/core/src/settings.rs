//! All settings, checked once: [`Settings`] cannot hold an unsafe combination.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::{BadSettings, Breaker, Exponential, RetryStrategy, Timing, TimingOptions};

/// The most entries of metadata, and their most bytes in all: a record must stay small in every store.
pub const METADATA_MAX: (usize, usize) = (32, 4_096);

/// The longest cooldown and grace: anything longer is surely mistyped.
const SPAN_MAX: Duration = Duration::from_secs(86_400);

/// How a candidate takes part, to be checked by [`Settings::new`]. Start from the default and change what differs:
///
/// ```
/// # use bellwether_core::{Options, Settings};
/// # use std::time::Duration;
/// let mut options = Options::default();
/// options.timing.ttl = Duration::from_secs(5);
/// options.priority = 1;
/// let settings = Settings::new(options)?;
/// # Ok::<(), bellwether_core::BadSettings>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The ttl and the durations that depend on it.
    pub timing: TimingOptions,
    /// Step down after this many failed renewals in a row. `None`: only the deadline ends the leadership.
    pub failed_renewals: Option<u32>,
    /// How long a leader tolerates a silent connection. `None`: only the deadline ends the leadership.
    pub disconnect_grace: Option<Duration>,
    /// When leadership becomes uncertain, try for this long to regain it before reporting it lost. `None`: it is lost at once.
    pub reconnect_grace: Option<Duration>,
    /// Compete again after a leadership has ended.
    pub auto_reacquire: bool,
    /// Release when stopping. Otherwise the record expires by itself, as after a crash, so that nobody takes over while a process
    /// restarts quickly. This makes no difference where the store can prove that the process has ended, or where the record
    /// belongs to a session.
    pub release_on_stop: bool,
    /// While the work stops in a planned end (a choice, a request, a failed health check), keep renewing for this long. Zero: the
    /// work has the time that is left until the deadline.
    pub stop_timeout: Duration,
    /// After stepping down, stay away for this long, even after a restart. `None`: one retry interval, which a restart ends.
    pub cooldown: Option<Duration>,
    /// Without a cooldown, stay away at least this long after stepping down, even if the retry interval is shorter: other programs
    /// need this time to notice that the lead is free.
    pub stay_away_min: Duration,
    /// A candidate may ask a leader of a smaller priority to hand over.
    pub priority: i32,
    /// Ask a leader of a smaller priority to hand over.
    pub preempt: bool,
    /// With a health check: this many failures in a row keep the candidate from leading. `None`: no health check.
    pub health_failures: Option<u32>,
    /// How often a leader reads its record to see that it still leads. `None`: only renewals tell.
    pub validation: Option<Duration>,
    /// Data to publish in the record.
    pub metadata: BTreeMap<String, String>,
    /// The pause after an error.
    pub strategy: Arc<dyn RetryStrategy>,
    /// A longer pause after many errors in a row.
    pub breaker: Option<Breaker>,
    /// After a takeover on evidence of a crash, wait this long before the work starts.
    pub settle: Duration,
    /// Take over the record of an earlier start of this id without proof that it is dead. The guarantee does not cover this.
    pub danger_reclaim: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            timing: TimingOptions::default(),
            failed_renewals: None,
            disconnect_grace: None,
            reconnect_grace: None,
            auto_reacquire: true,
            release_on_stop: true,
            stop_timeout: Duration::ZERO,
            cooldown: None,
            stay_away_min: Duration::ZERO,
            priority: 0,
            preempt: false,
            health_failures: None,
            validation: None,
            metadata: BTreeMap::new(),
            strategy: Arc::new(Exponential::default()),
            breaker: None,
            settle: Duration::from_millis(20),
            danger_reclaim: false,
        }
    }
}

/// Checked [`Options`].
#[derive(Clone, Debug)]
pub struct Settings {
    timing: Timing,
    options: Options,
}

impl Settings {
    /// Checks the options against each other.
    pub fn new(options: Options) -> Result<Settings, BadSettings> {
        let timing = Timing::new(&options.timing)?;
        let bad = |sentence: String| Err(BadSettings::new(sentence));
        for (name, count) in [
            ("number of failed renewals", options.failed_renewals),
            ("number of failed health checks", options.health_failures),
            ("breaker's number of failures", options.breaker.map(|b| b.failures)),
        ] {
            if count == Some(0) {
                return bad(format!("the {name} must be at least 1; leave it out to switch it off"));
            }
        }
        for (name, span) in [
            ("cooldown", options.cooldown),
            ("reconnect grace", options.reconnect_grace),
            ("disconnect grace", options.disconnect_grace),
            ("breaker's pause", options.breaker.map(|b| b.open_for)),
        ] {
            if span.is_some_and(|span| span.is_zero() || span > SPAN_MAX) {
                return bad(format!(
                    "the {name} must be above 0 and at most 24h; leave it out to switch it off"
                ));
            }
        }
        if options.stop_timeout > SPAN_MAX {
            return bad(format!(
                "the stop time-out must be at most 24h, and it is {:?}",
                options.stop_timeout
            ));
        }
        if let Some(grace) = options.disconnect_grace
            && grace < timing.renew() * 2
        {
            return bad(format!(
                "the disconnect grace must be at least two renew intervals ({:?}), and it is {grace:?}",
                timing.renew() * 2
            ));
        }
        if let Some(every) = options.validation
            && every < timing.renew()
        {
            return bad(format!(
                "the validation interval must be at least the renew interval ({:?}), and it is {every:?}",
                timing.renew()
            ));
        }
        if options.preempt && options.priority <= 0 {
            return bad("to preempt, a candidate needs a priority above 0: set one".to_owned());
        }
        if options.settle > timing.ttl() / 4 {
            return bad(format!(
                "the settle time must be at most a quarter of the ttl ({:?}), and it is {:?}",
                timing.ttl() / 4,
                options.settle
            ));
        }
        let (most, most_bytes) = METADATA_MAX;
        let bytes: usize = options.metadata.iter().map(|(key, value)| key.len() + value.len()).sum();
        if options.metadata.len() > most || bytes > most_bytes {
            return bad(format!(
                "metadata must be at most {most} entries of {most_bytes} bytes in all, and it is {} of {bytes}",
                options.metadata.len()
            ));
        }
        Ok(Settings { timing, options })
    }

    /// The checked durations.
    pub fn timing(&self) -> &Timing {
        &self.timing
    }

    /// The options as they were given.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// How long this candidate stays out after claims that were written and failed: longer than their record keeps others out.
    pub(crate) fn withdrawal(&self) -> Duration {
        self.timing.ttl() * 3 / 2
    }

    /// The longest time that this candidate stays away after it stepped down.
    pub(crate) fn longest_absence(&self) -> Duration {
        self.options.cooldown.unwrap_or_else(|| self.yielding(true))
    }

    /// How long this candidate lets others go first after it handed over. Where the record is reserved for a successor that never
    /// comes, the others still have as long again.
    pub(crate) fn yielding(&self, reserved: bool) -> Duration {
        let kept = if reserved { Timing::reservation(self.timing.ttl()) * 2 } else { Duration::ZERO };
        self.timing.retry().max(self.options.stay_away_min).max(kept)
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings::new(Options::default()).expect("the defaults are safe together")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combinations_that_make_no_sense_are_refused_with_what_to_change() {
        let second = Some(Duration::from_secs(1));
        let cases: [(Options, &str); 10] = [
            (Options { failed_renewals: Some(0), ..Options::default() }, "failed renewals"),
            (Options { health_failures: Some(0), ..Options::default() }, "health checks"),
            (Options { cooldown: Some(Duration::ZERO), ..Options::default() }, "cooldown"),
            (Options { reconnect_grace: Some(Duration::MAX), ..Options::default() }, "reconnect grace"),
            (Options { disconnect_grace: second, ..Options::default() }, "two renew intervals"),
            (Options { validation: second, ..Options::default() }, "validation interval"),
            (Options { preempt: true, ..Options::default() }, "priority above 0"),
            (Options { settle: Duration::from_secs(9), ..Options::default() }, "settle"),
            (
                Options { metadata: [("k".into(), "v".repeat(5_000))].into(), ..Options::default() },
                "4096 bytes",
            ),
            (
                Options {
                    breaker: Some(Breaker { failures: 0, ..Breaker::default() }),
                    ..Options::default()
                },
                "breaker",
            ),
        ];
        for (options, part) in cases {
            let said = Settings::new(options).unwrap_err().to_string();
            assert!(said.contains(part), "{said}");
        }
    }

    #[test]
    fn settings_at_their_limits_are_accepted_and_beyond_them_refused() {
        let (second, day) = (Duration::from_secs(1), Duration::from_secs(86_400));
        let cooldown = |span| Options { cooldown: Some(span), ..Options::default() };
        let stop_timeout = |span| Options { stop_timeout: span, ..Options::default() };
        let disconnect_grace = |span| Options { disconnect_grace: Some(span), ..Options::default() };
        let validation = |span| Options { validation: Some(span), ..Options::default() };
        let settle = |span| Options { settle: span, ..Options::default() };
        let entries = |count: usize, bytes: usize| {
            let entry = |n: usize| (format!("{n:03}"), "v".repeat(bytes - 3));
            Options { metadata: (0..count).map(entry).collect(), ..Options::default() }
        };
        let more = Duration::from_nanos(1);
        for (accepted, refused) in [
            (cooldown(day), cooldown(day + more)),
            (stop_timeout(day), stop_timeout(day + more)),
            (disconnect_grace(second * 10), disconnect_grace(second * 10 - more)),
            (validation(second * 5), validation(second * 5 - more)),
            (settle(second * 15 / 4), settle(second * 15 / 4 + more)),
            (entries(32, 128), entries(33, 4)),
            (entries(1, 4_096), entries(1, 4_097)),
            (
                Options { preempt: true, priority: 1, ..Options::default() },
                Options { preempt: true, priority: -1, ..Options::default() },
            ),
        ] {
            Settings::new(accepted).unwrap();
            Settings::new(refused).unwrap_err();
        }
    }

    #[test]
    fn a_candidate_lets_others_go_first_for_a_retry_interval_or_twice_the_reservation() {
        let second = Duration::from_secs(1);
        let settings = Settings::default();
        assert_eq!((settings.yielding(false), settings.yielding(true)), (second * 2, second * 2));
        assert_eq!((settings.withdrawal(), settings.longest_absence()), (second * 45 / 2, second * 2));
        let mut options = Options { stay_away_min: second * 3, ..Options::default() };
        options.timing.retry = Some(second / 2);
        let settings = Settings::new(Options { stay_away_min: Duration::ZERO, ..options.clone() }).unwrap();
        assert_eq!((settings.yielding(false), settings.yielding(true)), (second / 2, second * 2));
        assert_eq!(Settings::new(options.clone()).unwrap().yielding(false), second * 3);
        options.cooldown = Some(second * 9);
        assert_eq!(Settings::new(options).unwrap().longest_absence(), second * 9);
    }
}
