use std::sync::Arc;

use bellwether_cluster::{
    Cluster, ClusterError, Engines, ErrorKind, Opening, PeerLink, RaftAdapter, StartMode, StateMachine,
};
use futures_util::future::{BoxFuture, join, ready};

use crate::stage::{Stage, agree, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_nodes_form_one_cluster_and_every_node_takes_commands() {
    let stage = Stage::new(3);
    let nodes = stage.start_all().await;
    let modes: Vec<StartMode> = nodes.iter().map(|(_, result)| result.mode).collect();
    assert_eq!(modes, [StartMode::Bootstrap, StartMode::Join, StartMode::Join]);
    for (place, (node, result)) in nodes.iter().enumerate() {
        assert_eq!((result.peers.len(), node.cluster_id()), (3, nodes[0].0.cluster_id()));
        let applied = node.propose(vec![place as u8]).await.unwrap();
        assert_eq!(applied.answer, (place as u64).to_be_bytes(), "in the order in which they were asked");
    }
    agree(&nodes.iter().map(|(node, _)| node).collect::<Vec<_>>()).await;
    assert_eq!(nodes.iter().filter(|(node, _)| node.is_leader()).count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_stop_and_go_on_from_their_disks() {
    let stage = Stage::new(3);
    let mut clusters = Vec::new();
    for round in 0..3_u64 {
        let nodes = stage.start_all().await;
        clusters.push(nodes[0].0.cluster_id());
        if round > 0 {
            assert!(nodes.iter().all(|(_, result)| result.mode == StartMode::Restart));
        }
        let applied = nodes[1].0.propose(b"x".to_vec()).await.unwrap();
        assert_eq!(applied.answer, round.to_be_bytes(), "nothing is lost, nothing is applied twice");
        for (node, _) in nodes {
            node.shutdown().await;
        }
    }
    assert!(clusters.windows(2).all(|pair| pair[0] == pair[1]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_node_that_is_expected_alone_is_a_cluster() {
    let stage = Stage::new(1);
    let (node, result) = stage.start(0).await.unwrap();
    assert_eq!((result.mode, result.peers.len()), (StartMode::Bootstrap, 1));
    node.propose(b"x".to_vec()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_seed_waits_for_all_and_says_for_whom() {
    let stage = Stage::new(3);
    let mut config = stage.config(0);
    config.bootstrap.join_timeout = Some(std::time::Duration::from_millis(700));
    let Err(error) = Cluster::start(config, stage.parts()).await else { panic!("alone") };
    assert_eq!(error.kind(), ErrorKind::JoinTimeout);
    let sentence = error.to_string();
    assert!(sentence.contains("n-1 (cannot connect") && sentence.contains("n-2 (cannot connect"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wiped_seed_joins_the_cluster_that_it_once_formed() {
    let stage = Stage::new(3);
    let mut nodes = stage.start_all().await;
    let cluster = nodes[0].0.cluster_id();
    let (seed, _) = nodes.remove(0);
    let old = seed.node_id();
    seed.shutdown().await;
    stage.wipe(0);
    let (seed, result) = stage.start(0).await.unwrap();
    assert_eq!((result.mode, seed.cluster_id()), (StartMode::Join, cluster));
    assert_ne!(seed.node_id(), old);
    until("the new member takes the place of the old one", || async {
        let configuration = seed.configuration();
        configuration.voters().count() == 3 && configuration.member(old).is_none()
    })
    .await;
    seed.propose(b"x".to_vec()).await.unwrap();
    agree(&[&seed, &nodes[0].0, &nodes[1].0]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wiped_seed_that_reaches_nobody_forms_nothing() {
    let stage = Stage::new(3);
    for (node, _) in stage.start_all().await {
        node.shutdown().await;
    }
    stage.wipe(0);
    let mut config = stage.config(0);
    config.bootstrap.join_timeout = Some(std::time::Duration::from_millis(700));
    let Err(error) = Cluster::start(config, stage.parts()).await else { panic!("alone") };
    assert_eq!(error.kind(), ErrorKind::JoinTimeout, "{error}");
}

/// A disk that has no room for a log.
struct Full;

impl Engines for Full {
    fn open(
        &self,
        _: Opening,
        _: Box<dyn StateMachine>,
        _: Arc<dyn PeerLink>,
    ) -> BoxFuture<'_, Result<Arc<dyn RaftAdapter>, ClusterError>> {
        Box::pin(ready(Err(ClusterError::new(ErrorKind::Storage, "cannot make raft.redb: no room"))))
    }
}

/// The seed binds it, so the seed hears of it first. Whoever started the node has to hear of it too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_cannot_be_bound_ends_and_does_not_wait_for_a_cluster() {
    let stage = Stage::new(3);
    let mut parts = stage.parts();
    parts.engines = Arc::new(Full);
    tokio::select! {
        started = Cluster::start(stage.config(1), parts) => {
            let error = started.err().expect("it has no log");
            assert_eq!(error.kind(), ErrorKind::Storage, "{error}");
        }
        _ = join(stage.start(0), stage.start(2)) => panic!("a voter is missing"),
    }
}
