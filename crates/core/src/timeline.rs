//! What the settings mean in seconds: the bounds that `explain` prints and the simulator checks.

use std::time::Duration;

use crate::Settings;

/// The instants of a lease, and the bounds on recovery from faults, for given settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timeline {
    /// The next renewal is sent, counted from the last confirmed one.
    pub renew: Duration,
    /// The work is told to stop, if no renewal was confirmed since.
    pub stop: Duration,
    /// The work is killed, where it is a process.
    pub kill: Duration,
    /// The leadership ends.
    pub deadline: Duration,
    /// The earliest takeover by a follower that saw the last renewal at once.
    pub takeover: Duration,
    /// From a release until the next leader, on a store that announces changes: the wait after lost races, and one claim.
    pub handover: Duration,
    /// From the leader's death until somebody leads, on a store that works and announces changes.
    pub failover: Duration,
    /// The same on a store that announces nothing, or if its notice is lost.
    pub unannounced: Duration,
    /// From the end of any combination of faults until somebody leads.
    pub recovery: Duration,
    /// By how much a follower's clock may run faster than the leader's.
    pub clock_rate: f64,
    /// How slow the store may become before the leader loses.
    pub latency: Duration,
}

impl Timeline {
    /// Computes the timeline of these settings.
    pub fn new(settings: &Settings) -> Timeline {
        let timing = settings.timing();
        let options = settings.options();
        let deadline = timing.belief(timing.ttl());
        let stop = deadline.saturating_sub(timing.stop_lead());
        let (call, stagger) = (timing.call_timeout(), timing.stagger_max());
        // A record may be seen as late as one call after it was written, and the claim that replaces it
        // takes another.
        let failover = timing.ttl() + stagger + call * 2 + options.settle;
        // A follower without notices looks when the record that it saw has expired. If the leader renewed just after that
        // observation and died, the follower finds a new sign of life, and waits once more.
        let unannounced = failover + timing.ttl() + stagger + call;
        // An attempt that was under way when the faults stopped runs into its time-out, and its observation
        // into another; then comes the longest pause after errors.
        let pause = options.strategy.longest().max(options.breaker.map_or(Duration::ZERO, |b| b.open_for));
        let away = pause.max(settings.longest_absence()).max(settings.withdrawal()).max(timing.retry());
        // Before all this, the work of a leadership that ends may take its time to stop, and nobody leads meanwhile.
        let ending = options.stop_timeout + options.reconnect_grace.unwrap_or_default();
        let recovery = ending + unannounced + call * 2 + away;
        Timeline {
            renew: timing.renew(),
            stop,
            kill: stop + timing.work_grace(),
            deadline,
            takeover: timing.ttl(),
            handover: stagger + call,
            failover,
            unannounced,
            recovery,
            clock_rate: timing.ttl().as_secs_f64() / deadline.as_secs_f64() - 1.0,
            latency: stop.saturating_sub(timing.renew()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;

    #[test]
    fn the_instants_of_a_lease_come_in_order() {
        let line = Timeline::new(&Settings::default());
        assert!(line.renew < line.stop && line.stop <= line.kill && line.kill <= line.deadline);
        assert!(
            line.deadline < line.takeover && line.takeover < line.failover && line.failover < line.recovery
        );
        assert_eq!(line.deadline, Duration::from_millis(13_500));
        assert!((0.11..0.12).contains(&line.clock_rate));
        assert_eq!(line.latency, Duration::from_millis(8_500));
    }

    #[test]
    fn every_bound_allows_for_the_wait_after_lost_races() {
        let line = Timeline::new(&Settings::default());
        let (ttl, call, stagger) =
            (Duration::from_secs(15), Duration::from_secs(3), Duration::from_millis(50));
        assert_eq!(line.handover, call + stagger);
        assert_eq!(line.failover, ttl + call * 2 + Settings::default().options().settle + stagger);
        assert_eq!(line.unannounced, line.failover + ttl + call + stagger);
    }

    #[test]
    fn recovery_allows_for_a_candidate_that_stays_out_and_for_work_that_takes_its_time_to_stop() {
        let recovery = |options: Options| Timeline::new(&Settings::new(options).unwrap()).recovery;
        let patient = Options { stop_timeout: Duration::from_secs(60), ..Options::default() };
        let plain = Timeline::new(&Settings::default());
        assert_eq!(recovery(patient), plain.recovery + Duration::from_secs(60));
        let (ttl, call) = (Duration::from_secs(15), Duration::from_secs(3));
        assert_eq!(plain.recovery, plain.unannounced + call * 2 + ttl * 3 / 2);
    }
}
