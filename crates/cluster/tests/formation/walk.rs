//! Random walks, for worlds that are too many to see all of.

use std::collections::BTreeMap;

use crate::invariants::Broken;
use crate::liveness::{End, end_of};
use crate::steps::{Play, Step};
use crate::world::World;

/// What walks found.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    pub(crate) walks: u64,
    pub(crate) steps: u64,
    /// What the worlds at the ends of walks lead to, when nothing goes wrong any more.
    pub(crate) ends: BTreeMap<End, u64>,
    /// What is broken, by which walk, and on which way.
    pub(crate) broken: Option<(Broken, u64, Vec<Step>)>,
}

/// A walk is long enough for several clusters to form, and short enough to begin anew often.
const STEPS_OF_A_WALK: usize = 150;

/// Walks until there are so many steps, or something is broken. The walk of a number is always the same.
pub(crate) fn walk(play: &Play, first: u64, steps: u64) -> Walked {
    let mut walked = Walked::default();
    while walked.steps < steps {
        let number = first.wrapping_add(walked.walks);
        walked.walks += 1;
        match walk_once(play, number, &mut walked.steps) {
            Err((broken, way)) => {
                walked.broken = Some((broken, number, way));
                return walked;
            }
            Ok(world) => *walked.ends.entry(end_of(play, &world)).or_default() += 1,
        }
    }
    walked
}

fn walk_once(play: &Play, number: u64, steps: &mut u64) -> Result<World, (Broken, Vec<Step>)> {
    let mut dice = Dice(number);
    // Some walks have hardly a fault, some have little else.
    let one_fault_in = [4, 12, 40][dice.below(3)];
    let (mut world, mut way) = (World::new(&play.bounds), Vec::new());
    for _ in 0..STEPS_OF_A_WALK {
        let (faults, other): (Vec<Step>, Vec<Step>) =
            play.steps(&world).into_iter().partition(|step| step.is_fault());
        let is_fault = other.is_empty() || (!faults.is_empty() && dice.below(one_fault_in) == 0);
        let among = if is_fault { faults } else { other };
        if among.is_empty() {
            break;
        }
        let step = among[dice.below(among.len())];
        way.push(step);
        *steps += 1;
        match play.after(&world, step) {
            Ok(next) => world = next,
            Err(broken) => return Err((broken, way)),
        }
    }
    Ok(world)
}

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }
}
