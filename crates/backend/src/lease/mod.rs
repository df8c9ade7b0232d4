//! A lease on a compare-and-set register: every register store becomes a [`Backend`] here.
//!
//! It owns the exchange with the register and the memory of what was seen ([`Observations`]). Nothing is ever
//! written but at a version that was read, and nothing of another's is touched: a renewal or a release that meets a
//! conflict reads the record again and goes on only if it still names the same incarnation under the same epoch, and
//! carries a beat that was written here. Any other record in our name is that of a clone ([`beats`]).
//!
//! Its clock is handed in. It is read *after* an answer came, never before: a record that was written while we
//! waited for the answer must not count as older than it is.

mod beats;
mod claim;
mod pause;
mod renew;
mod runtime_change;
mod signals;

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use beats::Beats;
use bellwether_core::{
    Bid, Boot, Candidate, Clock, ElectionName, ErrorKind, Grant, Incarnation, Outcome, Pause, Proof,
    ReleaseOptions, Request, Seen, StoreError,
};
use futures_util::future::join;
use runtime_change::Leaver;
use tokio::sync::mpsc;

use crate::{
    Backend, Capabilities, Creation, Discarded, Finding, Found, Fut, Life, Note, Notice, Notices,
    Observations, Past, Probing, Record, Register, Source, history, lock, once,
};

/// How often a write that lost against something harmless is tried again within one call.
const TRIES: usize = 4;

/// Requests that may wait for the driver. It reads at once; one that does not is not coming back.
const REQUESTS_WAITING_MAX: usize = 1_024;

/// A [`Backend`] on a [`Register`].
pub struct Lease<R: Register> {
    shared: Arc<Shared<R>>,
}

struct Shared<R: Register> {
    register: R,
    clock: Arc<dyn Clock>,
    memory: Mutex<LeaseState<R::Version>>,
    /// To whoever took the signals last.
    notices: Mutex<mpsc::Sender<Notice>>,
}

#[derive(Clone)]
struct LeaseState<V> {
    observations: Observations<V>,
    /// What candidates of this process hold, as it was last written.
    held: HashMap<(ElectionName, Incarnation), Held<V>>,
    /// What each candidate has tried to write.
    beats: HashMap<(ElectionName, Incarnation), Beats>,
    claims: HashMap<(ElectionName, Incarnation), Claims>,
    /// Whose cooldown has been looked up: only a candidate's first claim can meet one that it did not cause.
    cooldown_checked: HashSet<(ElectionName, Incarnation)>,
    /// How many candidates here follow each election, and the ttl they go by.
    followers: HashMap<ElectionName, usize>,
    own_ttl: Option<Duration>,
    /// Candidates of a runtime that has ended, until they are retired.
    leavers: Vec<Leaver>,
}

impl<V> LeaseState<V> {
    fn new(observations: Observations<V>) -> LeaseState<V> {
        LeaseState {
            observations,
            held: HashMap::new(),
            beats: HashMap::new(),
            claims: HashMap::new(),
            cooldown_checked: HashSet::new(),
            followers: HashMap::new(),
            own_ttl: None,
            leavers: Vec::new(),
        }
    }

    /// A record in the name of a candidate here that this candidate never wrote is somebody else's, and is told apart from a
    /// candidate's own by what tells all others apart: the incarnation, which it loses.
    fn recognise(&self, on: &ElectionName, found: Found<V>) -> Found<V> {
        let (mut record, version) = found?;
        if let Some(holder) = &mut record.holder
            && let Some(incarnation) = holder.incarnation
            && let Some(beats) = self.beats.get(&(on.clone(), incarnation))
            && !beats.wrote(record.beat)
        {
            holder.incarnation = None;
        }
        Some((record, version))
    }
}

/// When the claims of a candidate left.
#[derive(Clone, Copy)]
struct Claims {
    /// It was there at the latest then, so what its id did before it started is at least as old.
    first: Boot,
    /// Those that left before this one are void.
    latest: Boot,
}

#[derive(Clone)]
struct Held<V> {
    record: Record,
    version: V,
    /// The request that the driver has been told of; the next renewal takes it out of the record.
    told: Option<Request>,
}

impl<R: Register> Lease<R> {
    /// Elections on this register, by this clock.
    pub fn new(register: R, clock: Arc<dyn Clock>) -> Lease<R> {
        Lease::build(register, clock, LeaseState::new(Observations::default()))
    }

    /// The same in a process that was cloned from this one just now, as a virtual machine is that is restored from a snapshot
    /// twice: it remembers the same, on a connection of its own.
    #[cfg(feature = "conformance")]
    pub fn cloned(&self, register: R, clock: Arc<dyn Clock>) -> Lease<R> {
        Lease::build(register, clock, self.shared.memory().clone())
    }

    fn build(register: R, clock: Arc<dyn Clock>, memory: LeaseState<R::Version>) -> Lease<R> {
        let notices = Mutex::new(mpsc::channel(REQUESTS_WAITING_MAX).0);
        let shared = Shared { register, clock, memory: Mutex::new(memory), notices };
        Lease { shared: Arc::new(shared) }
    }

    /// The register below.
    pub fn register(&self) -> &R {
        &self.shared.register
    }
}

impl<R: Register> Shared<R> {
    fn memory(&self) -> MutexGuard<'_, LeaseState<R::Version>> {
        lock(&self.memory)
    }

    /// Reads the record and takes it in.
    ///
    /// News may overtake the read, and what was read is then the older of the two, or the news is from before the store fell back: nobody can
    /// tell, and what is remembered must not be written over. So it is read again until nothing comes between.
    async fn look(&self, on: &ElectionName) -> Result<(), StoreError> {
        for _ in 0..TRIES {
            if self.read(on).await? {
                return Ok(());
            }
        }
        Err(self.overtaken())
    }

    /// The error of a call that others overtook again and again.
    fn overtaken(&self) -> StoreError {
        let sentence = "others keep changing the record; try again";
        StoreError::new(ErrorKind::Unavailable, self.register.name(), sentence)
    }

    /// Reads once; false if something newer is remembered than what was read.
    async fn read(&self, on: &ElectionName) -> Result<bool, StoreError> {
        let learnt = self.memory().observations.learnt(on);
        let (found, now) = (self.register.load(on).await?, self.clock.boot());
        let taken_away = found.is_none() && self.register.takes_away(on);
        let mut memory = self.memory();
        let found = memory.recognise(on, found);
        let source = match memory.observations.learnt(on) == learnt {
            false => Source::Overtaken,
            true if taken_away => Source::TakenAway,
            true => Source::Load,
        };
        let version = found.as_ref().map(|(_, version)| version.clone());
        memory.observations.saw(now, on, found, source);
        Ok(memory.observations.last(on).map(|(_, version)| version) == version.as_ref())
    }

    fn life(&self, on: &ElectionName) -> Life {
        let record = self.memory().observations.last(on).map(|(record, _)| record.clone());
        record.filter(Record::is_held).map_or(Life::Unknown, |record| self.register.life(on, &record))
    }

    fn seen(&self, on: &ElectionName) -> Seen {
        let life = self.life(on);
        let now = self.clock.boot();
        let memory = self.memory();
        let mut seen = memory.observations.seen(now, on, memory.own_ttl, life == Life::Dead);
        if life == Life::Alive && seen.proof == Proof::Record {
            seen.proof = Proof::Alive;
        }
        seen
    }

    /// A write of ours was acknowledged: remember what we hold, and that we saw it.
    fn wrote(&self, on: &ElectionName, who: Incarnation, record: Record, version: R::Version) {
        let now = self.clock.boot();
        let mut memory = self.memory();
        memory.observations.saw(now, on, Some((record.clone(), version.clone())), Source::Watch);
        memory.held.insert((on.clone(), who), Held { record, version, told: None });
    }
}

impl<R: Register> Backend for Lease<R> {
    fn name(&self) -> &'static str {
        self.shared.register.name()
    }

    fn capabilities(&self) -> Capabilities {
        self.shared.register.capabilities()
    }

    fn claim<'a>(&'a self, on: &'a ElectionName, bid: &'a Bid) -> Fut<'a, Outcome<Grant>> {
        self.shared.retire_leavers();
        Box::pin(self.shared.claim(on, bid))
    }

    fn renew<'a>(&'a self, on: &'a ElectionName, grant: &'a Grant, sent: Boot) -> Fut<'a, Outcome<Grant>> {
        self.shared.retire_leavers();
        Box::pin(self.shared.renew(on, grant, sent))
    }

    fn release<'a>(
        &'a self,
        on: &'a ElectionName,
        grant: &'a Grant,
        how: &'a ReleaseOptions,
    ) -> Fut<'a, Outcome<()>> {
        Box::pin(self.shared.release(on, grant, how))
    }

    fn observe<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Seen, StoreError>> {
        Box::pin(async move {
            self.shared.look(on).await?;
            Ok(self.shared.seen(on))
        })
    }

    fn request<'a>(&'a self, on: &'a ElectionName, what: &'a Request) -> Fut<'a, Outcome<()>> {
        Box::pin(self.shared.request(on, what))
    }

    fn pause<'a>(&'a self, on: &'a ElectionName, pause: Option<&'a Pause>) -> Fut<'a, Outcome<()>> {
        Box::pin(self.shared.pause(on, pause))
    }

    fn follow(&self, on: &ElectionName) {
        let first = {
            let mut memory = self.shared.memory();
            let count = memory.followers.entry(on.clone()).or_insert(0);
            *count += 1;
            *count == 1
        };
        if first {
            self.shared.register.follow(on);
        }
    }

    fn unfollow(&self, on: &ElectionName) {
        let last = {
            let mut memory = self.shared.memory();
            let Some(count) = memory.followers.get_mut(on) else { return };
            *count -= 1;
            let last = *count == 0;
            if last {
                memory.followers.remove(on);
                memory.observations.forget(on);
            }
            last
        };
        if last {
            self.shared.register.unfollow(on);
        }
    }

    fn unwatched(&self, on: &ElectionName) -> Option<StoreError> {
        self.shared.register.unwatched(on)
    }

    fn retire(&self, on: &ElectionName, who: &Candidate) {
        let key = (on.clone(), who.incarnation);
        let mut memory = self.shared.memory();
        memory.held.remove(&key);
        memory.beats.remove(&key);
        memory.claims.remove(&key);
        memory.cooldown_checked.remove(&key);
        drop(memory);
        self.shared.register.retire(on, who.incarnation);
    }

    fn signals(&self) -> Notices {
        signals::signals(&self.shared)
    }

    fn change_runtime(&self) -> Result<(), StoreError> {
        let shared = &self.shared;
        shared.register.change_runtime()?;
        let followed: Vec<ElectionName> = {
            let now = shared.clock.boot();
            let mut memory = shared.memory();
            // Nobody heard what the store said meanwhile.
            memory.observations.restart(now);
            memory.all_leave(now);
            memory.followers.drain().map(|(on, _)| on).collect()
        };
        followed.iter().for_each(|on| shared.register.unfollow(on));
        Ok(())
    }

    fn remember<'a>(&'a self, on: &'a ElectionName, past: &'a Past) -> Fut<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let register = &self.shared.register;
            if !self.capabilities().history {
                register.announce(on, past).await;
                return Ok(());
            }
            let (_, remembered) =
                join(register.announce(on, past), history::remember(register, on, past)).await;
            remembered
        })
    }

    fn history<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Vec<Past>, StoreError>> {
        Box::pin(async move {
            if !self.capabilities().history {
                return Ok(Vec::new());
            }
            let found = self.shared.register.read_note(on, &Note::History).await?;
            Ok(found.map(|(bytes, _)| history::parse(&bytes)).unwrap_or_default())
        })
    }

    fn elections(&self) -> Fut<'_, Result<Vec<ElectionName>, StoreError>> {
        Box::pin(self.shared.register.elections())
    }

    fn create_once<'a>(&'a self, name: &'a ElectionName, bytes: &'a [u8]) -> Fut<'a, Creation> {
        Box::pin(once::create(&self.shared.register, name, bytes))
    }

    fn read_once<'a>(&'a self, name: &'a ElectionName) -> Fut<'a, Result<Option<Vec<u8>>, StoreError>> {
        Box::pin(once::read(&self.shared.register, name))
    }

    fn checkup<'a>(&'a self, probing: Probing<'a>) -> Fut<'a, Vec<Finding>> {
        Box::pin(self.shared.register.checkup(probing, &*self.shared.clock))
    }

    fn danger_discard<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Discarded, StoreError>> {
        Box::pin(self.shared.register.danger_discard(on))
    }

    #[cfg(unix)]
    fn crash_proof(&self, on: &ElectionName, who: &Candidate) -> Vec<std::os::fd::OwnedFd> {
        self.shared.register.crash_proof(on, who)
    }
}
