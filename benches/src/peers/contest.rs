//! The measures, each of every make: how long it takes to lead, to follow a leader that stops or dies, and what followers ask for.

use std::cell::Cell;
use std::collections::HashMap;
use std::time::Duration;

use bellwether::boot_now;

use super::process::Process;
use super::{Make, Pair, many};
use crate::{Axis, Row, Unit, median, progress, report};

/// What is measured, as rows and causes name it.
pub const ACQUIRE: &str = "acquire, uncontended";
/// A leader stops in order.
pub const HANDOVER: &str = "handover";
/// A leader is killed.
pub const FAILOVER: &str = "failover, kill -9";
/// By a leader and its followers.
pub const REQUESTS: &str = "requests while nothing changes";
/// TCP connections.
pub const CONNECTIONS: &str = "connections of the process";

const ACQUIRES: usize = 30;
const FOLLOWERS: [usize; 3] = [1, 10, 50];
const HERD: usize = 100;
const CALLS: usize = 10;
/// A follower has looked once, and waits to be told where somebody tells it.
const SETTLING: Duration = Duration::from_secs(1);
/// The same for many.
const ALL_SETTLING: Duration = Duration::from_secs(2);
/// At the defaults of most, everything is renewed twice in this time.
const COUNTING: Duration = Duration::from_secs(12);
/// After a herd has a leader: for those that come too late.
const AFTERMATH: Duration = Duration::from_secs(3);
/// Beyond a few ttls, nothing takes longer than this.
const PATIENCE: Duration = Duration::from_secs(60);

/// One store with the makes that are measured on it.
#[derive(Debug)]
pub struct Contest {
    /// As rows call it.
    store: &'static str,
    pairs: Vec<Pair>,
    /// Why ours is behind, by what is measured: where it is, its row says so.
    causes: &'static [(&'static str, &'static str)],
    /// Elections so far, each of which has a name of its own.
    elections: Cell<usize>,
}

impl Contest {
    /// Nothing is measured yet.
    pub fn new(
        store: &'static str,
        pairs: Vec<Pair>,
        causes: &'static [(&'static str, &'static str)],
    ) -> Contest {
        Contest { store, pairs, causes, elections: Cell::new(0) }
    }

    /// Where nobody leads, on a connection that is open: from the call to the leadership.
    pub async fn acquire(&self, raw: Duration) {
        let took = self
            .each(self.all(), async |make| {
                let flags = self.election(make, ACQUIRES);
                let mut process = Process::start(make, "acquire", &flags);
                let mut took = Vec::new();
                for _ in 0..=ACQUIRES {
                    let start = process.until("campaigning", PATIENCE).await.at;
                    took.push(process.until("started_leading", PATIENCE).await.at.since(start));
                }
                median(took.split_off(1))
            })
            .await;
        for pair in self.all() {
            self.time(pair, &took, ACQUIRE).raw(raw).medians(ACQUIRES, ACQUIRES).print();
        }
    }

    /// A leader stops in order: from its request to the next leadership.
    pub async fn handover(&self, raw: Duration) {
        let took = self
            .each(self.all(), async |make| {
                let flags = self.election(make, 0);
                let mut leader = leading(make, &flags).await;
                let mut took = Vec::new();
                for round in 0..make.rounds {
                    let mut follower = following(make, &flags, 1).await;
                    pass_part_of(make.asks_every, round, make.rounds).await;
                    let stopped = leader.stop().await;
                    let led = follower.until("started_leading", make.ttl * 3 + PATIENCE).await.at;
                    took.push(led.since(stopped));
                    leader = follower;
                }
                median(took)
            })
            .await;
        for pair in self.all() {
            let row = self.time(pair, &took, HANDOVER).raw(raw);
            row.medians(pair.ours.rounds, pair.theirs.rounds).print();
        }
    }

    /// A leader is killed: from then to the next leadership.
    pub async fn failover(&self) {
        let took = self
            .each(self.all(), async |make| {
                let flags = self.election(make, 0);
                let mut leader = leading(make, &flags).await;
                let mut took = Vec::new();
                let rounds = make.failovers();
                for round in 0..rounds {
                    let mut follower = following(make, &flags, 1).await;
                    pass_part_of(make.ttl / 3, round, rounds).await;
                    let killed = leader.kill();
                    let led = follower.until("started_leading", make.ttl * 3 + PATIENCE).await.at;
                    took.push(led.since(killed));
                    leader = follower;
                }
                median(took)
            })
            .await;
        for pair in self.all() {
            let row = self.time(pair, &took, FAILOVER);
            row.medians(pair.ours.failovers(), pair.theirs.failovers()).print();
        }
    }

    /// What a leader and its followers ask of the server while nothing changes. `count` tells what was asked for so far.
    pub async fn requests(&self, count: impl AsyncFn(&Make) -> u64) {
        for followers in FOLLOWERS {
            let asked = self
                .each(self.defaults(), async |make| {
                    let flags = self.election(make, 0);
                    let _leader = leading(make, &flags).await;
                    let _followers = following(make, &flags, followers).await;
                    tokio::time::sleep(ALL_SETTLING).await;
                    let (before, start) = (count(make).await, boot_now());
                    tokio::time::sleep(COUNTING).await;
                    (count(make).await - before) as f64 / boot_now().since(start).as_secs_f64()
                })
                .await;
            for pair in self.defaults() {
                let row = self.row(pair, &asked, REQUESTS, Unit::PerSecond);
                row.at(Axis::Followers, followers).print();
            }
        }
    }

    /// A hundred followers of a leader that is killed: how long until the next one, and what they ask of the server until then and shortly after.
    pub async fn herd(&self, count: impl AsyncFn(&Make) -> u64) {
        let mut asked = HashMap::new();
        let took = self
            .each(self.defaults(), async |make| {
                let flags = self.election(make, 0);
                let mut leader = leading(make, &flags).await;
                let mut followers = following(make, &flags, HERD).await;
                tokio::time::sleep(ALL_SETTLING).await;
                let before = count(make).await;
                let killed = leader.kill();
                let led = followers.until("started_leading", make.ttl * 3 + PATIENCE).await.at;
                tokio::time::sleep(AFTERMATH).await;
                (led.since(killed), (count(make).await - before) as f64)
            })
            .await;
        let took = took.into_iter().map(|(make, (took, requests))| {
            asked.insert(make.clone(), requests);
            (make, took)
        });
        let took = took.collect();
        for pair in self.defaults() {
            self.time(pair, &took, &format!("failover to one of {HERD} followers")).print();
            let what = format!("requests of {HERD} followers until {AFTERMATH:?} after a failover");
            let row = self.row(pair, &asked, &what, Unit::Count);
            row.cause(self.cause(REQUESTS)).print();
        }
    }

    /// One call that tells whether the caller leads, in a process that does.
    pub async fn is_leader(&self) {
        let with_one = || self.defaults().filter(|pair| pair.theirs.tells);
        let took = self
            .each(with_one(), async |make| {
                let mut flags = self.election(make, 0);
                flags.push(format!("--rounds={CALLS}"));
                let mut process = Process::start(make, "is-leader", &flags);
                let mut nanos = Vec::new();
                for _ in 0..CALLS {
                    nanos.push(process.until("called", PATIENCE).await.nanos.expect("nanoseconds"));
                }
                median(nanos) / 1e9
            })
            .await;
        for pair in with_one() {
            let row = self.row(pair, &took, "is_leader()", Unit::Seconds);
            row.cause("it compares a deadline with the clock; theirs reads what was last known, however old that is").print();
        }
    }

    /// What elections of one process cost while nothing happens.
    pub async fn many(&self) {
        for elections in many::COUNTS {
            let holds = |pair: &&Pair| elections <= pair.ours.elections_max.min(pair.theirs.elections_max);
            for pair in self.defaults().filter(|pair| !holds(pair)) {
                self.cannot_hold(pair, elections);
            }
            let pairs = || self.defaults().filter(holds);
            let cost = self
                .each(pairs(), async |make| {
                    let mut flags = self.election(make, 0);
                    flags.push(format!("--elections={elections}"));
                    many::measure(make, &flags, elections).await
                })
                .await;
            for pair in pairs() {
                for (what, row) in many::rows(self.store, pair, &cost, elections) {
                    row.cause(self.cause(what)).print();
                }
            }
        }
    }

    /// Says who of a pair holds fewer elections in one process than this.
    fn cannot_hold(&self, pair: &Pair, elections: usize) {
        for (name, max) in [("ours", &pair.ours), (pair.theirs.name.as_str(), &pair.theirs)]
            .map(|(name, make)| (name, make.elections_max))
        {
            if max < elections {
                let what = format!("{}: {elections} elections of one process", self.store);
                report(&what, &format!("at most {max}"), name);
            }
        }
    }

    fn all(&self) -> impl Iterator<Item = &Pair> {
        self.pairs.iter()
    }

    fn defaults(&self) -> impl Iterator<Item = &Pair> {
        self.pairs.iter().filter(|pair| pair.defaults)
    }

    /// Measures each make of these pairs once; ours may be in many.
    async fn each<'a, T>(
        &self,
        pairs: impl Iterator<Item = &'a Pair>,
        measure: impl AsyncFn(&'a Make) -> T,
    ) -> HashMap<String, T> {
        let mut measured = HashMap::new();
        for make in pairs.flat_map(|pair| [&pair.ours, &pair.theirs]) {
            if !measured.contains_key(&make.name) {
                progress(&format!("{}: {}", self.store, make.name));
                measured.insert(make.name.clone(), measure(make).await);
            }
        }
        measured
    }

    /// The flags of an election that nobody had before, which the store is ready for.
    fn election(&self, make: &Make, rounds: usize) -> Vec<String> {
        let name = format!("e{}", self.elections.replace(self.elections.get() + 1));
        make.prepare(&name, rounds);
        let mut flags = vec![format!("--election={name}")];
        if rounds > 0 {
            flags.push(format!("--rounds={rounds}"));
        }
        flags
    }

    fn time(&self, pair: &Pair, took: &HashMap<String, Duration>, what: &str) -> Row {
        let seconds = took.iter().map(|(make, took)| (make.clone(), took.as_secs_f64())).collect();
        let row = self.row(pair, &seconds, what, Unit::Seconds);
        if what.starts_with("failover") && pair.ours.ttl > pair.theirs.ttl {
            return row.cause("its ttl is the longer one");
        }
        row
    }

    fn row(&self, pair: &Pair, measured: &HashMap<String, f64>, what: &str, unit: Unit) -> Row {
        pair.row(self.store, what, unit, |make| measured[&make.name]).cause(self.cause(what))
    }

    fn cause(&self, what: &str) -> &'static str {
        self.causes.iter().find(|(of, _)| *of == what).map_or("", |(_, cause)| *cause)
    }
}

/// A process with one candidate, which leads.
async fn leading(make: &Make, flags: &[String]) -> Process {
    let mut leader = Process::start(make, "compete", &[flags, &["--id=leader".to_owned()]].concat());
    leader.until("started_leading", make.ttl * 3 + PATIENCE).await;
    leader
}

/// A process with so many candidates, each of which has seen who leads.
async fn following(make: &Make, flags: &[String], candidates: usize) -> Process {
    // Ids of processes that follow each other differ, as those of real candidates do.
    let id = format!("--id=f{}", boot_now().as_nanos());
    let more = [id, format!("--candidates={candidates}")];
    let mut followers = Process::start(make, "compete", &[flags, &more].concat());
    followers.until("campaigning", PATIENCE).await;
    tokio::time::sleep(SETTLING).await;
    followers
}

/// Each round begins at another point of what is done at intervals.
async fn pass_part_of(interval: Duration, round: usize, rounds: usize) {
    tokio::time::sleep(interval * round as u32 / rounds as u32).await;
}
