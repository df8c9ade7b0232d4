//! `bellwether node`: a node of a Raft cluster, until interrupted.

mod events;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "http")]
mod metrics;
mod settings;
mod standing;

use bellwether::cluster::{
    Cluster, ClusterError, Config, Configuration, ErrorKind, NodeId, NodeParts, NodeProbe, RaftStatus,
    StartResult,
};
use serde_json::json;

use self::events::Events;
#[cfg(feature = "http")]
pub(super) use self::metrics::{CATALOGUE as NODE_METRICS, NodeMetric};
pub(super) use self::settings::{data_directory, ledger};
use super::signals::Signals;
use crate::args::{Global, Node};
use crate::exit::{Exit, Failure};
use crate::systemd::Systemd;

/// Runs it.
pub(crate) async fn node(global: &Global, flags: &Node) -> Result<Exit, Failure> {
    // First of all: what follows takes its time, and a signal must find us listening.
    let mut signals = Signals::new()?;
    let (config, parts) = settings::settings(flags)?;
    let probe = NodeProbe::default();
    #[cfg(feature = "http")]
    let agent = http::serve(&flags.http, config.name.as_str(), &probe)?;
    let outcome = take_part(global, config, parts, &probe, &mut signals).await;
    #[cfg(feature = "http")]
    if let Some(agent) = agent {
        agent.stop().await;
    }
    outcome
}

/// From the start of the node to its end, with somebody who watches over it.
async fn take_part(
    global: &Global,
    config: Config,
    parts: NodeParts,
    probe: &NodeProbe,
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    let systemd = Systemd::from_env();
    let name = config.name.to_string();
    let events = Events::new(global, &name);
    tracing::info!("{name}: starts with {}, listens on {}", config.directory.display(), config.bind);
    let watched = probe.clone();
    let _heartbeat = systemd.heartbeat(move || {
        let watched = watched.clone();
        async move { watched.answers().await }
    });
    let _standing = standing::tell(&systemd, &name, probe);
    let started = tokio::select! {
        started = Cluster::start_watched(config, parts, probe) => started,
        () = signals.leave() => {
            systemd.stopping("asked to stop before it was ready");
            tracing::info!("{name}: asked to stop before it was ready");
            events.print("stopped", json!({}));
            events.end().await;
            return Ok(Exit::Clean);
        }
    };
    let outcome = match started {
        Ok((cluster, result)) => {
            let running = Running { name: &name, events: &events, cluster, systemd: &systemd };
            running.tell_ready(&result);
            running.until_ended(signals).await
        }
        Err(error) => Err(error),
    };
    if let Err(error) = &outcome {
        let event = if error.kind() == ErrorKind::Removed { "removed" } else { "failed" };
        events.print(event, json!({ "error": error.to_string() }));
    }
    events.end().await;
    outcome.map_err(|error| Failure::from(error).prefixed(&name))
}

/// A node that is ready.
struct Running<'a> {
    name: &'a str,
    events: &'a Events,
    cluster: Cluster,
    systemd: &'a Systemd,
}

impl Running<'_> {
    fn tell_ready(&self, result: &StartResult) {
        let Running { name, events, cluster, .. } = self;
        let leader = result.leader.as_ref().map(|leader| leader.id.as_str());
        let id = cluster.cluster_id().map(|id| id.to_string());
        let mut members: Vec<&str> = result.peers.iter().map(|peer| peer.id.as_str()).collect();
        members.sort_unstable();
        tracing::info!(
            "{name}: ready ({}); {} leads cluster {}; members: {}",
            result.mode,
            leader.unwrap_or("nobody"),
            id.as_deref().unwrap_or("-"),
            members.join(", ")
        );
        let more = json!({
            "mode": result.mode.to_string(),
            "cluster": id,
            "node": cluster.node_id().to_string(),
            "leader": leader,
            "term": cluster.status().term,
            "address": cluster.local_address().to_string(),
            "members": members,
        });
        events.print("ready", more);
    }

    /// Until a signal asks it to stop, or it cannot go on.
    async fn until_ended(self, signals: &mut Signals) -> Result<Exit, ClusterError> {
        tokio::select! {
            () = signals.leave() => {}
            error = self.cluster.stopped() => return Err(error),
            () = self.tell_changes() => {}
        }
        let Running { name, events, cluster, systemd } = self;
        systemd.stopping("stops; it stays a member, and is expected back");
        tracing::info!("{name}: stops; it stays a member, and is expected back");
        tokio::select! {
            () = cluster.shutdown() => {}
            () = signals.leave() => tracing::warn!("{name}: a second signal: ends at once"),
        }
        events.print("stopped", json!({}));
        Ok(Exit::Clean)
    }

    /// Tells who leads whenever that changes. Returns when the engine has ended, of which `stopped` says why.
    async fn tell_changes(&self) {
        let mut changes = self.cluster.changes();
        let mut told = leader(&changes.borrow_and_update());
        while changes.changed().await.is_ok() {
            let (now, configuration) = {
                let status = changes.borrow_and_update();
                (leader(&status), status.configuration.clone())
            };
            if now != told {
                self.tell_leader(now, &configuration);
                told = now;
            }
        }
        std::future::pending().await
    }

    fn tell_leader(&self, (leader, term): (Option<NodeId>, u64), configuration: &Configuration) {
        let named = leader.map(|leader| {
            let member = configuration.member(leader).map(|(member, _)| member.name.to_string());
            member.unwrap_or_else(|| leader.to_string())
        });
        match &named {
            Some(named) => tracing::info!("{}: {named} leads the cluster (term {term})", self.name),
            None => tracing::info!("{}: no leader is known (term {term})", self.name),
        }
        self.events.print("leader_changed", json!({ "leader": named, "term": term }));
    }
}

/// Who leads, and since which term.
fn leader(status: &RaftStatus) -> (Option<NodeId>, u64) {
    (status.leader, status.term)
}
