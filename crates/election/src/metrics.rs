//! Metrics for Prometheus: of every election that is given these [`Metrics`], in a registry of the user's own or as text.
//!
//! The driver adds to plain counters ([`observer`](crate::observer)); they become text only here, when somebody asks, in the
//! task or thread of whoever asks. An election that has stopped is forgotten. What an election has at most is fixed: labels other than
//! its own come from closed lists ([`Metrics::series_max`]).

mod catalogue;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, Weak};

use bellwether_backend::lock;
use bellwether_core::{CandidateId, ElectionName};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, MetricEncoder, NoLabelSet, text,
};
use prometheus_client::registry::Registry;

use crate::observer::{Histogram, Measured};
use crate::shared::Shared;
use catalogue::CATALOGUE;
pub use catalogue::MetricRow;

/// Metrics of any number of elections. Cloning shares them.
///
/// Every sample has the labels `role` (the election), `instance_id` (the candidate's id) and `bucket` (what the store is called).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), bellwether_election::Error> {
/// # let backend = bellwether_backend::MemoryStore::default().connect(std::sync::Arc::new(bellwether_deadman::SystemClock));
/// use bellwether_election::{Election, Metrics};
/// use prometheus_client::registry::Registry;
///
/// let metrics = Metrics::new();
/// let mut registry = Registry::default(); // your own, with your other metrics
/// metrics.register(&mut registry);
///
/// let election = Election::builder("reports").backend(backend).id("host-1").metrics(&metrics).start().await?;
/// election.wait_for_leadership().await?;
/// assert!(metrics.to_text().contains(r#"election_is_leader{role="reports",instance_id="host-1",bucket="memory"} 1"#));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Metrics(Arc<Inner>);

#[derive(Default)]
struct Inner {
    bucket: Option<String>,
    elections: Mutex<Elections>,
}

/// Those that are measured, by their labels. Whoever counts owns the counters, so those of an election that has stopped are gone.
#[derive(Default)]
struct Elections {
    measured: BTreeMap<Labels, Weak<Measured>>,
    /// Sweep when there are this many.
    sweep_at: usize,
}

/// What tells the samples of one election from those of others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Labels {
    role: ElectionName,
    instance_id: CandidateId,
    bucket: String,
}

/// Nothing is swept below this.
const SWEEP_FROM: usize = 64;

impl Metrics {
    /// Of no election yet. The label `bucket` is the name of each election's store: `file`, `nats`, …
    pub fn new() -> Metrics {
        Metrics::default()
    }

    /// The same with this label `bucket`, for programs with several stores of one kind.
    pub fn with_bucket(bucket: impl Into<String>) -> Metrics {
        Metrics(Arc::new(Inner { bucket: Some(bucket.into()), ..Inner::default() }))
    }

    /// Adds them to a registry. Elections that join later are in it too.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(self.clone()));
    }

    /// All of them as OpenMetrics text, which Prometheus asks for.
    pub fn to_text(&self) -> String {
        let mut registry = Registry::default();
        self.register(&mut registry);
        let mut text = String::new();
        // It fails only if the writer does.
        let _ = text::encode(&mut text, &registry);
        text
    }

    /// The media type of [`to_text`](Self::to_text).
    pub const MEDIA_TYPE: &'static str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

    /// All of them as the text that came before OpenMetrics, for everybody who does not ask for that.
    pub fn to_plain_text(&self) -> String {
        let mut text = self.to_text();
        for row in CATALOGUE.iter().map(|metric| metric.row) {
            // There, a counter is described by the name that its samples have.
            if let Some(short) = row.name.strip_suffix("_total") {
                for word in ["HELP", "TYPE"] {
                    text = text.replace(&format!("# {word} {short} "), &format!("# {word} {} ", row.name));
                }
            }
        }
        text.truncate(text.trim_end_matches("# EOF\n").len());
        text
    }

    /// The media type of [`to_plain_text`](Self::to_plain_text).
    pub const PLAIN_MEDIA_TYPE: &'static str = "text/plain; version=0.0.4; charset=utf-8";

    /// What there is, for tables.
    pub fn table() -> Vec<MetricRow> {
        CATALOGUE.iter().map(|metric| metric.row).collect()
    }

    /// The most time series that one election can have, whatever happens in it.
    pub fn series_max() -> usize {
        CATALOGUE.iter().map(|metric| metric.series_max).sum()
    }

    /// The counters of a candidate that starts.
    pub(crate) fn measure(
        &self,
        role: &ElectionName,
        instance_id: &CandidateId,
        backend: &str,
        shared: &Arc<Shared>,
    ) -> Arc<Measured> {
        let bucket = self.0.bucket.clone().unwrap_or_else(|| backend.to_owned());
        let labels = Labels { role: role.clone(), instance_id: instance_id.clone(), bucket };
        let mut elections = lock(&self.0.elections);
        elections.sweep();
        let place = elections.measured.entry(labels).or_default();
        let measured = place.upgrade().unwrap_or_default();
        *place = Arc::downgrade(&measured);
        drop(elections);
        let mut candidates = lock(&measured.candidates);
        candidates.retain(|other| other.strong_count() > 0 && !other.ptr_eq(&Arc::downgrade(shared)));
        candidates.push(Arc::downgrade(shared));
        drop(candidates);
        measured
    }

    /// Those that are measured now.
    fn now(&self) -> Vec<(Labels, Arc<Measured>)> {
        let elections = lock(&self.0.elections);
        let alive = elections.measured.iter();
        alive.filter_map(|(labels, one)| Some((labels.clone(), one.upgrade()?))).collect()
    }
}

impl Elections {
    /// Forgets those that have stopped, each time as many have joined as were left the last time.
    fn sweep(&mut self) {
        if self.measured.len() >= self.sweep_at.max(SWEEP_FROM) {
            self.measured.retain(|_, one| one.strong_count() > 0);
            self.sweep_at = self.measured.len() * 2;
        }
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").field("bucket", &self.0.bucket).finish_non_exhaustive()
    }
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let all = self.now();
        for metric in CATALOGUE {
            let kind = metric.row.kind;
            let name = metric.row.name.strip_suffix("_total").unwrap_or(metric.row.name);
            let mut family = encoder.encode_descriptor(name, metric.row.meaning, None, kind)?;
            for (labels, measured) in &all {
                (metric.write)(measured, &mut Samples { family: &mut family, labels })?;
            }
        }
        Ok(())
    }
}

/// Writes the samples of one metric and one election.
struct Samples<'a, 'b> {
    family: &'a mut MetricEncoder<'b>,
    labels: &'a Labels,
}

impl Samples<'_, '_> {
    fn gauge(&mut self, value: impl EncodeGaugeValue) -> fmt::Result {
        self.with(&[], |mut sample| sample.encode_gauge(&value))
    }

    fn counter(&mut self, own: &[(&str, &str)], value: impl EncodeCounterValue) -> fmt::Result {
        self.with(own, |mut sample| sample.encode_counter::<NoLabelSet, _, f64>(&value, None))
    }

    /// One that may never be counted: then it takes no room.
    fn counter_from_one(&mut self, own: &[(&str, &str)], value: u64) -> fmt::Result {
        if value == 0 { Ok(()) } else { self.counter(own, value) }
    }

    /// Nothing before the first duration.
    fn histogram<const N: usize>(&mut self, own: &[(&str, &str)], of: &Histogram<N>) -> fmt::Result {
        let buckets = of.buckets();
        let count = buckets.iter().map(|(_, count)| count).sum();
        if count == 0 {
            return Ok(());
        }
        self.with(own, |mut sample| sample.encode_histogram::<NoLabelSet>(of.sum(), count, &buckets, None))
    }

    fn with(
        &mut self,
        own: &[(&str, &str)],
        write: impl FnOnce(MetricEncoder<'_>) -> fmt::Result,
    ) -> fmt::Result {
        let Labels { role, instance_id, bucket } = self.labels;
        let every = [("role", role.as_str()), ("instance_id", instance_id.as_str()), ("bucket", bucket)];
        let labels = (every, own);
        write(self.family.encode_family(&labels)?)
    }
}
