//! Connections to other nodes: the engine's, and one for each question.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::ask::{Ask, AskFailure, FORMATION_LIMIT};
use super::shared::Shared;
use crate::adapter::{Lane, PeerLink, Unreached};
use crate::error::ClusterError;
use crate::member::Member;
use crate::names::{ClusterId, NodeId, NodeName};
use crate::protocol::{AdminAnswer, AdminRequest, FormationAnswer, FormationRequest, decode, encode};
use crate::transport::{Connection, DialError, Dialler, Hello, Intended, Links, Purpose, Security};

/// Connects for a node, once it has been [attached](Connector::attach).
pub(super) struct Connector {
    dialler: Dialler,
    shared: OnceLock<Weak<Shared>>,
}

impl Connector {
    pub(super) fn new(security: Security) -> Result<Connector, ClusterError> {
        Ok(Connector { dialler: Dialler::new(security)?, shared: OnceLock::new() })
    }

    pub(super) fn attach(&self, shared: &Arc<Shared>) {
        let _ = self.shared.set(Arc::downgrade(shared));
    }

    /// The way of this node's engine to the other members of its cluster.
    pub(super) fn link(&self, cluster: ClusterId, from: (NodeId, NodeName)) -> Arc<dyn PeerLink> {
        let shared = self.shared.get().cloned().unwrap_or_default();
        let book = shared.clone();
        let address = move |to: &Member| {
            book.upgrade().map_or_else(|| to.address.clone(), |shared| shared.address_of(to))
        };
        let links = Links::new(self.dialler.clone(), cluster, from, address);
        Arc::new(EngineLink { shared, links })
    }

    /// A connection to that member's service, for what this node passes on.
    pub(super) async fn connect_as_client(
        &self,
        to: &Member,
        address: &str,
    ) -> Result<Connection, DialError> {
        let hello = self.hello(Purpose::Client, Intended::Node(to.node, to.name.clone()));
        self.dialler.connect(address, &hello).await
    }

    async fn ask_one(
        &self,
        address: &str,
        hello: Hello,
        request: Vec<u8>,
        limit: Duration,
    ) -> Result<Vec<u8>, AskFailure> {
        let unsent = |message: String| AskFailure { message, is_unsent: true };
        let asked = async {
            let connection =
                self.dialler.connect(address, &hello).await.map_err(|error| unsent(error.to_string()))?;
            connection.call(request, limit).await.map_err(|error| AskFailure {
                is_unsent: error.is_certainly_not_sent(),
                message: error.to_string(),
            })
        };
        match tokio::time::timeout(limit, asked).await {
            Ok(answer) => answer,
            Err(_) => Err(AskFailure {
                message: format!("no answer from {address} within {limit:?}"),
                is_unsent: false,
            }),
        }
    }

    fn hello(&self, purpose: Purpose, intended: Intended) -> Hello {
        let shared = self.shared.get().and_then(Weak::upgrade);
        let from = shared.as_ref().map(|shared| (shared.known().node, shared.name().clone()));
        let cluster = shared
            .filter(|_| purpose != Purpose::Formation)
            .and_then(|shared| shared.known().phase.cluster());
        Hello { purpose, cluster, from, intended }
    }
}

impl Ask for Connector {
    fn formation(
        &self,
        address: String,
        to: Option<NodeName>,
        request: FormationRequest,
    ) -> BoxFuture<'_, Result<FormationAnswer, AskFailure>> {
        Box::pin(async move {
            let hello = self.hello(Purpose::Formation, to.map_or(Intended::Anyone, Intended::Name));
            let answer = self.ask_one(&address, hello, encode(&request), FORMATION_LIMIT).await?;
            decode(&answer).map_err(|message| AskFailure { message, is_unsent: false })
        })
    }

    fn admin(
        &self,
        address: String,
        request: AdminRequest,
        limit: Duration,
    ) -> BoxFuture<'_, Result<AdminAnswer, AskFailure>> {
        Box::pin(async move {
            let hello = self.hello(Purpose::Admin, Intended::Anyone);
            let answer = self.ask_one(&address, hello, encode(&request), limit).await?;
            decode(&answer).map_err(|message| AskFailure { message, is_unsent: false })
        })
    }
}

/// Takes the engine's messages to other members, and notes who answered.
struct EngineLink {
    shared: Weak<Shared>,
    links: Links,
}

impl PeerLink for EngineLink {
    fn call(
        &self,
        to: &Member,
        lane: Lane,
        message: Vec<u8>,
        limit: Duration,
    ) -> BoxFuture<'_, Result<Vec<u8>, Unreached>> {
        let to = to.clone();
        Box::pin(async move {
            let answer = self.links.call(&to, lane, message, limit).await?;
            if let Some(shared) = self.shared.upgrade() {
                shared.heard.from(to.node);
            }
            Ok(answer)
        })
    }
}
