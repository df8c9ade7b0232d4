//! Every world that can be reached within a bound, breadth first: the first broken invariant comes with the shortest way to it.

use std::collections::HashSet;
use std::fmt;

use crate::invariants::Broken;
use crate::steps::{Play, Step};
use crate::world::World;

/// What an exploration found.
#[derive(Debug)]
pub(crate) struct Explored {
    pub(crate) states: usize,
    pub(crate) transitions: usize,
    pub(crate) depth: usize,
    /// Whether it ended because there was nothing left, and not at the limit.
    pub(crate) is_complete: bool,
    pub(crate) broken: Option<(Broken, Vec<Step>)>,
}

impl fmt::Display for Explored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = if self.is_complete { "complete" } else { "stopped at the limit" };
        write!(f, "{} states, {} transitions, depth {}: {how}", self.states, self.transitions, self.depth)
    }
}

/// How a state was reached: from which one, by which step.
type Way = (u32, Step);

/// Explores until nothing is left, something is broken, or there are `limit` states. Shows each world to `look`, once.
///
/// Worlds are told apart by 64 bits of a hash. Among a hundred million of them, two are taken for one with a chance of 1 in 3,700.
pub(crate) fn explore(play: &Play, limit: usize, look: impl FnMut(&World)) -> Explored {
    explore_from(play, World::new(&play.bounds), limit, look)
}

/// The same, from this world on.
pub(crate) fn explore_from(
    play: &Play,
    first: World,
    limit: usize,
    mut look: impl FnMut(&World),
) -> Explored {
    let mut seen = HashSet::from([first.fingerprint()]);
    // The first has no way to it; the step is never looked at.
    let mut ways: Vec<Way> = vec![(0, Step::Crash { node: 0 })];
    let mut level = vec![(0_u32, first)];
    let (mut transitions, mut depth) = (0, 0);
    let found = |ways: &Vec<Way>, transitions, depth, is_complete, broken| Explored {
        states: ways.len(),
        transitions,
        depth,
        is_complete,
        broken,
    };
    while !level.is_empty() {
        let mut next_level = Vec::new();
        for (index, world) in level {
            look(&world);
            for step in play.steps(&world) {
                transitions += 1;
                match play.after(&world, step) {
                    Err(broken) => {
                        let mut way = way_to(&ways, index);
                        way.push(step);
                        return found(&ways, transitions, depth + 1, false, Some((broken, way)));
                    }
                    Ok(next) => {
                        if seen.insert(next.fingerprint()) {
                            next_level.push((ways.len() as u32, next));
                            ways.push((index, step));
                        }
                    }
                }
            }
            if ways.len() >= limit {
                return found(&ways, transitions, depth + 1, false, None);
            }
        }
        depth += usize::from(!next_level.is_empty());
        level = next_level;
    }
    found(&ways, transitions, depth, true, None)
}

fn way_to(ways: &[Way], mut index: u32) -> Vec<Step> {
    let mut way = Vec::new();
    while index != 0 {
        let (from, step) = ways[index as usize];
        way.push(step);
        index = from;
    }
    way.reverse();
    way
}
