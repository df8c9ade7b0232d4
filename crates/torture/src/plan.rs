//! The schedule of faults: a pure function of the seed and the options.
//!
//! It knows no process and no clock. Whoever carries it out decides who leads at the time of a step.
//!
//! - Every kind comes once before any comes again, in an order that the seed decides, so that a short run has them all.
//! - Four of five faults are aimed at whoever leads.
//! - At any time at least one candidate is untroubled and able to lead, as far as the servers let it.
//! - Steps are some two ttls apart: as long as it takes until a silent leader has been replaced, and no longer, so that ten minutes at a
//!   ttl of a second see more than a hundred changes.

use std::collections::BTreeSet;
use std::time::Duration;

use bellwether_core::Rng;

use crate::{Fault, Kind};

/// The most steps of a plan: a day of them at the shortest ttl.
const STEPS_MAX: usize = 1 << 20;
/// One fault of so many is aimed at a follower.
const FOLLOWERS_SHARE: u64 = 5;
/// The furthest that a wall clock is set, in seconds: far beyond every ttl. Much further, certificates would not be valid.
const CLOCK_MAX: u64 = 24 * 60 * 60;

/// What a plan is made from.
#[derive(Clone, Debug)]
pub struct PlanOptions {
    /// The same seed makes the same plan.
    pub seed: u64,
    /// How long faults are to happen.
    pub length: Duration,
    /// That of the candidates.
    pub ttl: Duration,
    /// How many candidates there are.
    pub candidates: usize,
    /// The kinds that may happen.
    pub kinds: BTreeSet<Kind>,
}

/// A fault, and when it happens to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Since the first leadership began.
    pub at: Duration,
    /// To whom.
    pub aim: Aim,
    /// What.
    pub fault: Fault,
}

/// To whom a fault happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// Whoever leads.
    Leader,
    /// Somebody else: of those that follow, in their order, the one with this number, counted round.
    Follower(u8),
}

/// The schedule.
pub fn plan(options: &PlanOptions) -> Vec<Step> {
    let PlanOptions { length, ttl, candidates, .. } = *options;
    let (mut rng, mut steps) = (Rng::new(options.seed), Vec::new());
    let (mut deck, mut troubled): (Vec<Kind>, Vec<Duration>) = (Vec::new(), Vec::new());
    let mut at = ttl;
    while at + ttl < length && steps.len() < STEPS_MAX {
        troubled.retain(|until| *until > at);
        if troubled.len() + 1 >= candidates {
            // One more would leave nobody who can lead.
            at = troubled.iter().copied().min().unwrap_or(at) + ttl / 4;
            continue;
        }
        if deck.is_empty() {
            deck.extend(&options.kinds);
        }
        if deck.is_empty() {
            break;
        }
        let kind = deck.swap_remove(rng.below(deck.len() as u64) as usize);
        let fault = fault(kind, ttl, &mut rng);
        let aim = match rng.one_in(FOLLOWERS_SHARE) {
            // Only a leader can step down, and a server is nobody's.
            true if !matches!(kind, Kind::StepDown | Kind::ServerRestart) => {
                Aim::Follower(rng.below(256) as u8)
            }
            _ => Aim::Leader,
        };
        steps.push(Step { at, aim, fault });
        if !fault.span().is_zero() {
            troubled.push(at + fault.span());
        }
        at += rng.between(ttl * 6 / 5, ttl * 12 / 5);
        if kind == Kind::ServerRestart {
            // Nobody may be able to lead until it is back: some stores let a ttl pass before anybody may.
            at += 2 * ttl;
        }
    }
    steps
}

fn fault(kind: Kind, ttl: Duration, rng: &mut Rng) -> Fault {
    // Past the ttl, so that somebody else leads when it ends; sometimes only just.
    let mut silence = || rng.between(ttl * 11 / 10, ttl * 5 / 2);
    match kind {
        Kind::Kill => Fault::Kill { back: rng.between(ttl / 20, ttl) },
        Kind::Restart => Fault::Restart { back: rng.between(ttl / 20, ttl) },
        Kind::Stop => Fault::Stop { span: silence() },
        Kind::Freeze => Fault::Freeze { span: silence() },
        Kind::StepDown => Fault::StepDown,
        Kind::Cut => Fault::Cut { span: silence() },
        // Mostly shorter than a ttl: whoever connects again in time goes on leading.
        Kind::Reset => Fault::Reset { span: rng.between(ttl / 20, ttl * 3 / 2) },
        // From what a busy server needs to what no renewal survives.
        Kind::Delay => {
            Fault::Delay { by: rng.between(ttl / 50, ttl / 2), span: rng.between(ttl, ttl * 5 / 2) }
        }
        Kind::ServerRestart => Fault::ServerRestart,
        Kind::Clock => {
            let seconds = 1 + rng.below(CLOCK_MAX) as i64;
            let seconds = if rng.one_in(2) { -seconds } else { seconds };
            Fault::Clock { seconds, span: rng.between(ttl, ttl * 5 / 2) }
        }
    }
}

#[cfg(test)]
mod tests;
