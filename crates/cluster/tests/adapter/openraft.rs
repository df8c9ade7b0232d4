//! The suite on openraft.

use std::path::Path;
use std::sync::Arc;

use bellwether_cluster::{
    ClusterError, ClusterId, EngineOptions, NodeId, OpenraftEngine, PeerLink, Profile, RaftAdapter,
    StateMachine,
};
use futures_util::future::BoxFuture;

use crate::cluster::{CLUSTER, Engine};
use crate::suite;

pub(crate) struct Openraft {
    pub(crate) profile: Profile,
    pub(crate) cluster: ClusterId,
}

impl Engine for Openraft {
    fn open(
        &self,
        directory: &Path,
        node: NodeId,
        machine: Box<dyn StateMachine>,
        link: Arc<dyn PeerLink>,
    ) -> BoxFuture<'static, Result<Arc<dyn RaftAdapter>, ClusterError>> {
        let options = EngineOptions {
            profile: self.profile,
            snapshot_every: 100,
            keep: 20,
            ..EngineOptions::new(directory, node, self.cluster)
        };
        Box::pin(async move {
            let engine = OpenraftEngine::open(options, machine, link).await?;
            Ok(Arc::new(engine) as Arc<dyn RaftAdapter>)
        })
    }
}

macro_rules! cases {
    ($($case:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                suite::$case(Openraft { profile: Profile::Default, cluster: CLUSTER }).await;
            }
        )*
    };
}

cases! {
    a_cluster_begins_once_and_every_node_applies_what_is_proposed
    nodes_restart_one_after_the_other_and_all_at_once
    a_killed_leader_is_replaced_and_nothing_acknowledged_is_lost
    a_leader_that_is_cut_off_confirms_nothing
    confirmed_leadership_includes_what_was_acknowledged
    a_learner_catches_up_and_takes_the_place_of_a_voter
    members_are_removed_and_strangers_are_not_promoted
    a_member_that_moved_is_reached_at_its_new_address
    a_change_that_nobody_waits_for_is_finished
    leadership_is_transferred_to_a_voter
    a_node_that_was_away_for_long_gets_a_snapshot
    in_bad_weather_nodes_still_agree
    messages_that_overtake_each_other_stop_nobody
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_leader_is_replaced_soon_where_the_profile_is_fast() {
    suite::a_killed_leader_is_replaced_and_nothing_acknowledged_is_lost(Openraft {
        profile: Profile::Fast,
        cluster: CLUSTER,
    })
    .await;
}
