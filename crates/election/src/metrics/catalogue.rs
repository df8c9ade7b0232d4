//! Every metric: its name, its labels, what it means, and how it is written. The documents' table is printed from here.

use std::fmt;

use bellwether_core::{ErrorKind, Reason, StateName};
use prometheus_client::metrics::MetricType;

use super::Samples;
use crate::observer::{Ended, Kind, Measured};

/// A metric, for tables.
///
/// ```
/// for metric in bellwether_election::Metrics::table() {
///     println!("{} ({}): {}", metric.name, metric.kind_str(), metric.meaning);
/// }
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct MetricRow {
    /// Its name.
    pub name: &'static str,
    pub(super) kind: MetricType,
    /// The labels beside those that all have.
    pub labels: &'static [&'static str],
    /// What it counts or shows.
    pub meaning: &'static str,
}

impl MetricRow {
    /// `gauge`, `counter` or `histogram`.
    pub fn kind_str(&self) -> &'static str {
        match self.kind {
            MetricType::Counter => "counter",
            MetricType::Histogram => "histogram",
            _ => "gauge",
        }
    }
}

pub(super) struct Metric {
    pub(super) row: MetricRow,
    /// The most time series of one election.
    pub(super) series_max: usize,
    pub(super) write: fn(&Measured, &mut Samples<'_, '_>) -> fmt::Result,
}

const fn gauge(name: &'static str, meaning: &'static str, write: Write) -> Metric {
    Metric { row: MetricRow { name, kind: MetricType::Gauge, labels: &[], meaning }, series_max: 1, write }
}

const fn counter(
    name: &'static str,
    labels: &'static [&'static str],
    series_max: usize,
    meaning: &'static str,
    write: Write,
) -> Metric {
    Metric { row: MetricRow { name, kind: MetricType::Counter, labels, meaning }, series_max, write }
}

const fn histogram(
    name: &'static str,
    labels: &'static [&'static str],
    series_max: usize,
    meaning: &'static str,
    write: Write,
) -> Metric {
    Metric { row: MetricRow { name, kind: MetricType::Histogram, labels, meaning }, series_max, write }
}

type Write = fn(&Measured, &mut Samples<'_, '_>) -> fmt::Result;

/// Of a histogram with so many buckets: those, the one without a bound, the sum and the count.
const fn series_of(buckets: usize) -> usize {
    buckets + 3
}

/// Every metric, those of the original eight first.
pub(super) const CATALOGUE: &[Metric] = &[
    gauge("election_is_leader", "1 while this candidate leads, else 0", |measured, samples| {
        samples.gauge(i64::from(measured.remaining().is_some()))
    }),
    gauge(
        "election_connection_status",
        "1 while the store answers, 0 when the connection is silent or a call got no answer",
        |measured, samples| samples.gauge(i64::from(measured.is_connected())),
    ),
    counter(
        "election_transitions_total",
        &["from_state", "to_state"],
        StateName::ALL.len() * (StateName::ALL.len() - 1),
        "how often the candidate went from one state to another",
        |measured, samples| {
            for from in StateName::ALL {
                for to in StateName::ALL {
                    let labels = [("from_state", from.as_str()), ("to_state", to.as_str())];
                    samples.counter_from_one(&labels, measured.transitions(from, to))?;
                }
            }
            Ok(())
        },
    ),
    counter(
        "election_failures_total",
        &["error_type"],
        ErrorKind::ALL.len(),
        "errors of the store, and of hooks",
        |measured, samples| {
            ErrorKind::ALL.iter().try_for_each(|kind| {
                samples.counter_from_one(&[("error_type", kind.as_str())], measured.failures(*kind))
            })
        },
    ),
    counter(
        "election_acquire_attempts_total",
        &["status"],
        Ended::ALL.len(),
        "claims that were answered, by how: success, denied, unknown, refused",
        |measured, samples| {
            Ended::ALL.iter().try_for_each(|how| {
                let claims = measured.calls(Kind::Claim, *how);
                samples.counter(&[("status", how.as_str())], claims)
            })
        },
    ),
    counter(
        "election_token_validation_failures_total",
        &[],
        1,
        "leaderships that ended because the record, read back, was not this leader's",
        |measured, samples| samples.counter(&[], measured.losses(Reason::Validation)),
    ),
    histogram(
        "election_heartbeat_duration_seconds",
        &["status"],
        2 * series_of(10),
        "how long a renewal took until it was answered, by whether it succeeded: success, failure",
        |measured, samples| {
            samples.histogram(&[("status", "success")], &measured.renewed)?;
            samples.histogram(&[("status", "failure")], &measured.not_renewed)
        },
    ),
    histogram(
        "election_leader_duration_seconds",
        &[],
        series_of(12),
        "how long leaderships lasted that have ended",
        |measured, samples| samples.histogram(&[], &measured.led),
    ),
    gauge("election_epoch", "the highest epoch of the election that is known", |measured, samples| {
        samples.gauge(i64::try_from(measured.epoch()).unwrap_or(i64::MAX))
    }),
    gauge(
        "election_deadline_seconds",
        "the time until this leadership ends unless renewed; 0 while not leading",
        |measured, samples| samples.gauge(measured.remaining().unwrap_or_default().as_secs_f64()),
    ),
    counter(
        "election_losses_total",
        &["reason"],
        Reason::ALL.len(),
        "leaderships that were lost or suspended, by reason",
        |measured, samples| {
            Reason::ALL.iter().try_for_each(|reason| {
                samples.counter_from_one(&[("reason", reason.as_str())], measured.losses(*reason))
            })
        },
    ),
    histogram(
        "election_handover_gap_seconds",
        &[],
        series_of(16),
        "for how long nobody led after a release, measured by the candidate that took over",
        |measured, samples| samples.histogram(&[], &measured.handovers),
    ),
    histogram(
        "election_failover_gap_seconds",
        &[],
        series_of(16),
        "for how long nobody led after a leader died or fell silent, from the proof of death or the last sign of life, measured by \
         the candidate that took over",
        |measured, samples| samples.histogram(&[], &measured.failovers),
    ),
    counter(
        "election_store_calls_total",
        &["call", "status"],
        Kind::ALL.len() * Ended::ALL.len(),
        "calls to the store that were answered: claim, renew, release, observe, request, by how",
        |measured, samples| {
            for (kind, how) in Kind::ALL.iter().flat_map(|kind| Ended::ALL.iter().map(move |how| (kind, how)))
            {
                let labels = [("call", kind.as_str()), ("status", how.as_str())];
                samples.counter_from_one(&labels, measured.calls(*kind, *how))?;
            }
            Ok(())
        },
    ),
    counter(
        "election_store_call_seconds_total",
        &["call"],
        Kind::ALL.len(),
        "how long those calls took together",
        |measured, samples| {
            for kind in Kind::ALL {
                let spent = measured.call_time(kind);
                if !spent.is_zero() {
                    samples.counter(&[("call", kind.as_str())], spent.as_secs_f64())?;
                }
            }
            Ok(())
        },
    ),
];
