//! Requests that a node passes on to the leader, which does not answer any more.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwether_cluster::transport::{CallError, PartSender};
use bellwether_cluster::{Applied, ClientService, Cluster, Named, NodeParts, RaftFailure, ServiceNode};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::Notify;

use crate::stage::{PATIENCE, Stage};

/// Longer than the test's patience: a node that waits for the whole of it fails the test.
const LIMIT: Duration = Duration::from_secs(10 * PATIENCE.as_secs());

/// Takes every request, and answers none.
#[derive(Default)]
struct Silent {
    node: Mutex<Option<ServiceNode>>,
    asked: Notify,
}

impl ClientService for Silent {
    fn run(&self, node: ServiceNode) -> BoxFuture<'static, ()> {
        *self.node.lock().expect("one at a time") = Some(node);
        std::future::pending().boxed()
    }

    fn propose(
        &self,
        node: ServiceNode,
        command: Vec<u8>,
    ) -> BoxFuture<'static, Result<Applied, RaftFailure>> {
        async move { node.propose(command).await }.boxed()
    }

    fn serve(&self, _: ServiceNode, _: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, String>> {
        self.asked.notify_one();
        std::future::pending().boxed()
    }

    fn stream(&self, _: ServiceNode, _: Vec<u8>, _: PartSender) -> BoxFuture<'static, Result<(), String>> {
        std::future::pending().boxed()
    }
}

/// A leader that is stopped or cut off would keep its clients waiting for as long as they are willing to, though another node leads.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_at_a_leader_that_was_replaced_is_given_up() {
    let stage = Stage::new(3);
    let services: Vec<Arc<Silent>> = (0..3).map(|_| Arc::default()).collect();
    let start = |number: usize| {
        let parts = stage.parts();
        let service = Arc::clone(&services[number]) as Arc<dyn ClientService>;
        Cluster::start(stage.config(number), NodeParts { service: Some(service), ..parts })
    };
    let nodes = futures_util::future::try_join_all((0..3).map(start)).await.expect("a cluster");
    let leader = nodes.iter().position(|(node, _)| node.is_leader()).expect("a leader");
    let (asked, next) = ((leader + 1) % 3, (leader + 2) % 3);
    let passing = services[asked].node.lock().expect("one at a time").clone().expect("it runs");
    let passed_on = tokio::spawn(async move { passing.forward(b"anything".to_vec(), LIMIT).await });
    services[leader].asked.notified().await;
    nodes[leader].0.transfer(Some(Named::Id(nodes[next].0.node_id()))).await.expect("handed over");
    let answer =
        tokio::time::timeout(PATIENCE, passed_on).await.expect("it does not wait for the whole limit");
    let answer = answer.expect("no panic");
    assert!(matches!(answer, Err(CallError::Unknown(_))), "it may have been done: {answer:?}");
}
