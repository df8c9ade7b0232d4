//! Everything that can be set, parsed once into a type that cannot hold an unsafe combination.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::{BadSettings, Breaker, Exponential, RetryStrategy, Timing, TimingOptions};

/// Bounds on what a candidate may write about itself: a record must stay small in every store.
pub const METADATA_MAX: (usize, usize) = (32, 4_096);

/// Longest cooldown and grace: beyond it somebody mistyped.
const SPAN_MAX: Duration = Duration::from_secs(86_400);

/// How a candidate takes part, unchecked: fill in what differs and hand it to [`Settings::new`].
#[derive(Clone, Debug)]
pub struct Options {
    /// Lease, renewal, retry, margin, time-out.
    pub timing: TimingOptions,
    /// Failed renewals in a row that end the leadership before the deadline does; `None` leaves it to the deadline.
    pub failed_renewals: Option<u32>,
    /// For how long silence of the connection is borne before the deadline; `None` leaves it to the deadline.
    pub disconnect_grace: Option<Duration>,
    /// After a loss in doubt, try for so long to get back before calling it lost; `None`: lost at once.
    pub reconnect_grace: Option<Duration>,
    /// Stand again after a leadership ended.
    pub auto_reacquire: bool,
    /// Release when stopping. Without it the record runs out by itself, as after a crash: nobody takes over while a process
    /// is restarted quickly, and where the store can prove its end, or holds no more than a session, it makes no difference.
    pub release_on_stop: bool,
    /// While the work stops in a planned end (by choice, on request, for want of health), keep renewing for this long. Zero: the
    /// work has what is left until the deadline.
    pub stop_timeout: Duration,
    /// After stepping down, stay away for so long; `None`: one retry interval, not remembered in the store.
    pub cooldown: Option<Duration>,
    /// Without a cooldown, the shortest time to stay away after stepping down, where a retry interval is shorter: what
    /// candidates of others need to notice that the lead is free.
    pub stay_away_min: Duration,
    /// The greater may ask the smaller to hand over.
    pub priority: i32,
    /// Ask a leader of smaller priority to hand over.
    pub preempt: bool,
    /// With a health check: failures in a row that make this candidate unfit. `None`: no health check.
    pub health_failures: Option<u32>,
    /// How often to read the record back while leading; `None`: renewals are proof enough.
    pub validation: Option<Duration>,
    /// Written into the record for readers.
    pub metadata: BTreeMap<String, String>,
    /// How long to wait after an error.
    pub strategy: Arc<dyn RetryStrategy>,
    /// After many errors in a row, a longer pause.
    pub breaker: Option<Breaker>,
    /// After a takeover on evidence of a crash, wait so long before working.
    pub settle: Duration,
    /// Take the record of an earlier start of this id without proof of its death. Outside the guarantee.
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

    /// Lease, renewal, retry, margin, time-out.
    pub fn timing(&self) -> &Timing {
        &self.timing
    }

    /// The options as they were given.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// How long this candidate stays out after claims that were written and failed: longer than the record that they may
    /// have left keeps others out.
    pub(crate) fn stay_out(&self) -> Duration {
        self.timing.ttl() * 3 / 2
    }

    /// The longest time that this candidate stays away after it stepped down.
    pub(crate) fn hold_off(&self) -> Duration {
        self.options.cooldown.unwrap_or_else(|| self.room(true))
    }

    /// How long this candidate leaves to others to take what it let go for their sake. Where it is kept for somebody who never
    /// comes, the others still have as long again.
    pub(crate) fn room(&self, reserved: bool) -> Duration {
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
}
