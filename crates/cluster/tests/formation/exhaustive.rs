//! Every world of three nodes, within each of these bounds.

use std::time::Duration;

use bellwether_deadman::boot_now;

use crate::explore::explore;
use crate::is_long;
use crate::rules::Rules;
use crate::steps::Play;
use crate::world::Bounds;

/// Three nodes with one seed, and one proposal at which nothing goes wrong but crashes and messages.
pub(crate) const CALM: Bounds = Bounds {
    nodes: 3,
    seeds: 1,
    has_ledger: false,
    proposals: 1,
    wipes: 0,
    replacements: 0,
    removals: 0,
    returns: 0,
};

/// Small enough for every run of the tests.
const SHORT: &[Bounds] = &[
    Bounds { proposals: 3, wipes: 3, ..CALM },
    Bounds { proposals: 2, wipes: 2, removals: 1, returns: 1, ..CALM },
    Bounds { proposals: 2, wipes: 1, replacements: 1, removals: 1, returns: 1, ..CALM },
    Bounds { seeds: 2, proposals: 2, wipes: 1, removals: 1, returns: 1, ..CALM },
    Bounds { seeds: 2, proposals: 2, wipes: 2, removals: 1, returns: 1, has_ledger: true, ..CALM },
];

/// Each contains one of the short ones.
const LONG: &[Bounds] = &[
    Bounds { proposals: 4, wipes: 3, ..CALM },
    Bounds { proposals: 2, wipes: 3, removals: 2, returns: 2, ..CALM },
    Bounds { proposals: 2, wipes: 2, replacements: 1, removals: 1, returns: 1, ..CALM },
    Bounds { seeds: 2, proposals: 3, wipes: 1, removals: 1, returns: 1, ..CALM },
    Bounds { seeds: 2, proposals: 2, wipes: 1, replacements: 1, ..CALM },
    Bounds { seeds: 2, proposals: 3, wipes: 3, removals: 1, returns: 1, has_ledger: true, ..CALM },
];

/// Far above what any of them has: a run that gets here would take all memory.
const MOST_STATES: usize = 60_000_000;
/// How often a long run says how far it is.
const PROGRESS_STATES: usize = 2_000_000;

#[test]
fn no_world_of_three_nodes_has_two_clusters() {
    let begun_at = boot_now();
    let (mut states, mut transitions) = (0, 0);
    for bounds in if is_long() { LONG } else { SHORT } {
        let play = Play { bounds: *bounds, rules: Rules { bug: None } };
        let (mut seen, start) = (0, boot_now());
        let found = explore(&play, MOST_STATES, |_| {
            seen += 1;
            if seen % PROGRESS_STATES == 0 {
                println!("  {seen} states so far, {}", seconds(boot_now().since(start)));
            }
        });
        println!("{bounds}\n  {found}, {}", seconds(boot_now().since(start)));
        if let Some((broken, way)) = &found.broken {
            panic!("{broken} after {way:#?}");
        }
        assert!(found.is_complete, "{bounds}: {found}");
        states += found.states;
        transitions += found.transitions;
    }
    println!("all: {states} states, {transitions} transitions, {}", seconds(boot_now().since(begun_at)));
}

pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
