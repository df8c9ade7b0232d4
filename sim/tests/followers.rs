//! One leader with many followers on a register, and nothing that goes wrong: what a handover costs.

use bellwether_core::Settings;
use bellwether_sim::faults::WorldFault;
use bellwether_sim::options::{Net, Plan, Watch};
use bellwether_sim::time::{MILLI, SECOND};
use bellwether_sim::{WorldOptions, run_world};

/// What handovers to whoever comes first cost on average.
#[derive(Debug, PartialEq)]
struct Handover {
    claims_lost: f64,
    took_ms: f64,
    longest_ms: f64,
}

/// Some two hundred handovers, over a network on which messages take 1 to 3 ms each way.
fn handovers(followers: usize, staggered: bool) -> Handover {
    let options = WorldOptions {
        elections: 1,
        plans: (0..=followers).map(|process| Plan::of_one(process, Settings::default())).collect(),
        ppm: (999_900, 1_000_100),
        latency: (MILLI, 3 * MILLI),
        net: Net::default(),
        watch: Watch::Record,
        crash_proof: false,
        staggered,
        faults: Vec::new(),
        whims: vec![(WorldFault::StepDown, 1)],
        whim_every: 3 * SECOND,
        ends_with_death: false,
        span: 1_200 * SECOND,
        // This seed's store is a register.
        ..WorldOptions::of(1)
    };
    let outcome = run_world(options, false);
    assert!(outcome.violation.is_none(), "{:?}", outcome.violation);
    let tally = outcome.tally;
    assert!(tally.races > 80, "{tally:?}");
    let each = |sum: f64| sum / tally.races as f64;
    let ms = |nanos: f64| nanos / MILLI as f64;
    Handover {
        claims_lost: each(tally.claims_lost as f64),
        took_ms: ms(each(tally.race_time as f64)),
        longest_ms: ms(tally.race_max as f64),
    }
}

#[test]
fn fifty_followers_lose_few_claims_and_little_time() {
    let (all_at_once, staggered) = (handovers(50, false), handovers(50, true));
    // All but one lose. Releases that were reserved for a successor which never came add a few.
    assert!(all_at_once.claims_lost > 48.0, "{all_at_once:?}");
    // The first six races included, in which the windows grow.
    assert!(staggered.claims_lost < 10.0, "{staggered:?}");
    assert!(staggered.took_ms < all_at_once.took_ms + 4.0 && staggered.longest_ms < 20.0, "{staggered:?}");
}

#[test]
fn one_follower_waits_for_nobody() {
    assert_eq!(handovers(1, true), handovers(1, false));
}

#[test]
fn a_few_followers_lose_fewer_claims_too() {
    for followers in [2, 3, 10] {
        let (all_at_once, staggered) = (handovers(followers, false), handovers(followers, true));
        assert!(staggered.claims_lost < all_at_once.claims_lost / 2.0, "{all_at_once:?} {staggered:?}");
        assert!(staggered.longest_ms < 30.0, "{staggered:?}");
    }
}
