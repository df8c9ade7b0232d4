//! A seed expands to these, and they are printed: what kind of world it is, who takes part, what goes wrong.

mod print;
mod shape;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::{
    AtMost, Breaker, CandidateId, DecorrelatedJitter, Exponential, Fixed, Rng, Settings, Timeline,
};
use shape::WorldShape;

use crate::clock::PPM_TRUE;
use crate::faults::WorldFault;
use crate::key::ElectionKey;
use crate::profile::WorldProfile;
use crate::time::{Nanos, SECOND, nanos};

/// One process: the candidates that share its connection, its lease or sessions, and its fate.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Its candidates.
    pub candidates: Vec<CandidatePlan>,
}

/// One candidate of a process.
#[derive(Clone, Debug)]
pub struct CandidatePlan {
    /// What it takes part in.
    pub key: ElectionKey,
    /// What it is called.
    pub id: CandidateId,
    /// How it takes part.
    pub settings: Settings,
}

impl Plan {
    /// A process with one candidate, in a world's only election.
    pub fn of_one(process: usize, settings: Settings) -> Plan {
        let candidate = CandidatePlan { key: ElectionKey(0), id: shape::id(process, None), settings };
        Plan { candidates: vec![candidate] }
    }
}

/// How news of changes travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// With the record in it.
    Record,
    /// "Look": the process reads the record itself.
    Look,
    /// Not at all: candidates find out by trying.
    Off,
}

/// What kind of store the world has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreKind {
    /// A compare-and-set register, with the real lease on it.
    Register,
    /// Locks that belong to sessions.
    Session,
    /// A Raft cluster with the election service on it.
    Raft,
}

impl StoreKind {
    /// Of this seed: of fifteen worlds, five have sessions and two a Raft cluster.
    pub fn of(seed: u64) -> StoreKind {
        match (seed % 3, seed % 5) {
            (0, _) => StoreKind::Session,
            (_, 4) => StoreKind::Raft,
            _ => StoreKind::Register,
        }
    }
}

/// Chances of what can happen to one message, in 1/10,000.
#[derive(Clone, Copy, Debug, Default)]
pub struct Net {
    /// The call never arrives.
    pub call_lost: u64,
    /// The answer never arrives.
    pub answer_lost: u64,
    /// The call arrives twice.
    pub twice: u64,
    /// The call arrives twice and only the second answer is heard.
    pub self_conflict: u64,
    /// An error, before or after the store did what was asked.
    pub error: u64,
    /// The answer takes up to several ttls.
    pub answer_late: u64,
    /// A piece of news is lost.
    pub news_lost: u64,
    /// A piece of news comes again, later.
    pub news_again: u64,
    /// A piece of news takes up to a ttl.
    pub news_late: u64,
}

/// A whole world.
#[derive(Clone, Debug)]
pub struct WorldOptions {
    /// Where all this comes from.
    pub seed: u64,
    /// The store.
    pub store: StoreKind,
    /// The bias.
    pub profile: WorldProfile,
    /// How many elections there are.
    pub elections: usize,
    /// Who takes part.
    pub plans: Vec<Plan>,
    /// Slowest and fastest clock, in millionths of true time: within what the margins tolerate.
    pub ppm: (u64, u64),
    /// How fast messages travel when all is well: one way, shortest and longest.
    pub latency: (Nanos, Nanos),
    /// What happens to messages.
    pub net: Net,
    /// How news travels.
    pub watch: Watch,
    /// Whether the store can prove a crash.
    pub crash_proof: bool,
    /// Whether candidates stagger their claims, as they do on a register.
    pub staggered: bool,
    /// Mean time between faults.
    pub fault_every: Nanos,
    /// Mean time between the whims of users.
    pub whim_every: Nanos,
    /// Which faults, and how often relative to each other.
    pub faults: Vec<(WorldFault, u64)>,
    /// Which whims, and how often relative to each other.
    pub whims: Vec<(WorldFault, u64)>,
    /// How long a process's client waits for an answer before it calls it an error.
    pub patience: Nanos,
    /// Whether the leader dies at the very end of the faults, and an outsider keeps asking the dead.
    pub ends_with_death: bool,
    /// How long the faults last.
    pub span: Nanos,
}

impl WorldOptions {
    /// What this seed means.
    pub fn of(seed: u64) -> WorldOptions {
        WorldOptions::shaped(seed, WorldShape::of)
    }

    /// What this seed means where there is one election, with one candidate in each process.
    pub fn of_one_election(seed: u64) -> WorldOptions {
        WorldOptions::shaped(seed, |_, _, settings| WorldShape::of_one_election(settings))
    }

    fn shaped(seed: u64, shape: impl FnOnce(u64, WorldProfile, Vec<Settings>) -> WorldShape) -> WorldOptions {
        let mut rng = Rng::new(seed ^ 0x5eed_0f0b_e11e_7e11);
        let (profile, store) = (WorldProfile::of(seed), StoreKind::of(seed));
        let count = 2 + rng.below(4) as usize;
        let base = draw_ttl(&mut rng, profile);
        // A lock says nothing about its holder's ttl, so all have one.
        let differing =
            (profile == WorldProfile::DifferingTtls || rng.one_in(4)) && store == StoreKind::Register;
        let settings: Vec<Settings> = (0..count)
            .map(|_| {
                let ttl = if differing { draw_ttl(&mut rng, profile) } else { base };
                draw_settings(&mut rng, ttl, profile)
            })
            .collect();
        let WorldShape { elections, plans } = shape(seed, profile, settings);
        let ttls = || plans.iter().flat_map(Plan::settings).map(|settings| settings.timing().ttl());
        let (shortest, longest) = (ttls().min().unwrap_or(base), ttls().max().unwrap_or(base));
        let slow = nanos(shortest) / (60 + rng.below(400));
        let faults = profile.faults(store, &mut rng);
        WorldOptions {
            seed,
            store,
            profile,
            elections,
            ppm: draw_ppm(&plans),
            latency: (slow / 20 + 10_000, slow + 20_000),
            net: profile.net(&mut rng),
            watch: profile.watch(&mut rng),
            crash_proof: profile.allows_crash_proof() && rng.one_in(4),
            staggered: store == StoreKind::Register,
            fault_every: nanos(longest) / 4 + rng.below(2 * nanos(longest)),
            whim_every: nanos(longest) / 2 + rng.below(4 * nanos(longest)),
            faults,
            whims: profile.whims(&mut rng),
            patience: nanos(shortest) / 4 + rng.below(3 * nanos(longest)),
            ends_with_death: rng.one_in(2),
            span: 600 * SECOND + rng.below(60 * SECOND),
            plans,
        }
    }

    /// The settings of every candidate.
    pub fn settings(&self) -> impl Iterator<Item = &Settings> {
        self.plans.iter().flat_map(Plan::settings)
    }

    /// Whether a process has two candidates of one election.
    pub fn has_pairs(&self) -> bool {
        self.plans.iter().any(Plan::has_pairs)
    }

    /// The longest ttl of a candidate.
    pub fn longest_ttl(&self) -> Nanos {
        self.settings().map(|settings| nanos(settings.timing().ttl())).max().unwrap_or(SECOND)
    }

    /// The shortest ttl of a candidate.
    pub fn shortest_ttl(&self) -> Nanos {
        self.settings().map(|settings| nanos(settings.timing().ttl())).min().unwrap_or(SECOND)
    }

    /// The longest ttl of a process's candidates; any where it has none.
    pub(crate) fn ttl_of(&self, slot: Option<usize>) -> Duration {
        let plan = slot.map(|slot| &self.plans[slot]);
        let longest = plan.and_then(|plan| plan.settings().map(|settings| settings.timing().ttl()).max());
        longest.unwrap_or(Settings::default().timing().ttl())
    }

    /// A bound that every candidate's settings keep, in true time: on the slowest clock it takes longest.
    ///
    /// A record carries its holder's ttl, and any candidate may have to wait for any other's: the longest ttl
    /// counts for all of them.
    pub fn bound(&self, of: impl Fn(&Timeline) -> Duration) -> Nanos {
        let longest = Duration::from_nanos(self.longest_ttl());
        let slowest = self.settings().map(|settings| {
            let line = Timeline::new(settings);
            nanos(of(&line)) + 2 * nanos(longest - settings.timing().ttl())
        });
        let slowest = slowest.max().unwrap_or(SECOND);
        (u128::from(slowest) * u128::from(PPM_TRUE) / u128::from(self.ppm.0)) as u64
    }
}

impl Plan {
    fn settings(&self) -> impl Iterator<Item = &Settings> {
        self.candidates.iter().map(|candidate| &candidate.settings)
    }

    fn has_pairs(&self) -> bool {
        let keys: BTreeSet<ElectionKey> = self.candidates.iter().map(|candidate| candidate.key).collect();
        keys.len() < self.candidates.len()
    }
}

fn draw_ttl(rng: &mut Rng, profile: WorldProfile) -> Duration {
    if profile == WorldProfile::Deaf {
        return rng.between(Duration::from_millis(500), Duration::from_secs(2));
    }
    // Short ones go through more lives in the same time, long ones are what people run.
    match rng.below(3) {
        0 => rng.between(Duration::from_secs(1), Duration::from_secs(3)),
        1 => rng.between(Duration::from_secs(2), Duration::from_secs(8)),
        _ => rng.between(Duration::from_secs(5), Duration::from_secs(20)),
    }
}

pub(crate) fn draw_settings(rng: &mut Rng, ttl: Duration, profile: WorldProfile) -> Settings {
    let some = |rng: &mut Rng, one_in: u64| rng.one_in(one_in);
    let margin = if some(rng, 3) { Some(rng.between(ttl / 12, ttl / 6)) } else { None };
    let work_grace = if some(rng, 3) { ttl / 20 } else { Duration::ZERO };
    let renew = if some(rng, 4) { Some(rng.between(ttl / 6, ttl / 3)) } else { None };
    let retry = if some(rng, 4) { Some(rng.between(ttl / 10, ttl / 3)) } else { None };
    let mut options = bellwether_core::Options::default();
    options.timing.ttl = ttl;
    options.timing.renew = renew;
    options.timing.retry = retry;
    options.timing.margin = margin;
    options.timing.work_grace = work_grace;
    let renew = renew.unwrap_or(ttl / 3);
    options.strategy = match rng.below(5) {
        0 => Arc::new(Fixed(ttl / 5)),
        1 => Arc::new(DecorrelatedJitter { base: ttl / 20, max: ttl / 2 }),
        2 if profile.allows_giving_up() => {
            Arc::new(AtMost { attempts: 6, then: Exponential { max: ttl / 2, ..Exponential::default() } })
        }
        _ => Arc::new(Exponential::default()),
    };
    let graceful = profile.wants_grace() || some(rng, 4);
    let priority = if some(rng, 3) { rng.below(4) as i32 } else { 0 };
    options.failed_renewals = some(rng, 5).then(|| 2 + rng.below(3) as u32);
    options.disconnect_grace = some(rng, 5).then_some(renew * 2);
    options.reconnect_grace = graceful.then(|| rng.between(ttl / 4, ttl * 2));
    options.auto_reacquire = !some(rng, 12);
    options.cooldown = some(rng, 4).then(|| rng.between(ttl / 2, ttl * 2));
    options.priority = priority;
    options.preempt = priority > 0 && some(rng, 2);
    options.health_failures = some(rng, 4).then(|| 1 + rng.below(3) as u32);
    options.validation = some(rng, 5).then(|| rng.between(renew, ttl));
    options.breaker = some(rng, 5)
        .then(|| Breaker { failures: 3 + rng.below(8) as u32, open_for: rng.between(ttl / 2, ttl * 3) });
    options.settle = Duration::from_millis(rng.below(30)).min(ttl / 4);
    options.stop_timeout = if some(rng, 3) { rng.between(ttl / 2, ttl * 2) } else { Duration::ZERO };
    Settings::new(options).expect("what is drawn here is safe together")
}

/// Clocks may differ in speed by what the smallest margin pays for, and here they nearly do.
fn draw_ppm(plans: &[Plan]) -> (u64, u64) {
    let tolerated = plans.iter().flat_map(Plan::settings);
    let tolerated = tolerated.map(|settings| Timeline::new(settings).clock_rate);
    let tolerated = tolerated.fold(f64::MAX, f64::min);
    let half = (tolerated * 1e6 * 0.98 / (2.0 + tolerated)) as u64;
    (PPM_TRUE - half, PPM_TRUE + half)
}
