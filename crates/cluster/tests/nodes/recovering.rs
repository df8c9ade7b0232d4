//! A majority is lost for good, or a cluster is given up.

use bellwether_cluster::{ClusterId, Config, ErrorKind, Recovery, StartMode, Survivor, recover};

use crate::stage::{Stage, agree, until};

const DRAWN: ClusterId = ClusterId::from_random(0xD);

/// Three nodes that have agreed on some commands, and were stopped.
async fn stopped() -> (Stage, ClusterId) {
    let stage = Stage::new(3);
    let nodes = stage.start_all().await;
    for number in 0..5 {
        nodes[0].0.propose(vec![number]).await.unwrap();
    }
    agree(&[&nodes[0].0, &nodes[1].0, &nodes[2].0]).await;
    let cluster = nodes[0].0.cluster_id().unwrap();
    for (node, _) in nodes {
        node.shutdown().await;
    }
    (stage, cluster)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_node_that_is_left_goes_on_and_the_others_join_it_with_empty_directories() {
    let (stage, lost) = stopped().await;
    let mut survivor = Survivor::open(&stage.directory(1)).unwrap();
    assert_eq!((survivor.from(), survivor.interrupted()), (lost, None));
    assert_eq!(survivor.members().voters().count(), 3);
    assert_eq!(survivor.begin(DRAWN, None), Ok(DRAWN));
    let recovered = survivor.finish().unwrap();
    assert_eq!((recovered.cluster, recovered.generation), (DRAWN, 1));

    let (first, result) = stage.start(1).await.unwrap();
    assert_eq!((result.mode, first.cluster_id()), (StartMode::Restart, Some(DRAWN)));
    let (_, place) = (first.propose(vec![9]).await.unwrap().index, first.view().await.unwrap().applied_index);
    assert!(place > 5, "what was agreed on is there");
    stage.wipe(0);
    stage.wipe(2);
    let (zero, two) = (stage.start(0).await.unwrap().0, stage.start(2).await.unwrap().0);
    until("three voters", || async { first.configuration().voters().count() == 3 }).await;
    agree(&[&zero, &first, &two]).await;
}

/// Each file is whole after a crash, but not both of them: the same command ends what was begun.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recovery_that_a_crash_cut_short_is_ended_by_the_next_one() {
    let (stage, lost) = stopped().await;
    let path = stage.directory(0);
    let mut survivor = Survivor::open(&path).unwrap();
    survivor.begin(DRAWN, Some("127.0.0.1:9".to_owned())).unwrap();
    let member = survivor.members().voters().find(|voter| voter.node == survivor.identity().node);
    let member = member.unwrap().clone();
    drop(survivor);
    let refused = stage.start(0).await.err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::Refused, "{refused}");
    assert!(refused.to_string().contains("run `bellwether recover` on it again"), "{refused}");

    // The log is written, and IDENTITY.json is not.
    let voters = vec![bellwether_cluster::Member { address: "127.0.0.1:9".to_owned(), ..member.clone() }];
    let (node, directory) = (member.node, path.clone());
    recover(&Recovery { directory, node, from: lost, to: DRAWN, voters, generation: 1 }).unwrap();
    assert!(stage.start(0).await.is_err());
    let survivor = Survivor::open(&path).unwrap();
    assert_eq!(survivor.interrupted(), Some(DRAWN));
    assert!(survivor.abandon().is_err(), "too late");

    let mut survivor = Survivor::open(&path).unwrap();
    assert_eq!(survivor.begin(ClusterId::from_random(0xE), None), Ok(DRAWN), "what was begun is ended");
    assert_eq!(survivor.finish().unwrap().generation, 1);
    let (node, result) = stage.start(0).await.unwrap();
    assert_eq!((result.mode, node.cluster_id()), (StartMode::Restart, Some(DRAWN)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recovery_that_is_abandoned_leaves_the_node_in_its_cluster() {
    let (stage, lost) = stopped().await;
    let mut survivor = Survivor::open(&stage.directory(0)).unwrap();
    survivor.begin(DRAWN, None).unwrap();
    assert!(Survivor::open(&stage.directory(0)).unwrap_err().to_string().contains("another process uses"));
    survivor.abandon().unwrap();
    let nodes = stage.start_all().await;
    assert_eq!(nodes[0].0.cluster_id(), Some(lost));
    let error = Survivor::open(&stage.directory(0)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "in use: {error}");
    let error = Survivor::open(&stage.directory(9)).unwrap_err();
    assert!(error.to_string().contains("has no IDENTITY.json"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_runs_is_not_given_up_and_one_that_all_stopped_is_replaced() {
    let (stage, lost) = stopped().await;
    let giving_up = |number| Config { force_new_cluster: Some(lost), ..stage.config(number) };
    let start = |number| bellwether_cluster::Cluster::start(giving_up(number), stage.parts());
    let (a, b) = tokio::join!(stage.start(0), stage.start(1));
    let ((a, _), (b, _)) = (a.unwrap(), b.unwrap());
    let identity = || std::fs::read(stage.directory(2).join("IDENTITY.json")).unwrap();
    let before = identity();
    let refused = start(2).await.err().expect("the others still run the cluster");
    assert_eq!(refused.kind(), ErrorKind::Refused, "{refused}");
    assert!(refused.to_string().contains("stop all its nodes"), "{refused}");
    assert!(identity() == before && !stage.directory(2).join("archive").exists(), "nothing was touched");
    // Nor does a node without any state begin another one beside it.
    std::fs::rename(stage.directory(2), stage.directory(3)).unwrap();
    assert_eq!(start(2).await.err().expect("the same").kind(), ErrorKind::Refused);
    stage.wipe(2);
    std::fs::rename(stage.directory(3), stage.directory(2)).unwrap();
    for node in [a, b] {
        node.shutdown().await;
    }
    let (a, b, c) = tokio::join!(start(0), start(1), start(2));
    let nodes = [a, b, c].map(|started| started.unwrap().0);
    let new = nodes[0].cluster_id().unwrap();
    assert_ne!(new, lost);
    assert!(nodes.iter().all(|node| node.cluster_id() == Some(new)));
    for node in nodes {
        node.shutdown().await;
    }
    // The flag stays, and the new cluster too.
    let (a, b, c) = tokio::join!(start(0), start(1), start(2));
    assert!([a, b, c].into_iter().all(|started| started.unwrap().0.cluster_id() == Some(new)));
}
