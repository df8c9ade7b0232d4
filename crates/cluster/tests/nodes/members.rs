use std::sync::Arc;

use bellwether_cluster::{Cluster, ErrorKind, Named, StartMode, StaticResolver};

use crate::stage::{Stage, agree, name, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_removed_while_down_returns_under_another_id() {
    let stage = Stage::new(3);
    let mut nodes = stage.start_all().await;
    let (gone, _) = nodes.pop().unwrap();
    let (old, cluster) = (gone.node_id(), gone.cluster_id());
    gone.shutdown().await;
    let voters = || nodes[0].0.configuration().voters().count();
    assert_eq!(voters(), 3, "a shutdown changes no membership");
    nodes[0].0.remove_server(Named::Name(name(2))).await.unwrap();
    until("two voters", || async { voters() == 2 }).await;
    let (back, result) = stage.start(2).await.unwrap();
    assert_eq!((result.mode, back.cluster_id()), (StartMode::Join, cluster));
    assert_ne!(back.node_id(), old);
    assert!(
        stage.directory(2).join("archive").join(old.to_string()).join("raft.redb").exists(),
        "nothing is deleted"
    );
    until("three voters", || async { voters() == 3 }).await;
    agree(&[&nodes[0].0, &nodes[1].0, &back]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_removed_while_up_hears_of_it() {
    let stage = Stage::new(3);
    let nodes = stage.start_all().await;
    let removed = nodes.iter().position(|(node, _)| !node.is_leader()).unwrap();
    let other = &nodes[(removed + 1) % 3].0;
    other.remove_server(Named::Name(name(removed))).await.unwrap();
    let error = nodes[removed].0.stopped().await;
    assert_eq!(error.kind(), ErrorKind::Removed, "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_removed_hands_over_first() {
    let stage = Stage::new(3);
    let nodes = stage.start_all().await;
    let leader = nodes.iter().position(|(node, _)| node.is_leader()).unwrap();
    nodes[leader].0.remove_server(Named::Name(name(leader))).await.unwrap();
    let other = &nodes[(leader + 1) % 3].0;
    assert_eq!(other.members().await.unwrap().members.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removal_that_would_stop_the_cluster_is_refused() {
    let stage = Stage::new(3);
    let mut nodes = stage.start_all().await;
    let down = nodes.iter().position(|(node, _)| !node.is_leader()).unwrap();
    nodes.remove(down).0.shutdown().await;
    let up = nodes.iter().find(|(node, _)| !node.is_leader()).unwrap();
    until("the leader misses the node that is down", || async {
        let view = nodes[0].0.members().await.unwrap();
        let of_down = view.members.iter().find(|member| member.member.name == name(down)).unwrap();
        of_down.heard_ms_ago.is_none_or(|ago| ago > 5_000)
    })
    .await;
    let refused = nodes[0].0.remove_server(Named::Id(up.0.node_id())).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused);
    assert!(refused.to_string().contains("no majority"), "{refused}");
    nodes[0].0.remove_server(Named::Name(name(down))).await.unwrap();
}

/// Right after a voter went down, others still take it for alive where nothing hangs on it. Here the cluster does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_voter_that_went_down_a_moment_ago_is_not_counted_on_when_another_is_removed() {
    let stage = Stage::new(3);
    let mut nodes = stage.start_all().await;
    let down = nodes.iter().position(|(node, _)| !node.is_leader()).unwrap();
    nodes.remove(down).0.halt().await;
    let leader = &nodes.iter().find(|(node, _)| node.is_leader()).unwrap().0;
    let other = nodes.iter().find(|(node, _)| !node.is_leader()).unwrap().0.node_id();
    let silent = async || {
        let view = leader.members().await.unwrap();
        view.members.iter().find(|member| member.member.name == name(down)).unwrap().heard_ms_ago.unwrap()
    };
    until("the leader has not heard it for a second", || async { silent().await > 1_000 }).await;
    let refused = leader.remove_server(Named::Id(other)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused);
    assert!(refused.to_string().contains("no majority"), "{refused}");
    assert!(silent().await < 5_000, "too late to show anything");
    leader.propose(b"x".to_vec()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leadership_of_the_cluster_goes_where_it_is_sent() {
    let stage = Stage::new(3);
    let nodes = stage.start_all().await;
    for to in [1, 2, 0, 2] {
        if nodes[to].0.is_leader() {
            continue;
        }
        nodes[0].0.transfer(Some(Named::Name(name(to)))).await.unwrap();
        until("it leads", || async { nodes[to].0.is_leader() }).await;
    }
    let unknown = nodes[0].0.transfer(Some(Named::Name(name(7)))).await.unwrap_err();
    assert!(
        unknown.to_string().contains("the members are n-0, n-1, n-2")
            || unknown.to_string().contains("is not a member"),
        "{unknown}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_nobody_configured_is_asked_to_join() {
    let (stage, other) = (Stage::new(1), Stage::new(4));
    let (first, _) = stage.start(0).await.unwrap();
    // It knows nobody, and expects more than itself: it forms nothing.
    let mut parts = other.parts();
    parts.resolver = Arc::new(StaticResolver::new([]));
    let address = other.config(3).bind.clone();
    let joining = tokio::spawn(Cluster::start(other.config(3), parts));
    until("the node is asked", || async { first.add_voter(address.clone()).await.is_ok() }).await;
    let (joined, result) = joining.await.unwrap().unwrap();
    assert_eq!((result.mode, joined.cluster_id()), (StartMode::Join, first.cluster_id()));
    until("it votes", || async { first.configuration().voters().count() == 2 }).await;
    let again = first.add_voter(address).await.unwrap_err();
    assert!(again.to_string().contains("member already"), "{again}");
}
