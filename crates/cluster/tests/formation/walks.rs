//! Random walks of five nodes.

use bellwether_deadman::{boot_now, random_bits};

use crate::exhaustive::{CALM, seconds};
use crate::liveness::End;
use crate::rules::Rules;
use crate::steps::Play;
use crate::walk::walk;
use crate::world::Bounds;
use crate::{is_long, setting};

const FIVE: Bounds =
    Bounds { nodes: 5, proposals: 8, wipes: 7, replacements: 3, removals: 4, returns: 4, ..CALM };

const KINDS: &[Bounds] = &[
    FIVE,
    Bounds { seeds: 2, ..FIVE },
    Bounds { seeds: 5, ..FIVE },
    Bounds { seeds: 2, has_ledger: true, ..FIVE },
];

const SHORT_STEPS: u64 = 600_000;
const LONG_STEPS: u64 = 10_000_000;

#[test]
fn no_random_walk_of_five_nodes_has_two_clusters() {
    let steps = setting("STEPS").unwrap_or(if is_long() { LONG_STEPS } else { SHORT_STEPS });
    let seed = setting("SEED").unwrap_or_else(|| if is_long() { random_bits() as u64 } else { 1 });
    println!("random walks with seed {seed}; the same again: cargo xtask formation --seed {seed}");
    for bounds in KINDS {
        let start = boot_now();
        let play = Play { bounds: *bounds, rules: Rules { bug: None } };
        let found = walk(&play, seed, steps / KINDS.len() as u64);
        println!(
            "{bounds}\n  {} steps in {} walks, {}",
            found.steps,
            found.walks,
            seconds(boot_now().since(start))
        );
        println!("  without faults from there on: {:?}", found.ends);
        if let Some((broken, number, way)) = found.broken {
            panic!("{broken} in walk {number}: {way:#?}");
        }
        assert!(!found.ends.contains_key(&End::Unexplained), "{:?}", found.ends);
        assert!(found.ends.contains_key(&End::Formed), "{:?}", found.ends);
    }
}
