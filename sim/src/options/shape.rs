//! How many elections a world has, and which processes take part in which: by one candidate, or by two.
//!
//! Most worlds have one election and one candidate in each process. In the others the processes share what they have between several
//! elections, as programs do: one connection, one lease or one pair of sessions, one heartbeat.

use bellwether_core::{CandidateId, Rng, Settings};

use super::{CandidatePlan, Plan, draw_settings};
use crate::key::ElectionKey;
use crate::profile::WorldProfile;

/// Each election needs another process to take over when one dies.
const PROCESSES_MIN: usize = 2;

/// The elections of a world, and its processes.
pub(super) struct WorldShape {
    pub(super) elections: usize,
    pub(super) plans: Vec<Plan>,
}

impl WorldShape {
    /// Of this seed, with these settings for the processes: of sixteen worlds, four have several elections and two have processes with
    /// two candidates of one; one of them has both.
    pub(super) fn of(seed: u64, profile: WorldProfile, settings: Vec<Settings>) -> WorldShape {
        let mut rng = Rng::new(seed ^ 0x5eed_e1ec_7105_5eed);
        for _ in 0..4 {
            rng.next_u64();
        }
        let (several, pairs) = match rng.below(16) {
            0..=2 => (true, false),
            3 => (true, true),
            4 => (false, true),
            _ => (false, false),
        };
        if !several && !pairs {
            return WorldShape::of_one_election(settings);
        }
        let elections = if several { 2 + rng.below(4) as usize } else { 1 };
        // Two or three processes: what they share is what these worlds are for.
        let processes = PROCESSES_MIN + rng.below(2) as usize;
        let mut plans: Vec<Plan> = (0..processes)
            .map(|process| draw_process(&mut rng, process, elections, &settings, profile))
            .collect();
        if pairs {
            add_pairs(&mut rng, &mut plans);
        }
        WorldShape { elections, plans }
    }

    /// One election, with one candidate in each process.
    pub(super) fn of_one_election(settings: Vec<Settings>) -> WorldShape {
        let plans = settings.into_iter().enumerate();
        let plans = plans.map(|(process, settings)| Plan::of_one(process, settings)).collect();
        WorldShape { elections: 1, plans }
    }
}

/// One with a candidate in each election, or in most. In half of the processes each has settings of its own, with the ttl of any.
fn draw_process(
    rng: &mut Rng,
    process: usize,
    elections: usize,
    settings: &[Settings],
    profile: WorldProfile,
) -> Plan {
    let differing = rng.one_in(2);
    let mut candidates = Vec::new();
    for number in 0..elections {
        // The first two processes take part in everything, the others at least in something.
        if process >= PROCESSES_MIN && number != process % elections && rng.one_in(3) {
            continue;
        }
        let settings = match differing {
            true => {
                let any = &settings[rng.below(settings.len() as u64) as usize];
                draw_settings(rng, any.timing().ttl(), profile)
            }
            false => settings[process % settings.len()].clone(),
        };
        candidates.push(CandidatePlan { key: ElectionKey(number), id: id(process, None), settings });
    }
    Plan { candidates }
}

/// Second candidates beside the first ones of their processes, at least one: mostly with ids of their own, sometimes with the same.
fn add_pairs(rng: &mut Rng, plans: &mut [Plan]) {
    let certain = rng.below(plans.len() as u64) as usize;
    for (process, plan) in plans.iter_mut().enumerate() {
        let firsts = plan.candidates.clone();
        for (place, first) in firsts.into_iter().enumerate() {
            if rng.one_in(2) || process == certain && place == 0 {
                let id = if rng.one_in(4) { first.id } else { id(process, Some("b")) };
                plan.candidates.push(CandidatePlan { id, ..first });
            }
        }
    }
}

/// What a candidate of that process is called.
pub(super) fn id(process: usize, which: Option<&str>) -> CandidateId {
    let which = which.map_or(String::new(), |which| format!("-{which}"));
    CandidateId::new(format!("candidate-{process}{which}")).expect("a good name")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WorldOptions;

    #[test]
    fn every_kind_of_world_is_there_and_every_election_has_two_processes() {
        let (mut several, mut pairs, mut both) = (0, 0, 0);
        for seed in 1..=1_600 {
            let options = WorldOptions::of(seed);
            let (is_several, has_pairs) = (options.elections > 1, options.has_pairs());
            several += u32::from(is_several);
            pairs += u32::from(has_pairs);
            both += u32::from(is_several && has_pairs);
            for number in 0..options.elections {
                let takes_part =
                    |plan: &&Plan| plan.candidates.iter().any(|one| one.key == ElectionKey(number));
                assert!(options.plans.iter().filter(takes_part).count() >= 2, "{seed}");
            }
        }
        assert!((300..500).contains(&several) && (150..250).contains(&pairs), "{several} {pairs}");
        assert!((60..140).contains(&both), "{both}");
    }
}
