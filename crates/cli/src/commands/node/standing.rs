//! How a node stands, in a sentence for `systemctl status`.

use std::time::Duration;

use bellwether::cluster::{NodeId, NodeProbe, RaftStatus};
use tokio::task::JoinHandle;

use crate::systemd::Systemd;

/// From one look to the next. What the node waits for while it is being formed announces no change.
const PAUSE: Duration = Duration::from_millis(250);

/// Tells until it is dropped.
pub(super) struct Telling(Option<JoinHandle<()>>);

/// Tells systemd how the node stands, and that it is ready, whenever that changes.
pub(super) fn tell(systemd: &Systemd, name: &str, probe: &NodeProbe) -> Telling {
    if !systemd.is_there() {
        return Telling(None);
    }
    let (systemd, name, probe) = (systemd.clone(), name.to_owned(), probe.clone());
    Telling(Some(tokio::spawn(async move {
        let mut told = None;
        loop {
            let now = (sentence(&name, &probe), probe.is_ready());
            if told.as_ref() != Some(&now) && systemd.stands(&now.0, now.1) {
                told = Some(now);
            }
            tokio::time::sleep(PAUSE).await;
        }
    })))
}

impl Drop for Telling {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

fn sentence(name: &str, probe: &NodeProbe) -> String {
    let status = probe.status();
    let term = status.term;
    match status.leader {
        _ if !probe.is_ready() => format!("{name}: not ready: {}", probe.waits_for()),
        Some(_) if status.is_leader => format!("{name}: leads the cluster (term {term})"),
        Some(leader) => format!("{name}: follows {} (term {term})", named(&status, leader)),
        None => format!("{name}: no leader is known (term {term})"),
    }
}

/// The name of a member, or its id where the configuration does not have it.
pub(super) fn named(status: &RaftStatus, node: NodeId) -> String {
    let member = status.configuration.member(node);
    member.map_or_else(|| node.to_string(), |(member, _)| member.name.to_string())
}
