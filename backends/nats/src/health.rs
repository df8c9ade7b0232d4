//! Health by request and reply: every node answers for itself, and anybody may ask.
//!
//! ```text
//! cluster.<cluster>.health.<node>   ──▶   {"nodeId","role","leader","uptimeMs","timestamp","custom"}
//! ```
//!
//! The subjects and the answer are those of go-cluster 0.1, so each side can ask the other. What is answered is either set (role, leader, custom)
//! or asked for anew with every question ([`HealthChecker::report`]), which cannot be out of date.
//!
//! An answer shows that a process is there and what it thinks; it proves no leadership. For that there are epochs.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_nats::{HeaderMap, Subscriber};
use bellwether_backend::lock;
use bellwether_core::{Boot, Clock, ErrorKind, StoreError};
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::config::Config;
use crate::connection::NatsConnection;
use crate::errors::{BACKEND, CallFailure, invalid, unavailable};
use crate::layout::cluster::token;

/// Longest that the custom values may be as JSON: an answer must fit into a message.
const CUSTOM_MAX_BYTES: usize = 65_536;
/// How long the server may take to hear of a subscription.
const START_LIMIT: Duration = Duration::from_secs(5);

/// What a node says of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Response {
    /// The node.
    pub node_id: String,
    /// `PRIMARY`, `PASSIVE` or `UNKNOWN`.
    pub role: String,
    /// The id of the leader; empty where it is not known.
    pub leader: String,
    /// How long the node has been answering, in milliseconds.
    pub uptime_ms: i64,
    /// When it answered, by its wall clock, in Unix milliseconds.
    pub timestamp: i64,
    /// What the node adds.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "or_nothing")]
    pub custom: BTreeMap<String, Value>,
}

/// Answers for this node, and asks others.
///
/// It shares the connection of the elections when it is made by [`NatsRegister::health`](crate::NatsRegister::health). Dropped, it
/// answers no more.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use std::time::Duration;
/// # async fn example(clock: Arc<dyn bellwether_core::Clock>) -> Result<(), bellwether_core::StoreError> {
/// let nats = bellwether_nats::from_url("nats://127.0.0.1?profile=cluster", clock.clone())?;
/// let health = nats.register().health("my-cluster", "node-1", clock)?;
/// health.set_role("PASSIVE");
/// health.set_custom("version", "1.2.3")?;
/// health.start().await?;
///
/// let other = health.query_node("node-2", Duration::from_secs(1)).await?;
/// println!("{} is {}; {} leads", other.node_id, other.role, other.leader);
/// # Ok(())
/// # }
/// ```
pub struct HealthChecker {
    connection: Arc<NatsConnection>,
    cluster: String,
    node: Arc<HealthNode>,
    answering: Mutex<Option<JoinHandle<()>>>,
}

/// Role and leader.
type RoleSource = Arc<dyn Fn() -> (String, String) + Send + Sync>;

struct HealthNode {
    id: String,
    clock: Arc<dyn Clock>,
    said: Mutex<HealthState>,
}

#[derive(Default)]
struct HealthState {
    role: String,
    leader: String,
    custom: BTreeMap<String, Value>,
    source: Option<RoleSource>,
    since: Option<Boot>,
}

impl HealthChecker {
    /// On a connection of its own. Nothing is connected yet.
    ///
    /// # Errors
    /// When cluster or node cannot be part of a subject.
    pub fn new(
        config: Config,
        cluster: &str,
        node: &str,
        clock: Arc<dyn Clock>,
    ) -> Result<HealthChecker, StoreError> {
        HealthChecker::on(Arc::new(NatsConnection::new(config)), cluster, node, clock)
    }

    pub(crate) fn on(
        connection: Arc<NatsConnection>,
        cluster: &str,
        node: &str,
        clock: Arc<dyn Clock>,
    ) -> Result<HealthChecker, StoreError> {
        token("the cluster's name", cluster)?;
        token("the node's id", node)?;
        let said = Mutex::new(HealthState { role: "UNKNOWN".to_owned(), ..HealthState::default() });
        let node = Arc::new(HealthNode { id: node.to_owned(), clock, said });
        Ok(HealthChecker { connection, cluster: cluster.to_owned(), node, answering: Mutex::default() })
    }

    /// Answers from now on, over every reconnect. Does nothing if it does already.
    ///
    /// # Errors
    /// When there is no connection, which can be tried again, or when this user may not subscribe.
    pub async fn start(&self) -> Result<(), StoreError> {
        if self.is_answering() {
            return Ok(());
        }
        let client = self.connection.client().await?;
        let failed = |error| unavailable("cannot subscribe").caused_by(error);
        let questions = client.subscribe(self.subject(&self.node.id)).await.map_err(failed)?;
        {
            let mut answering = lock(&self.answering);
            if answering.as_ref().is_some_and(|task| !task.is_finished()) {
                return Ok(());
            }
            self.said().since = Some(self.node.clock.boot());
            *answering = Some(tokio::spawn(answer(client.clone(), questions, Arc::clone(&self.node))));
        }
        // Whoever asks after this has returned is answered: the server has heard of the subscription when it knows whom to ask.
        let error = match self.ask(&self.node.id, START_LIMIT).await {
            Ok(_) => return Ok(()),
            // We asked after we had subscribed, by the same connection.
            Err(CallFailure::NobodyListens) => {
                let subject = self.subject(&self.node.id);
                let sentence = format!("this user may not subscribe to {subject}: give it that permission");
                StoreError::new(ErrorKind::PermissionDenied, BACKEND, sentence)
            }
            Err(failure) => match failure.error("ask for the health of this node") {
                // That we may not ask does not keep others from asking.
                error if error.kind() == ErrorKind::PermissionDenied => return Ok(()),
                error => error,
            },
        };
        self.stop();
        Err(error)
    }

    /// Answers no more.
    pub fn stop(&self) {
        if let Some(task) = lock(&self.answering).take() {
            task.abort();
        }
    }

    /// The role to answer with: `PRIMARY`, `PASSIVE` or `UNKNOWN`, as an election's role prints.
    pub fn set_role(&self, role: impl ToString) {
        self.said().role = role.to_string();
    }

    /// The leader to answer with; empty where it is not known.
    pub fn set_leader(&self, leader: impl ToString) {
        self.said().leader = leader.to_string();
    }

    /// Something to answer besides; `null` takes it out again.
    ///
    /// # Errors
    /// When all of it would be longer than 64 KiB; then nothing has changed.
    pub fn set_custom(&self, key: impl Into<String>, value: impl Into<Value>) -> Result<(), StoreError> {
        let (key, value) = (key.into(), value.into());
        let mut said = self.said();
        if value.is_null() {
            said.custom.remove(&key);
            return Ok(());
        }
        let mut custom = said.custom.clone();
        custom.insert(key, value);
        let length = serde_json::to_vec(&custom).map_or(usize::MAX, |bytes| bytes.len());
        if length > CUSTOM_MAX_BYTES {
            return Err(invalid(format!(
                "custom values must be at most {CUSTOM_MAX_BYTES} bytes of JSON in all, and they would be {length}"
            )));
        }
        said.custom = custom;
        Ok(())
    }

    /// Asks this for role and leader with every question, instead of what was set. It must not block.
    pub fn report(&self, source: impl Fn() -> (String, String) + Send + Sync + 'static) {
        self.said().source = Some(Arc::new(source));
    }

    /// Asks a node of the same cluster how it is.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] when nobody answers for it, [`ErrorKind::TimedOut`] when it does not answer in time.
    pub async fn query_node(&self, node: &str, limit: Duration) -> Result<Response, StoreError> {
        token("the node's id", node)?;
        self.ask(node, limit).await.map_err(|failure| match failure {
            CallFailure::NobodyListens => unavailable(format!(
                "nobody answers for the node {node} of the cluster {}: it is not running, does not answer questions about \
                 its health, or may not subscribe",
                self.cluster
            )),
            other => other.error("ask for the health of a node"),
        })
    }

    async fn ask(&self, node: &str, limit: Duration) -> Result<Response, CallFailure> {
        let subject = self.subject(node);
        let message = self.connection.request(&subject, HeaderMap::new(), Vec::new(), limit).await?;
        serde_json::from_slice(&message.payload).map_err(|error| {
            CallFailure::NoAnswer(unavailable("the node's answer cannot be read").caused_by(error))
        })
    }

    fn subject(&self, node: &str) -> String {
        format!("cluster.{}.health.{node}", self.cluster)
    }

    fn said(&self) -> MutexGuard<'_, HealthState> {
        lock(&self.node.said)
    }

    fn is_answering(&self) -> bool {
        lock(&self.answering).as_ref().is_some_and(|task| !task.is_finished())
    }
}

impl Drop for HealthChecker {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn answer(client: async_nats::Client, mut questions: Subscriber, node: Arc<HealthNode>) {
    while let Some(question) = questions.next().await {
        let Some(reply) = question.reply else { continue };
        match serde_json::to_vec(&node.response()) {
            // If it fails, whoever asked has a time-out, and can ask again.
            Ok(answer) => drop(client.publish(reply, answer.into()).await),
            Err(error) => tracing::warn!(%error, "an answer about health cannot be written"),
        }
    }
}

impl HealthNode {
    fn response(&self) -> Response {
        let source = lock(&self.said).source.clone();
        // Not under the lock: it is somebody else's code, and may set something itself.
        let asked = source.map(|source| {
            let unknown = |_| ("UNKNOWN".to_owned(), String::new());
            catch_unwind(AssertUnwindSafe(|| source())).unwrap_or_else(unknown)
        });
        let said = lock(&self.said);
        let (role, leader) = asked.unwrap_or_else(|| (said.role.clone(), said.leader.clone()));
        let up = said.since.map_or(Duration::ZERO, |since| self.clock.boot().since(since));
        Response {
            node_id: self.id.clone(),
            role,
            leader,
            uptime_ms: i64::try_from(up.as_millis()).unwrap_or(i64::MAX),
            timestamp: self.clock.wall().as_unix_nanos() / 1_000_000,
            custom: said.custom.clone(),
        }
    }
}

/// Others write `null` where there is nothing.
fn or_nothing<'de, D: serde::Deserializer<'de>>(from: D) -> Result<BTreeMap<String, Value>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}
