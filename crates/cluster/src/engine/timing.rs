//! How fast the engine notices that a leader is gone, and how much of the log it keeps.

use std::sync::Arc;
use std::time::Duration;

use openraft::{Config, SnapshotPolicy};

use super::EngineOptions;
use crate::config::Profile;
use crate::error::ClusterError;

impl Profile {
    const fn heartbeat_ms(self) -> u64 {
        match self {
            Profile::Default => 100,
            Profile::Fast => 20,
        }
    }

    const fn election_min_ms(self) -> u64 {
        self.heartbeat_ms() * 3
    }

    /// A node that has heard a leader waits for this long before it believes that the leader is gone, and then for a time between the two
    /// before it stands. So this counts twice. The distance between the two keeps nodes from standing at once.
    const fn election_max_ms(self) -> u64 {
        self.heartbeat_ms() * 9 / 2
    }

    /// The longest time without a heartbeat after which a node stands, and the time for which a leader may rely on an answer.
    pub(super) const fn election_max(self) -> Duration {
        Duration::from_millis(self.election_max_ms())
    }
}

pub(super) fn config(options: &EngineOptions) -> Result<Arc<Config>, ClusterError> {
    let profile = options.profile;
    let config = Config {
        cluster_name: options.cluster.to_string(),
        heartbeat_interval: profile.heartbeat_ms(),
        election_timeout_min: profile.election_min_ms(),
        election_timeout_max: profile.election_max_ms(),
        snapshot_policy: SnapshotPolicy::LogsSinceLast(options.snapshot_every),
        max_in_snapshot_log_to_keep: options.keep,
        // A follower that is behind by more gets a snapshot, if there is one that helps: never before the next snapshot is due.
        replication_lag_threshold: options.snapshot_every.saturating_add(options.keep),
        // One fsync of a purge for many entries, and not for each.
        purge_batch_size: (options.snapshot_every / 10).max(1),
        // A node that cannot win an election does not disturb those who have a leader.
        enable_pre_vote: Some(true),
        // A leader that lost its majority falls silent for this long, so that those who still hear it can elect another. The least that
        // openraft takes: its lease and an election.
        quorum_loss_probe_interval: Some(2 * profile.election_max_ms()),
        // A restarted leader stands for election as everybody does.
        enable_leader_restore: Some(false),
        // A follower that lost what it had acknowledged must not be helped up: it may have voted, too.
        allow_log_reversion: Some(false),
        // After a cut, replication begins again soon, and nobody is flooded before that.
        backoff: "20ms 40ms ...500ms".to_owned(),
        ..Config::default()
    };
    config.validate().map(Arc::new).map_err(|error| ClusterError::invalid(error.to_string()))
}
