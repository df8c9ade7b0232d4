//! What a node answers to those who connect.
//!
//! The first frame of a cluster that this node has consented to binds it, and that is on disk before the engine sees the frame.

use std::sync::{Arc, OnceLock, Weak};

use futures_util::future::BoxFuture;

use super::ask::Ask;
use super::members::administer;
use super::service::{ClientService, ServiceNode};
use super::shared::Shared;
use super::{giving_up, join, shared};
use crate::adapter::RaftAdapter;
use crate::directory::Identity;
use crate::error::{ClusterError, ErrorKind};
use crate::formation::{NotInCluster, Phase};
use crate::names::{ClusterId, NodeId, NodeName};
use crate::protocol::{FormationAnswer, FormationRequest, decode, encode};
use crate::transport::{Hello, Host, PartSender, Purpose, Refused, Welcome};

/// Answers for a node, once it has been [attached](NodeHost::attach): the listener is there before the node is.
#[derive(Default)]
pub(super) struct NodeHost {
    node: OnceLock<(Weak<Shared>, Arc<dyn Ask>)>,
}

impl NodeHost {
    pub(super) fn attach(&self, shared: &Arc<Shared>, ask: &Arc<dyn Ask>) {
        let _ = self.node.set((Arc::downgrade(shared), Arc::clone(ask)));
    }

    fn node(&self) -> Option<(Arc<Shared>, Arc<dyn Ask>)> {
        let (shared, ask) = self.node.get()?;
        Some((shared.upgrade()?, Arc::clone(ask)))
    }

    fn service(&self) -> Option<(Arc<dyn ClientService>, ServiceNode)> {
        self.node()?.0.service().cloned()
    }
}

impl Host for NodeHost {
    fn greet(&self, hello: &Hello) -> Result<Welcome, Refused> {
        let (shared, _) = self.node().ok_or(Refused::ShuttingDown)?;
        let known = shared.known();
        if let (Some((_, name)), Some(cluster)) = (&hello.from, hello.cluster) {
            shared.counters.seen(name, cluster);
        }
        if let Purpose::Raft(_) = hello.purpose {
            let asked = hello.cluster.ok_or(Refused::NoConsent)?;
            known.phase.frame_of(asked).map_err(|NotInCluster { asked, own }| match own {
                Some(own) if own != asked => Refused::WrongCluster { listener: own, dialler: asked },
                _ => Refused::NoConsent,
            })?;
        }
        Ok(Welcome { node: known.node, name: shared.name().clone(), cluster: known.phase.cluster() })
    }

    fn serve(&self, hello: Arc<Hello>, request: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, String>> {
        if hello.purpose == Purpose::Client {
            return match self.service() {
                Some((service, node)) => service.serve(node, request),
                None => Box::pin(async { Err(NO_SERVICE.to_owned()) }),
            };
        }
        let node = self.node();
        Box::pin(async move {
            let (shared, ask) = node.ok_or("the node is stopping")?;
            match (hello.purpose, hello.cluster) {
                (Purpose::Formation, _) => Ok(encode(&formation(&shared, decode(&request)?).await?)),
                (Purpose::Raft(_), Some(cluster)) => {
                    if let Some((node, _)) = &hello.from {
                        shared.frames_of.from(*node);
                    }
                    let engine = bound_to(&shared, cluster, None).await.map_err(|error| error.to_string())?;
                    engine.receive(request).await.map_err(|failure| failure.to_string())
                }
                (Purpose::Admin, _) => Ok(encode(&administer(&shared, &*ask, decode(&request)?).await)),
                (Purpose::Raft(_) | Purpose::Client, _) => Err(NO_SERVICE.to_owned()),
            }
        })
    }

    fn stream(
        &self,
        hello: Arc<Hello>,
        request: Vec<u8>,
        parts: PartSender,
    ) -> BoxFuture<'static, Result<(), String>> {
        match self.service().filter(|_| hello.purpose == Purpose::Client) {
            Some((service, node)) => service.stream(node, request, parts),
            None => Box::pin(async { Err(NO_SERVICE.to_owned()) }),
        }
    }
}

const NO_SERVICE: &str = "this node has no such service";

/// The engine of a node that takes part in that cluster. The first frame binds it, if this is the node that is meant: it may have started
/// over since it consented, and the one that consented is gone then.
async fn bound_to(
    shared: &Arc<Shared>,
    cluster: ClusterId,
    meant: Option<NodeId>,
) -> Result<Arc<dyn RaftAdapter>, ClusterError> {
    if shared.engine().is_none() || shared.known().phase.cluster() != Some(cluster) {
        let refused = |error: NotInCluster| ClusterError::new(ErrorKind::Refused, error.to_string());
        // In a task of its own: whoever sent the frame may give up, and what was begun has to end.
        let binding = Arc::clone(shared);
        let bound = tokio::spawn(async move {
            let by_frame = move |own: &Identity| {
                check_meant(own.node, &own.name, meant)?;
                own.phase.frame_of(cluster).map_err(refused)
            };
            binding.bind(by_frame).await
        });
        bound.await.map_err(|_| ClusterError::new(ErrorKind::Stopped, "the node is stopping"))??;
    }
    check_meant(shared.known().node, shared.name(), meant)?;
    shared.bound_engine().cloned()
}

fn check_meant(own: NodeId, name: &NodeName, meant: Option<NodeId>) -> Result<(), ClusterError> {
    match meant {
        Some(node) if node != own => Err(ClusterError::new(
            ErrorKind::Refused,
            format!("{name} has another disk by now: node {own}, and not {node}"),
        )),
        _ => Ok(()),
    }
}

async fn formation(shared: &Arc<Shared>, request: FormationRequest) -> Result<FormationAnswer, String> {
    match request {
        FormationRequest::Invite(invitation) => {
            let answering = Arc::clone(shared);
            // As above: consent is on disk or is not given, whether or not somebody still waits for the answer.
            let invited = tokio::spawn(async move {
                let answer = answering.change(move |phase| phase.invited(invitation)).await?;
                Ok::<_, ClusterError>(FormationAnswer::Invited { node: answering.known().node, answer })
            });
            let answer = invited.await.map_err(|_| "the node is stopping")?;
            answer.map_err(|error| error.to_string())
        }
        FormationRequest::Bind(cluster, node) => {
            let bound = bound_to(shared, cluster, Some(node)).await;
            Ok(FormationAnswer::Bound(bound.map(|_| node).map_err(|error| error.to_string())))
        }
        FormationRequest::Join { member, only } => {
            Ok(FormationAnswer::Join(join::answer(shared, member, only).await))
        }
        FormationRequest::Come(cluster, address) => {
            Ok(FormationAnswer::Coming(come(shared, cluster, address)))
        }
        FormationRequest::Standing(node, cluster) => {
            Ok(FormationAnswer::Standing(join::standing(shared, node, cluster).await))
        }
        FormationRequest::IsLed(cluster) => {
            Ok(FormationAnswer::Led(giving_up::is_led(shared, cluster).await))
        }
    }
}

/// The node asks to join by itself, as it does with all whom it knows.
fn come(shared: &shared::Shared, cluster: ClusterId, address: String) -> Result<(), String> {
    match shared.known().phase {
        Phase::Unbound { .. } => {
            shared.invited_by.send_replace(Some((cluster, address)));
            Ok(())
        }
        Phase::Removed { cluster: own } if own == cluster => {
            shared.invited_by.send_replace(Some((cluster, address)));
            Ok(())
        }
        Phase::Bound { cluster: own, .. } if own == cluster => Err("the node is a member already".to_owned()),
        Phase::Bound { cluster: own, .. } | Phase::Removed { cluster: own } => {
            Err(format!("the node belongs to cluster {own}: move its data directory away first"))
        }
    }
}
