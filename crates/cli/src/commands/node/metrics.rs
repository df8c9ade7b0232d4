//! The metrics of a node, in Prometheus's text format. One table says what each means; the documents' is printed from it.
//!
//! Labels come from the configuration of the cluster: a node has a series for each other member, and none that a stranger could add.

use std::fmt::Write as _;

use bellwether::cluster::{ClusterMetrics, NodeProbe, RaftStatus};

use super::standing::named;

/// What there is to say at one moment.
struct Now<'a> {
    probe: &'a NodeProbe,
    status: RaftStatus,
    counted: ClusterMetrics,
    is_ready: bool,
}

/// A metric of a node.
pub(crate) struct NodeMetric {
    pub(crate) name: &'static str,
    /// `gauge` or `counter`.
    pub(crate) kind: &'static str,
    /// The label beside the node's name.
    pub(crate) label: Option<&'static str>,
    pub(crate) meaning: &'static str,
    /// The value of that label, and the value.
    samples: fn(&Now<'_>) -> Vec<(String, u64)>,
}

const fn one(
    name: &'static str,
    kind: &'static str,
    meaning: &'static str,
    samples: fn(&Now<'_>) -> Vec<(String, u64)>,
) -> NodeMetric {
    NodeMetric { name, kind, label: None, meaning, samples }
}

fn only(value: impl Into<u64>) -> Vec<(String, u64)> {
    vec![(String::new(), value.into())]
}

/// Every metric.
pub(crate) const CATALOGUE: &[NodeMetric] = &[
    one(
        "cluster_ready",
        "gauge",
        "1 while a leader is heard, the node is a member, and has caught up",
        |now| only(now.is_ready),
    ),
    NodeMetric {
        name: "cluster_formation_phase",
        kind: "gauge",
        label: Some("phase"),
        meaning: "1 at the phase of the node's formation: starting, unbound (in no cluster), consented (invited), bound (in one), removed",
        samples: |now| {
            let phase = now.probe.phase();
            NodeProbe::PHASES.iter().map(|one| ((*one).to_owned(), u64::from(*one == phase))).collect()
        },
    },
    one("cluster_is_leader", "gauge", "1 while the node believes that it leads the cluster", |now| {
        only(now.status.is_leader)
    }),
    one("cluster_term", "gauge", "the Raft term", |now| only(now.status.term)),
    one("cluster_voters", "gauge", "the voters of the configuration that is known to be committed", |now| {
        only(now.status.configuration.voters().count() as u64)
    }),
    one("cluster_last_index", "gauge", "the last entry in the node's log", |now| only(now.status.last_index)),
    one("cluster_committed_index", "gauge", "the last entry that the node knows to be committed", |now| {
        only(now.status.committed_index)
    }),
    one("cluster_applied_index", "gauge", "the last entry in the node's state machine", |now| {
        only(now.status.applied_index)
    }),
    NodeMetric {
        name: "cluster_peer_lag_entries",
        kind: "gauge",
        label: Some("peer"),
        meaning: "at the leader: how many entries of its log the other member does not have on disk",
        samples: |now| {
            let lag = |matched: u64| now.status.last_index.saturating_sub(matched);
            let matched = now.status.matched.iter();
            matched.map(|(node, matched)| (named(&now.status, *node), lag(*matched))).collect()
        },
    },
    one(
        "cluster_join_attempts_total",
        "counter",
        "requests to join, and invitations, that were sent",
        |now| only(now.counted.join_attempts),
    ),
    one("cluster_join_failures_total", "counter", "those that had no answer, or a refusal", |now| {
        only(now.counted.join_failures)
    }),
    one(
        "cluster_names_with_two_clusters",
        "gauge",
        "names under which two cluster ids were seen: two clusters of one configuration, or mixed up data directories; has to be 0",
        |now| only(now.counted.names_with_two_clusters),
    ),
];

/// All of them.
pub(super) fn text(node: &str, probe: &NodeProbe) -> String {
    let now = Now { probe, status: probe.status(), counted: probe.metrics(), is_ready: probe.is_ready() };
    let mut text = String::new();
    for metric in CATALOGUE {
        let NodeMetric { name, kind, label, meaning, samples } = metric;
        // Writing to a string does not fail. Names of nodes have no character that would need to be escaped.
        let _ = write!(text, "# HELP {name} {meaning}.\n# TYPE {name} {kind}\n");
        for (value, sample) in samples(&now) {
            let label = label.map(|label| format!(",{label}=\"{value}\"")).unwrap_or_default();
            let _ = writeln!(text, "{name}{{node=\"{node}\"{label}}} {sample}");
        }
    }
    text
}
