//! `bellwether nats`: what only NATS has.

use std::sync::Arc;
use std::time::Duration;

use bellwether::Wall;
use bellwether::nats::{HealthChecker, Nats as NatsStore, NatsRegister, Profile, Response};
use bellwether::{CandidateId, ElectionName, Store, SystemClock};
use serde_json::{Value, json};

use super::Companion;
use crate::args::{Format, Global, NatsCommand, NatsHealth};
use crate::exit::{Exit, Failure};
use crate::{backend, output};

/// After a try to subscribe that failed.
const RETRY: Duration = Duration::from_secs(1);

pub(crate) async fn nats(global: &Global, command: &NatsCommand) -> Result<Exit, Failure> {
    let NatsCommand::Health(flags) = command;
    health(global, flags).await
}

/// Asks one node, and prints what it says.
async fn health(global: &Global, flags: &NatsHealth) -> Result<Exit, Failure> {
    let store = backend::connect(global)?;
    let Some(register) = cluster(&store) else {
        let sentence = "nodes are asked for their health on --backend nats://HOST:PORT?profile=cluster";
        return Err(Failure::new(Exit::Usage, sentence));
    };
    let node = match &flags.node {
        Some(node) => node.clone(),
        None => leader(&store, &flags.election).await?,
    };
    let checker = register.health_in(&flags.election, &node, Arc::new(SystemClock))?;
    let response = checker.query_node(node.as_str(), flags.timeout).await?;
    match global.output {
        Format::Json => output::line(&json_of(&flags.election, &response).to_string()),
        Format::Table => {
            let rows = [row(&response)];
            output::lines(&output::table(&["NODE", "ROLE", "LEADER", "UP"], &rows))
        }
    }?;
    Ok(Exit::Clean)
}

/// With the profile `cluster`: answers questions about this node's health, as nodes of go-cluster do, for as long as it takes part. No
/// leadership depends on it.
pub(crate) fn answers(
    store: &Store,
    on: &ElectionName,
    id: &CandidateId,
) -> Result<Option<Companion>, Failure> {
    let Some(register) = cluster(store) else { return Ok(None) };
    let health = register.health_in(on, id, Arc::new(SystemClock))?;
    Ok(Some(Box::new(|election| {
        bellwether::answer_for(election, &health);
        tokio::spawn(answer(health))
    })))
}

async fn answer(health: HealthChecker) {
    while let Err(error) = health.start().await {
        if !error.is_retryable() {
            tracing::warn!(%error, "questions about this node's health are not answered");
            return;
        }
        tokio::time::sleep(RETRY).await;
    }
    // Dropped, it answers no more.
    std::future::pending::<()>().await;
}

fn cluster(store: &Store) -> Option<&NatsRegister> {
    let register = store.backend_as::<NatsStore>()?.register();
    (register.profile() == Profile::Cluster).then_some(register)
}

async fn leader(store: &Store, on: &ElectionName) -> Result<CandidateId, Failure> {
    let seen = store.backend().observe(on).await?;
    seen.leader().cloned().ok_or_else(|| {
        Failure::new(
            Exit::None,
            format!("nobody leads {on}: name the node to ask (bellwether nats health {on} NODE)"),
        )
    })
}

fn up(response: &Response) -> Duration {
    Duration::from_millis(u64::try_from(response.uptime_ms).unwrap_or(0))
}

fn row(response: &Response) -> Vec<String> {
    let leader = if response.leader.is_empty() { "-" } else { &response.leader };
    vec![response.node_id.clone(), response.role.clone(), leader.to_owned(), output::span(up(response))]
}

fn json_of(on: &ElectionName, response: &Response) -> Value {
    json!({
        "election": on.as_str(),
        "node": response.node_id,
        "role": response.role,
        "leader": Some(&response.leader).filter(|leader| !leader.is_empty()),
        "uptime_ms": response.uptime_ms,
        "time": Wall::from_unix_nanos(response.timestamp.saturating_mul(1_000_000)).to_string(),
        "custom": response.custom,
    })
}
