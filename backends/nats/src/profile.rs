//! Profiles: with whom an election is shared, and the timing that they use.

use std::time::Duration;

use bellwether_core::{Breaker, Options};

/// The shape of records and the names of keys, so that an election can be shared with what others run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Profile {
    /// One bucket for all elections, with records that have everything.
    #[default]
    Native,
    /// The user's own bucket, in which the key of an election has `{"id", "token", "priority", "meta"}` and is deleted on release.
    Leader,
    /// A bucket `cluster-<election>` for each, with the keys `lease` and `cooldown-<id>`, as go-cluster 0.1 has them.
    Cluster,
}

impl Profile {
    /// The defaults of those who use the profile.
    pub fn options(self) -> Options {
        match self {
            Profile::Native => Options::default(),
            Profile::Cluster => cluster(),
            Profile::Leader => leader(),
        }
    }
}

/// 10 s, renewed every 3 s. A candidate that steps down stays away for a whole lease, even if it restarts.
fn cluster() -> Options {
    let mut options = Options::default();
    options.timing.ttl = Duration::from_secs(10);
    options.timing.renew = Some(Duration::from_secs(3));
    options.cooldown = Some(options.timing.ttl);
    options
}

/// 10 s, renewed every second. Ten errors in a row make the pause 30 s.
///
/// A candidate that steps down stays away for 1.5 s. Other programs that use the bucket were seen to need up to 0.55 s to notice a
/// release, whatever the ttl: a candidate that competed sooner would always win.
fn leader() -> Options {
    let mut options = Options::default();
    options.timing.ttl = Duration::from_secs(10);
    options.timing.renew = Some(Duration::from_secs(1));
    options.breaker = Some(Breaker::default());
    options.stay_away_min = Duration::from_millis(1_500);
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use bellwether_core::Settings;

    #[test]
    fn the_timing_of_every_profile_is_accepted() {
        let second = Duration::from_secs;
        for (profile, ttl, renew) in
            [(Profile::Native, 15, 5), (Profile::Cluster, 10, 3), (Profile::Leader, 10, 1)]
        {
            let settings = Settings::new(profile.options()).unwrap();
            assert_eq!((settings.timing().ttl(), settings.timing().renew()), (second(ttl), second(renew)));
        }
    }

    #[test]
    fn the_cluster_profile_stays_away_for_a_lease_and_the_leader_profile_long_enough_for_others_to_notice() {
        assert_eq!(Profile::Cluster.options().cooldown, Some(Duration::from_secs(10)));
        let leader = Profile::Leader.options();
        assert_eq!((leader.cooldown, leader.stay_away_min), (None, Duration::from_millis(1_500)));
        assert_eq!(leader.breaker, Some(Breaker { failures: 10, open_for: Duration::from_secs(30) }));
    }
}
