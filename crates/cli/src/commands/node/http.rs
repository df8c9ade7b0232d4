//! `node --http ADDR`: health and metrics of the node, by `bellwether-agent`, from before it is ready.

use std::sync::Arc;

use bellwether::cluster::NodeProbe;
use bellwether_agent::{Agent, Listener, NodeReport, TlsFiles};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::metrics;
use super::standing::named;
use crate::args::NodeHttpFlags;
use crate::exit::{Exit, Failure};

/// Serves it where the flags say, if they say so.
pub(super) fn serve(flags: &NodeHttpFlags, name: &str, probe: &NodeProbe) -> Result<Option<Agent>, Failure> {
    let Some(address) = &flags.http else { return Ok(None) };
    let tls = match (&flags.http_tls_cert, &flags.http_tls_key) {
        (Some(certificate), Some(key)) => {
            Some(TlsFiles { certificate: certificate.clone(), key: key.clone() })
        }
        _ => None,
    };
    let listener =
        Listener::bind(address, None, tls).map_err(|error| Failure::new(Exit::Usage, error.to_string()))?;
    tracing::info!("{name}: health and metrics are served on {}", listener.shown());
    let report = Report { name: name.to_owned(), probe: probe.clone() };
    let agent = listener.serve_node(Arc::new(report)).map_err(|error| {
        let sentence = format!("--http cannot be served here: {}", bellwether_supervise::advised(&error));
        Failure::new(Exit::Unavailable, sentence)
    })?;
    Ok(Some(agent))
}

struct Report {
    name: String,
    probe: NodeProbe,
}

impl NodeReport for Report {
    fn answers(&self) -> BoxFuture<'static, bool> {
        let probe = self.probe.clone();
        Box::pin(async move { probe.answers().await })
    }

    fn readiness(&self) -> (bool, Value) {
        let (is_ready, status) = (self.probe.is_ready(), self.probe.status());
        let body = json!({
            "ready": is_ready,
            "phase": self.probe.phase(),
            "leader": status.leader.map(|leader| named(&status, leader)),
            "term": status.term,
            "why": (!is_ready).then(|| status.stopped.clone().unwrap_or_else(|| self.probe.waits_for())),
        });
        (is_ready, body)
    }

    fn metrics(&self) -> String {
        metrics::text(&self.name, &self.probe)
    }
}
