//! A cluster that lost its majority for good goes on from one node, by hand.

use std::path::Path;
use std::sync::Arc;

use bellwether_cluster::{
    ClusterId, EngineOptions, ErrorKind, NodeId, OpenraftEngine, Profile, RaftAdapter, Recovery, recover,
};

use crate::cluster::{CLUSTER, Cluster};
use crate::machine::Commands;
use crate::network::Network;
use crate::openraft::Openraft;

const RECOVERED: ClusterId = ClusterId::from_random(0xD);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_node_goes_on_with_everything_that_it_has_and_others_join_it() {
    let (mut cluster, mut commands) = lost(150).await;
    let survivor = &cluster.nodes[1];
    let recovery = Recovery {
        directory: survivor.directory.path().to_owned(),
        node: survivor.id(),
        from: CLUSTER,
        to: RECOVERED,
        voters: vec![survivor.member.clone()],
        generation: 1,
    };
    recover(&recovery).unwrap();
    recover(&recovery).unwrap();
    let archived = survivor.directory.path().join(format!("archive/{CLUSTER}-generation-0"));
    assert!(archived.join("raft.redb").exists());
    assert!(archived.join("snap").read_dir().unwrap().count() > 0);

    let engine = open(survivor.directory.path(), survivor.id(), RECOVERED).await.unwrap();
    assert_eq!(engine.generation(), 1);
    engine.shutdown().await;
    assert_eq!(
        open(survivor.directory.path(), survivor.id(), CLUSTER).await.err(),
        Some(ErrorKind::InvalidInput)
    );

    // Members of the old cluster stay away; new ones come with nothing.
    cluster.set_engine(Openraft { profile: Profile::Default, cluster: RECOVERED });
    cluster.start(1).await;
    cluster.write("recovered").await;
    commands.push("recovered in generation 1".to_owned());
    for new in [3, 4] {
        assert_eq!(cluster.add().await, new);
        let lead = cluster.nodes[1].adapter();
        lead.add_learner(cluster.nodes[new].member.clone()).await.unwrap();
        let id = cluster.nodes[new].id();
        cluster
            .until("the learner is committed", |cluster| {
                cluster.nodes[1].status().configuration.member(id).map(drop)
            })
            .await;
        lead.promote(id, None, cluster.decided_on(1)).await.unwrap();
    }
    cluster.write("once more").await;
    commands.push("once more in generation 1".to_owned());
    cluster.agree(&[1, 3, 4]).await;
    for node in [1, 3, 4] {
        assert_eq!(
            cluster.nodes[node].commands.all(),
            commands,
            "node {node} counts the recoveries like the others"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recovery_that_is_not_meant_for_the_storage_changes_nothing() {
    let (cluster, _) = lost(5).await;
    let survivor = &cluster.nodes[0];
    let right = Recovery {
        directory: survivor.directory.path().to_owned(),
        node: survivor.id(),
        from: CLUSTER,
        to: RECOVERED,
        voters: vec![survivor.member.clone()],
        generation: 1,
    };
    let other = cluster.nodes[1].member.clone();
    let empty = tempfile::TempDir::new().unwrap();
    let wrong = [
        Recovery { from: ClusterId::from_random(9), ..right.clone() },
        Recovery { generation: 0, ..right.clone() },
        Recovery { node: other.node, voters: vec![other.clone()], ..right.clone() },
        Recovery { voters: vec![other], ..right.clone() },
        Recovery { directory: empty.path().to_owned(), ..right.clone() },
    ];
    for recovery in wrong {
        let error = recover(&recovery).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::Refused | ErrorKind::InvalidInput),
            "{recovery:?}: {error}"
        );
    }
    let engine = open(survivor.directory.path(), survivor.id(), CLUSTER).await.unwrap();
    assert_eq!(engine.generation(), 0);
    assert_eq!(recover(&right).unwrap_err().kind(), ErrorKind::InvalidInput, "the storage is in use");
    engine.shutdown().await;
}

/// A cluster of three nodes that were all killed after so many commands, and the commands.
async fn lost(count: usize) -> (Cluster, Vec<String>) {
    let mut cluster = Cluster::begun(Openraft { profile: Profile::Default, cluster: CLUSTER }).await;
    for number in 0..count {
        cluster.write(&format!("{number}")).await;
    }
    cluster.agree(&[0, 1, 2]).await;
    let commands = cluster.nodes[1].commands.all();
    for place in 0..3 {
        cluster.stop(place).await;
    }
    (cluster, commands)
}

async fn open(directory: &Path, node: NodeId, cluster: ClusterId) -> Result<OpenraftEngine, ErrorKind> {
    let link = Network::default().link(node);
    let options = EngineOptions::new(directory, node, cluster);
    let opened = OpenraftEngine::open(options, Box::new(Commands::default()), Arc::new(link)).await;
    opened.map_err(|error| error.kind())
}
