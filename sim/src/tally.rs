//! Figures of a run, and of many runs together.

use crate::faults::WorldFault;
use crate::options::{StoreKind, WorldOptions};
use crate::time::Nanos;

/// How many worlds there were of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorldCounts {
    /// With a compare-and-set register.
    pub registers: u64,
    /// With a server of sessions.
    pub sessions: u64,
    /// With a Raft cluster.
    pub rafts: u64,
    /// Of all these: with several elections.
    pub several: u64,
    /// Of all these: with two candidates of one election in one process.
    pub pairs: u64,
}

impl WorldCounts {
    /// This world alone.
    pub fn of(options: &WorldOptions) -> WorldCounts {
        let store = |kind: StoreKind| u64::from(options.store == kind);
        WorldCounts {
            registers: store(StoreKind::Register),
            sessions: store(StoreKind::Session),
            rafts: store(StoreKind::Raft),
            several: u64::from(options.elections > 1),
            pairs: u64::from(options.has_pairs()),
        }
    }

    fn add(&mut self, other: &WorldCounts) {
        self.registers += other.registers;
        self.sessions += other.sessions;
        self.rafts += other.rafts;
        self.several += other.several;
        self.pairs += other.pairs;
    }
}

/// What happened how often.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// The worlds.
    pub worlds: WorldCounts,
    /// Virtual time, in nanoseconds.
    pub virtual_time: u128,
    /// Virtual time that each election had to be led in, summed over all elections.
    pub election_time: u128,
    /// Events.
    pub events: u64,
    /// Writes that the store took.
    pub commits: u64,
    /// Leaderships that began.
    pub elections: u64,
    /// Of these, the ones in a process that led another election already.
    pub beside: u64,
    /// Of all, the ones that followed a release.
    pub handovers: u64,
    /// Of the claims that followed a release, those on a record that was reserved for nobody.
    pub races: u64,
    /// Virtual time from the release to the claim, in all of these.
    pub race_time: u128,
    /// The longest of these times.
    pub race_max: Nanos,
    /// Claims that the store refused because another write came first.
    pub claims_lost: u64,
    /// Overlaps that the loss of a record excuses: see the invariant `exclusive`.
    pub excused: u64,
    /// True time during which somebody led, while faults were about.
    pub led: u128,
    /// Longest time from the end of faults to a leader.
    pub recovery_max: Nanos,
    /// The same as a share of the bound, in thousandths; the worst.
    pub recovery_share_max: u64,
    /// The time after the leader's death, as a share of its bound, in thousandths; the worst.
    pub failover_share_max: u64,
    faults: [u64; WorldFault::ALL.len()],
}

impl Tally {
    /// One more of these.
    pub fn count(&mut self, fault: WorldFault) {
        self.faults[fault as usize] += 1;
    }

    /// One more claim on a record that was released for all, after so long.
    pub fn raced(&mut self, took: Nanos) {
        self.races += 1;
        self.race_time += u128::from(took);
        self.race_max = self.race_max.max(took);
    }

    /// How many of each kind.
    pub fn faults(&self) -> impl Iterator<Item = (WorldFault, u64)> {
        WorldFault::ALL.into_iter().zip(self.faults)
    }

    /// Adds the figures of another run.
    pub fn add(&mut self, other: &Tally) {
        self.worlds.add(&other.worlds);
        self.virtual_time += other.virtual_time;
        self.election_time += other.election_time;
        self.events += other.events;
        self.commits += other.commits;
        self.elections += other.elections;
        self.beside += other.beside;
        self.handovers += other.handovers;
        self.races += other.races;
        self.race_time += other.race_time;
        self.race_max = self.race_max.max(other.race_max);
        self.claims_lost += other.claims_lost;
        self.excused += other.excused;
        self.led += other.led;
        self.recovery_max = self.recovery_max.max(other.recovery_max);
        self.recovery_share_max = self.recovery_share_max.max(other.recovery_share_max);
        self.failover_share_max = self.failover_share_max.max(other.failover_share_max);
        for (sum, more) in self.faults.iter_mut().zip(other.faults) {
            *sum += more;
        }
    }
}
