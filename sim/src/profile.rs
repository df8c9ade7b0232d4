//! Biases: a world in which everything happens rarely shows little, so every second seed has a theme.

use bellwether_core::Rng;

use crate::faults::Fault;
use crate::options::{Net, StoreKind, Watch};

/// The theme of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
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

impl Profile {
    const THEMES: [Profile; 10] = [
        Profile::Paused,
        Profile::CutOff,
        Profile::Slow,
        Profile::Rollback,
        Profile::Deletion,
        Profile::DifferingTtls,
        Profile::Twins,
        Profile::Meddled,
        Profile::Deaf,
        Profile::Crashes,
    ];

    /// The theme of this seed.
    pub fn of(seed: u64) -> Profile {
        if seed.is_multiple_of(2) {
            return Profile::Mixed;
        }
        Profile::THEMES[(seed / 2 % Profile::THEMES.len() as u64) as usize]
    }

    /// Whether a store in this world may be able to prove a crash. Proof and silence are different ways to take
    /// over; where silence is the theme, proof would spoil it.
    pub(crate) fn allows_crash_proof(self) -> bool {
        !matches!(self, Profile::Twins | Profile::Deaf | Profile::Rollback)
    }

    pub(crate) fn allows_giving_up(self) -> bool {
        self == Profile::Mixed
    }

    pub(crate) fn wants_grace(self) -> bool {
        self == Profile::CutOff
    }

    pub(crate) fn faults(self, store: StoreKind, rng: &mut Rng) -> Vec<(Fault, u64)> {
        use Fault::*;
        let mut all: Vec<(Fault, u64)> =
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
        let heavy: &[Fault] = match self {
            Profile::Mixed | Profile::Meddled => &[],
            Profile::Paused => &[Pause, Suspend],
            Profile::CutOff => &[Cut, Outage],
            Profile::Slow => &[Spike, Cut],
            Profile::Rollback => &[Rollback, Cut],
            Profile::Deletion => &[Delete, Crash, Cut],
            Profile::DifferingTtls => &[Pause, Cut, Crash],
            Profile::Twins => &[Twin, Crash],
            Profile::Deaf => &[Crash],
            Profile::Crashes => &[Crash, Pause],
        };
        let content = matches!(self, Profile::Mixed | Profile::Rollback | Profile::Deletion);
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
            all.push((Clone, if self == Profile::Twins { 8 } else { 1 }));
        }
        if store == StoreKind::Session {
            self.faults_of_sessions(&mut all, rng);
        }
        all.retain(|(_, weight)| *weight > 0);
        all
    }

    /// A server of sessions does not forget a record: it ends sessions.
    fn faults_of_sessions(self, all: &mut Vec<(Fault, u64)>, rng: &mut Rng) {
        let heavy = |theme: Profile| if self == theme { 8 } else { 0 };
        all.retain(|(fault, _)| !matches!(fault, Fault::Rollback | Fault::Delete));
        all.push((Fault::Restart, 1 + rng.below(3) + heavy(Profile::Rollback)));
        all.push((Fault::Promotion, rng.below(3) + heavy(Profile::Rollback) / 2));
        all.push((Fault::Terminate, 2 + rng.below(4) + heavy(Profile::Deletion)));
    }

    pub(crate) fn whims(self, rng: &mut Rng) -> Vec<(Fault, u64)> {
        use Fault::*;
        let factor = if self == Profile::Meddled { 6 } else { 1 };
        [StepDown, StopStart, Sick, Asked, Validate]
            .into_iter()
            .map(|whim| (whim, factor * (1 + rng.below(3))))
            .collect()
    }

    pub(crate) fn net(self, rng: &mut Rng) -> Net {
        let worst = match self {
            Profile::Slow | Profile::CutOff => 1_200,
            Profile::Deaf => 100,
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
            (Profile::Deaf, _) | (_, 0) => Watch::Off,
            (_, 1..=3) => Watch::Look,
            _ => Watch::Record,
        }
    }
}
