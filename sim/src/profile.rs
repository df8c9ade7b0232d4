//! Biases: a world in which everything happens rarely shows little, so every second seed has a theme.

use bellwether_core::Rng;

use crate::faults::WorldFault;
use crate::options::{Net, StoreKind, Watch};

/// The theme of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorldProfile {
    /// Everything, as it comes.
    Mixed,
    /// Leaders stand still and machines sleep.
    Paused,
    /// Candidates are cut off, and answers get lost.
    CutOff,
    /// Everything is slow, late and out of order.
    Slow,
    /// The store falls back.
    Rollback,
    /// The record is deleted.
    Deletion,
    /// Candidates with different ttls.
    DifferingTtls,
    /// Two processes with one id, or with one incarnation.
    Twins,
    /// People and programs meddle: step-down, stop, requests, health, priorities.
    Meddled,
    /// No news at all, short leases.
    Deaf,
    /// Processes die.
    Crashes,
}

impl WorldProfile {
    const THEMES: [WorldProfile; 10] = [
        WorldProfile::Paused,
        WorldProfile::CutOff,
        WorldProfile::Slow,
        WorldProfile::Rollback,
        WorldProfile::Deletion,
        WorldProfile::DifferingTtls,
        WorldProfile::Twins,
        WorldProfile::Meddled,
        WorldProfile::Deaf,
        WorldProfile::Crashes,
    ];

    /// The theme of this seed.
    pub fn of(seed: u64) -> WorldProfile {
        if seed.is_multiple_of(2) {
            return WorldProfile::Mixed;
        }
        WorldProfile::THEMES[(seed / 2 % WorldProfile::THEMES.len() as u64) as usize]
    }

    /// Whether a store in this world may be able to prove a crash. Proof and silence are different ways to take
    /// over; where silence is the theme, proof would spoil it.
    pub(crate) fn allows_crash_proof(self) -> bool {
        !matches!(self, WorldProfile::Twins | WorldProfile::Deaf | WorldProfile::Rollback)
    }

    pub(crate) fn allows_giving_up(self) -> bool {
        self == WorldProfile::Mixed
    }

    pub(crate) fn wants_grace(self) -> bool {
        self == WorldProfile::CutOff
    }

    pub(crate) fn faults(self, store: StoreKind, rng: &mut Rng) -> Vec<(WorldFault, u64)> {
        use WorldFault::*;
        let mut all: Vec<(WorldFault, u64)> =
            [Pause, Suspend, Crash, Twin, Cut, Spike, Outage, Rollback, Delete, WallJump]
                .into_iter()
                .map(|fault| (fault, if rng.one_in(3) { 0 } else { 1 + rng.below(4) }))
                .collect();
        // Losing content is rare next to everything else: where it is the rule, nothing else can be seen.
        for (fault, weight) in &mut all {
            if matches!(fault, Rollback | Delete) {
                *weight = (*weight).min(1);
            }
        }
        let heavy: &[WorldFault] = match self {
            WorldProfile::Mixed | WorldProfile::Meddled => &[],
            WorldProfile::Paused => &[Pause, Suspend],
            WorldProfile::CutOff => &[Cut, Outage],
            WorldProfile::Slow => &[Spike, Cut],
            WorldProfile::Rollback => &[Rollback, Cut],
            WorldProfile::Deletion => &[Delete, Crash, Cut],
            WorldProfile::DifferingTtls => &[Pause, Cut, Crash],
            WorldProfile::Twins => &[Twin, Crash],
            WorldProfile::Deaf => &[Crash],
            WorldProfile::Crashes => &[Crash, Pause],
        };
        let content = matches!(self, WorldProfile::Mixed | WorldProfile::Rollback | WorldProfile::Deletion);
        for (fault, weight) in &mut all {
            if heavy.contains(fault) {
                *weight += 10;
            }
            if !content && matches!(fault, Rollback | Delete) {
                *weight = 0;
            }
        }
        // What becomes of clones is judged by what the store holds, so it has to hold it.
        if store == StoreKind::Register && !content {
            all.push((Clone, if self == WorldProfile::Twins { 8 } else { 1 }));
        }
        if store == StoreKind::Session {
            self.faults_of_sessions(&mut all, rng);
        }
        all.retain(|(_, weight)| *weight > 0);
        all
    }

    /// A server of sessions does not forget a record: it ends sessions.
    fn faults_of_sessions(self, all: &mut Vec<(WorldFault, u64)>, rng: &mut Rng) {
        let heavy = |theme: WorldProfile| if self == theme { 8 } else { 0 };
        all.retain(|(fault, _)| !matches!(fault, WorldFault::Rollback | WorldFault::Delete));
        all.push((WorldFault::Restart, 1 + rng.below(3) + heavy(WorldProfile::Rollback)));
        all.push((WorldFault::Promotion, rng.below(3) + heavy(WorldProfile::Rollback) / 2));
        all.push((WorldFault::Terminate, 2 + rng.below(4) + heavy(WorldProfile::Deletion)));
    }

    pub(crate) fn whims(self, rng: &mut Rng) -> Vec<(WorldFault, u64)> {
        use WorldFault::*;
        let factor = if self == WorldProfile::Meddled { 6 } else { 1 };
        // In some worlds only: a pause lengthens every recovery, and what is to be found must not hide behind it.
        let pauses = if self == WorldProfile::Meddled || rng.one_in(4) { Some(ElectionPaused) } else { None };
        [StepDown, StopStart, Sick, Asked, Validate]
            .into_iter()
            .chain(pauses)
            .map(|whim| (whim, factor * (1 + rng.below(3))))
            .collect()
    }

    pub(crate) fn net(self, rng: &mut Rng) -> Net {
        let worst = match self {
            WorldProfile::Slow | WorldProfile::CutOff => 1_200,
            WorldProfile::Deaf => 100,
            _ => 400,
        };
        let mut draw = |most: u64| if rng.one_in(3) { 0 } else { rng.below(most) };
        Net {
            call_lost: draw(worst),
            answer_lost: draw(worst),
            twice: draw(worst),
            self_conflict: draw(worst / 2),
            error: draw(worst),
            answer_late: draw(worst),
            news_lost: draw(worst),
            news_again: draw(worst),
            news_late: draw(worst),
        }
    }

    pub(crate) fn watch(self, rng: &mut Rng) -> Watch {
        match (self, rng.below(8)) {
            (WorldProfile::Deaf, _) | (_, 0) => Watch::Off,
            (_, 1..=3) => Watch::Look,
            _ => Watch::Record,
        }
    }
}
