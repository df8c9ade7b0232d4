//! The cases. Each gets nodes that know nothing, or three voters with a leader.

use std::time::Duration;

use bellwether_cluster::{Member, NodeId, RaftFailure, Role};
use futures_util::future::join_all;
use tokio::time::timeout;

use crate::cluster::{Cluster, Engine};
use crate::network::Weather;

pub(crate) async fn a_cluster_begins_once_and_every_node_applies_what_is_proposed(engine: impl Engine) {
    let cluster = Cluster::of(engine, 3).await;
    let first = cluster.nodes[0].adapter();
    assert!(!first.has_existing_state().await.unwrap());
    first.bootstrap(cluster.members()).await.unwrap();
    first.bootstrap(cluster.members()).await.unwrap();
    let others = first.bootstrap(cluster.members()[..2].to_vec()).await;
    assert!(matches!(others, Err(RaftFailure::Refused(_))), "{others:?}");
    for number in 1..=50 {
        let applied = cluster.write(&format!("{number}")).await;
        assert_eq!(applied.answer, number.to_string().into_bytes());
    }
    cluster.agree(&[0, 1, 2]).await;
    assert_eq!(cluster.nodes[0].commands.all().len(), 50);
    let leader = cluster.leader().await;
    for node in &cluster.nodes {
        assert!(node.adapter().has_existing_state().await.unwrap());
    }
    let follower = (leader + 1) % 3;
    let asked = cluster.nodes[follower].adapter().propose(b"x".to_vec()).await;
    assert_eq!(asked, Err(RaftFailure::NotLeader(Some(cluster.nodes[leader].id()))));
    let too_long = cluster.nodes[leader].adapter().propose(vec![0; 2 << 20]).await;
    assert!(matches!(too_long, Err(RaftFailure::Refused(_))), "{too_long:?}");
}

pub(crate) async fn nodes_restart_one_after_the_other_and_all_at_once(engine: impl Engine) {
    let mut cluster = Cluster::begun(engine).await;
    cluster.write("before").await;
    for place in 0..3 {
        cluster.stop(place).await;
        cluster.write(&format!("without {place}")).await;
        cluster.start(place).await;
    }
    cluster.agree(&[0, 1, 2]).await;
    let before = cluster.nodes[0].commands.all();
    for place in 0..3 {
        cluster.kill(place);
    }
    for place in 0..3 {
        cluster.start(place).await;
    }
    cluster.leader().await;
    cluster.agree(&[0, 1, 2]).await;
    assert_eq!(cluster.nodes[0].commands.all(), before);
}

pub(crate) async fn a_killed_leader_is_replaced_and_nothing_acknowledged_is_lost(engine: impl Engine) {
    let mut cluster = Cluster::begun(engine).await;
    let mut acknowledged = Vec::new();
    for round in 0..3 {
        for number in 0..20 {
            let command = format!("{round}-{number}");
            cluster.write(&command).await;
            acknowledged.push(command);
        }
        let leader = cluster.leader().await;
        cluster.kill(leader);
        let command = format!("{round} without its leader");
        cluster.write(&command).await;
        acknowledged.push(command);
        cluster.start(leader).await;
    }
    cluster.agree(&[0, 1, 2]).await;
    let applied = cluster.nodes[0].commands.all();
    for command in acknowledged {
        assert!(applied.contains(&command), "{command} is lost");
    }
}

pub(crate) async fn a_leader_that_is_cut_off_confirms_nothing(engine: impl Engine) {
    let cluster = Cluster::begun(engine).await;
    cluster.write("before").await;
    let old = cluster.leader().await;
    let rest: Vec<usize> = (0..3).filter(|place| *place != old).collect();
    cluster.network.cut(cluster.nodes[old].id());
    let cut_off = cluster.nodes[old].adapter();
    let proposing = timeout(Duration::from_secs(2), cut_off.propose(b"cut off".to_vec()));
    let (proposed, confirmed) = tokio::join!(proposing, cut_off.confirm_leadership());
    assert!(!matches!(proposed, Ok(Ok(_))), "a leader without a majority acknowledged: {proposed:?}");
    assert!(confirmed.is_err(), "a leader without a majority confirmed that it leads");
    let new = cluster.leader_among(&rest).await;
    assert_ne!(cluster.confirmed(&rest).await.0, old);
    cluster.nodes[new].adapter().propose(b"after".to_vec()).await.unwrap();
    assert!(cut_off.confirm_leadership().await.is_err());
    cluster.network.heal();
    cluster.leader().await;
    cluster.agree(&[0, 1, 2]).await;
    let applied = cluster.nodes[old].commands.all();
    assert!(applied.contains(&"after".to_owned()) && !applied.contains(&"cut off".to_owned()), "{applied:?}");
}

pub(crate) async fn confirmed_leadership_includes_what_was_acknowledged(engine: impl Engine) {
    let cluster = Cluster::begun(engine).await;
    for number in 0..20 {
        let command = format!("{number}");
        let applied = cluster.write(&command).await;
        let (leader, index) = cluster.confirmed(&[0, 1, 2]).await;
        assert!(index >= applied.index);
        assert!(cluster.nodes[leader].commands.all().contains(&command), "{command} was not applied yet");
    }
    let (leader, _) = cluster.confirmed(&[0, 1, 2]).await;
    let follower = cluster.nodes[(leader + 1) % 3].adapter().confirm_leadership().await;
    assert!(matches!(follower, Err(RaftFailure::NotLeader(_))), "{follower:?}");
}

pub(crate) async fn a_learner_catches_up_and_takes_the_place_of_a_voter(engine: impl Engine) {
    let mut cluster = Cluster::begun(engine).await;
    cluster.write("before").await;
    let new = cluster.add().await;
    let leader = cluster.leader_among(&[0, 1, 2]).await;
    let replaced = (leader + 1) % 3;
    let (new_id, replaced_id) = (cluster.nodes[new].id(), cluster.nodes[replaced].id());
    let lead = cluster.nodes[leader].adapter();
    let decided_before = cluster.decided_on(leader);
    lead.add_learner(cluster.nodes[new].member.clone()).await.unwrap();
    caught_up(&cluster, leader, new_id).await;
    assert_eq!(cluster.with_role(leader, Role::Learner), [new_id]);

    let outdated = lead.promote(new_id, Some(replaced_id), decided_before).await;
    assert!(matches!(outdated, Err(RaftFailure::Refused(_))), "{outdated:?}");
    assert_eq!(cluster.with_role(leader, Role::Learner), [new_id]);

    lead.promote(new_id, Some(replaced_id), cluster.decided_on(leader)).await.unwrap();
    let remaining: Vec<usize> = (0..4).filter(|place| *place != replaced).collect();
    let mut voters: Vec<NodeId> = remaining.iter().map(|place| cluster.nodes[*place].id()).collect();
    voters.sort();
    cluster
        .until("the new voters everywhere", |cluster| {
            remaining.iter().all(|place| cluster.with_role(*place, Role::Voter) == voters).then_some(())
        })
        .await;
    assert!(cluster.nodes[leader].status().configuration.member(replaced_id).is_none());
    cluster.kill(replaced);
    cluster.write("after").await;
    cluster.agree(&remaining).await;
}

pub(crate) async fn members_are_removed_and_strangers_are_not_promoted(engine: impl Engine) {
    let mut cluster = Cluster::begun(engine).await;
    let new = cluster.add().await;
    let leader = cluster.leader_among(&[0, 1, 2]).await;
    let lead = cluster.nodes[leader].adapter();
    let new_id = cluster.nodes[new].id();
    let stranger = lead.promote(new_id, None, cluster.decided_on(leader)).await;
    assert!(matches!(stranger, Err(RaftFailure::Refused(_))), "{stranger:?}");
    let follower = (leader + 1) % 3;
    let elsewhere = cluster.nodes[follower].adapter().remove(new_id, cluster.decided_on(follower)).await;
    assert_eq!(elsewhere, Err(RaftFailure::NotLeader(Some(cluster.nodes[leader].id()))));

    lead.add_learner(cluster.nodes[new].member.clone()).await.unwrap();
    when(&cluster, leader, Role::Learner, new_id, true).await;
    lead.remove(new_id, cluster.decided_on(leader)).await.unwrap();
    when(&cluster, leader, Role::Learner, new_id, false).await;

    let gone = cluster.nodes[follower].id();
    let outdated = lead.remove(gone, cluster.decided_on(leader) - 1).await;
    assert!(matches!(outdated, Err(RaftFailure::Refused(_))), "{outdated:?}");
    lead.remove(gone, cluster.decided_on(leader)).await.unwrap();
    when(&cluster, leader, Role::Voter, gone, false).await;
    assert_eq!(cluster.with_role(leader, Role::Voter).len(), 2);
    cluster.write("two are left").await;
}

pub(crate) async fn a_member_that_moved_is_reached_at_its_new_address(engine: impl Engine) {
    let cluster = Cluster::begun(engine).await;
    let leader = cluster.leader().await;
    let moved = (leader + 1) % 3;
    let member = Member { address: "moved:2".to_owned(), ..cluster.nodes[moved].member.clone() };
    cluster.nodes[leader].adapter().add_learner(member.clone()).await.unwrap();
    cluster
        .until("the new address everywhere", |cluster| {
            let configuration = cluster.nodes[moved].status().configuration;
            configuration.member(member.node).is_some_and(|(known, _)| *known == member).then_some(())
        })
        .await;
    assert_eq!(cluster.with_role(leader, Role::Voter).len(), 3);
    cluster.write("after the move").await;
    cluster.agree(&[0, 1, 2]).await;
    assert!(cluster.network.was_dialled("moved:2"));
}

pub(crate) async fn a_change_that_nobody_waits_for_is_finished(engine: impl Engine) {
    let mut cluster = Cluster::begun(engine).await;
    let new = cluster.add().await;
    let leader = cluster.leader_among(&[0, 1, 2]).await;
    let replaced = (leader + 1) % 3;
    let (new_id, replaced_id) = (cluster.nodes[new].id(), cluster.nodes[replaced].id());
    let lead = cluster.nodes[leader].adapter();
    lead.add_learner(cluster.nodes[new].member.clone()).await.unwrap();
    caught_up(&cluster, leader, new_id).await;
    let last = cluster.nodes[leader].status().last_index;
    let promoting = lead.promote(new_id, Some(replaced_id), cluster.decided_on(leader));
    // Dropped as soon as the first of the two entries is written.
    tokio::select! {
        biased;
        () = cluster.until("the first entry", |cluster| {
            (cluster.nodes[leader].status().last_index > last).then_some(())
        }) => {}
        done = promoting => done.unwrap(),
    }
    cluster
        .until("the change is done", |cluster| {
            let is_done = |place: &usize| {
                let voters = cluster.with_role(*place, Role::Voter);
                voters.len() == 3 && voters.contains(&new_id) && !voters.contains(&replaced_id)
            };
            [leader, new].iter().all(is_done).then_some(())
        })
        .await;
}

pub(crate) async fn leadership_is_transferred_to_a_voter(engine: impl Engine) {
    let cluster = Cluster::begun(engine).await;
    cluster.write("before").await;
    let old = cluster.leader().await;
    let new = (old + 1) % 3;
    let stranger = cluster.nodes[old].adapter().transfer(NodeId::from_random(99)).await;
    assert!(matches!(stranger, Err(RaftFailure::Refused(_))), "{stranger:?}");
    cluster.nodes[old].adapter().transfer(cluster.nodes[new].id()).await.unwrap();
    assert_eq!(cluster.nodes[old].status().leader, Some(cluster.nodes[new].id()));
    let again = cluster.nodes[old].adapter().transfer(cluster.nodes[new].id()).await;
    assert_eq!(again, Err(RaftFailure::NotLeader(Some(cluster.nodes[new].id()))));
    cluster.write("after").await;
    cluster.agree(&[0, 1, 2]).await;
}

pub(crate) async fn a_node_that_was_away_for_long_gets_a_snapshot(engine: impl Engine) {
    let mut cluster = Cluster::begun(engine).await;
    let leader = cluster.leader().await;
    let away = (leader + 1) % 3;
    cluster.network.cut(cluster.nodes[away].id());
    for number in 0..450 {
        cluster.write(&format!("{number}")).await;
    }
    cluster.network.heal();
    cluster.agree(&[0, 1, 2]).await;
    let before = cluster.nodes[away].commands.all();
    // Its own storage has the snapshot now.
    cluster.kill(away);
    cluster.start(away).await;
    cluster.agree(&[0, 1, 2]).await;
    assert_eq!(cluster.nodes[away].commands.all(), before);
    // So does that of a node that starts with nothing.
    let new = cluster.add().await;
    let leader = cluster.leader_among(&[0, 1, 2]).await;
    cluster.nodes[leader].adapter().add_learner(cluster.nodes[new].member.clone()).await.unwrap();
    caught_up(&cluster, leader, cluster.nodes[new].id()).await;
    cluster.agree(&[0, 1, 2, new]).await;
}

pub(crate) async fn in_bad_weather_nodes_still_agree(engine: impl Engine) {
    let cluster = Cluster::begun(engine).await;
    cluster.network.set_weather(Weather { longest_delay_ms: 3, lost_percent: 2 });
    let clients = (0..16).map(|client| {
        let cluster = &cluster;
        async move {
            for number in 0..25 {
                cluster.write(&format!("{client}-{number}")).await;
            }
        }
    });
    join_all(clients).await;
    cluster.network.set_weather(Weather::default());
    cluster.agree(&[0, 1, 2]).await;
    let applied = cluster.nodes[0].commands.all();
    for client in 0..16 {
        for number in 0..25 {
            assert!(applied.contains(&format!("{client}-{number}")), "{client}-{number} is lost");
        }
    }
}

pub(crate) async fn messages_that_overtake_each_other_stop_nobody(engine: impl Engine) {
    let cluster = Cluster::begun(engine).await;
    // Longer than a follower waits for what was sent before.
    cluster.network.set_weather(Weather { longest_delay_ms: 100, lost_percent: 0 });
    let clients = (0..8).map(|client| {
        let cluster = &cluster;
        async move {
            for number in 0..8 {
                cluster.write(&format!("{client}-{number}")).await;
            }
        }
    });
    join_all(clients).await;
    cluster.network.set_weather(Weather::default());
    cluster.agree(&[0, 1, 2]).await;
    for node in &cluster.nodes {
        assert_eq!(node.status().stopped, None);
    }
}

async fn caught_up(cluster: &Cluster, leader: usize, node: NodeId) {
    cluster
        .until("the learner catches up", |cluster| {
            let status = cluster.nodes[leader].status();
            let is_member = status.configuration.member(node).is_some();
            let matched = status.matched.iter().find(|(other, _)| *other == node)?.1;
            (is_member && matched >= status.committed_index).then_some(())
        })
        .await;
}

async fn when(cluster: &Cluster, place: usize, role: Role, node: NodeId, is_wanted: bool) {
    cluster
        .until("the members as wanted", |cluster| {
            (cluster.with_role(place, role).contains(&node) == is_wanted).then_some(())
        })
        .await;
}
