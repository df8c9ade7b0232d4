//! The store itself: a record for each election, compare-and-set, one count of all writes, and a past to fall back into.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bellwether_backend::{Note, Record, Write};
use bellwether_core::Epoch;

use crate::call::{RegisterAnswer, RegisterCall};
use crate::connection::Facts;
use crate::key::ElectionKey;

/// How many earlier states a rollback can choose from.
const PAST_MAX: usize = 48;

/// A record with its version, shared with everybody who is told of it.
pub type StoreState = Option<Arc<(Record, u64)>>;

/// What the candidates compete for.
#[derive(Debug)]
pub struct RegisterStore {
    /// By election.
    records: Vec<StoreState>,
    notes: BTreeMap<(ElectionKey, Note), (Vec<u8>, u64)>,
    past: VecDeque<EarlierState>,
    facts: Arc<Facts>,
    /// How often each record was deleted: a create that left before a deletion does not count after it.
    deletions: Vec<u32>,
}

/// What there was before a write.
#[derive(Debug)]
struct EarlierState {
    key: ElectionKey,
    state: StoreState,
    sequence: u64,
}

/// A write that the store took.
#[derive(Debug)]
pub struct Commit {
    /// What was there before.
    pub before: StoreState,
    /// What is there now.
    pub after: Arc<(Record, u64)>,
}

impl RegisterStore {
    /// An empty one.
    pub fn new(elections: usize) -> RegisterStore {
        RegisterStore {
            records: vec![None; elections],
            notes: BTreeMap::new(),
            past: VecDeque::new(),
            facts: Arc::default(),
            deletions: vec![0; elections],
        }
    }

    /// The record as it is.
    pub fn record(&self, key: ElectionKey) -> &StoreState {
        &self.records[key.0]
    }

    /// The state so many writes to that record ago, if that is remembered.
    pub fn past(&self, key: ElectionKey, writes: usize) -> Option<&StoreState> {
        let of = self.past.iter().rev().filter(|past| past.key == key);
        of.map(|past| &past.state).nth(writes)
    }

    /// What can be known without asking.
    pub fn facts(&self) -> Arc<Facts> {
        Arc::clone(&self.facts)
    }

    /// How many writes it has taken, as far as it remembers: every epoch that it issued since is above.
    pub fn count(&self) -> Epoch {
        Epoch::new(self.facts.sequence.load(Ordering::Relaxed)).unwrap_or(Epoch::MAX)
    }

    /// How often that record was deleted.
    pub fn deletions(&self, key: ElectionKey) -> u32 {
        self.deletions[key.0]
    }

    /// Does what is asked.
    pub fn apply(&mut self, key: ElectionKey, ask: &RegisterCall) -> (RegisterAnswer, Option<Commit>) {
        match ask {
            RegisterCall::Load => (RegisterAnswer::Loaded(Ok(self.record(key).as_deref().cloned())), None),
            RegisterCall::Write { at, record } => {
                if self.record(key).as_ref().map(|found| found.1) != *at {
                    return (RegisterAnswer::Written(Write::Conflict), None);
                }
                let sequence = self.facts.sequence.load(Ordering::Relaxed);
                let version = self.next();
                let after = Arc::new(((**record).clone(), version));
                let before = self.records[key.0].replace(Arc::clone(&after));
                self.past.push_back(EarlierState { key, state: before.clone(), sequence });
                if self.past.len() > PAST_MAX * self.records.len() {
                    self.past.pop_front();
                }
                (RegisterAnswer::Written(Write::Done(version)), Some(Commit { before, after }))
            }
            RegisterCall::ReadNote(note) => {
                let found = self.notes.get(&(key, note.clone())).cloned();
                (RegisterAnswer::NoteRead(Ok(found)), None)
            }
            RegisterCall::WriteNote(note, at, bytes) => {
                let place = (key, note.clone());
                if self.notes.get(&place).map(|(_, version)| *version) != *at {
                    return (RegisterAnswer::Written(Write::Conflict), None);
                }
                let version = self.next();
                self.notes.insert(place, (bytes.clone(), version));
                (RegisterAnswer::Written(Write::Done(version)), None)
            }
        }
    }

    /// Forgets a record. What was there.
    pub fn delete(&mut self, key: ElectionKey) -> StoreState {
        self.deletions[key.0] += 1;
        self.records[key.0].take()
    }

    /// Goes back by so many writes, as far as they are remembered, whichever records they were to. With its count, versions and epochs
    /// come a second time, as in a store that was restored from a backup. What was there of each election.
    pub fn roll_back(&mut self, writes: usize, with_count: bool) -> Vec<StoreState> {
        let before = self.records.clone();
        for _ in 0..writes {
            let Some(past) = self.past.pop_back() else { break };
            self.records[past.key.0] = past.state;
            if with_count {
                self.facts.sequence.store(past.sequence, Ordering::Relaxed);
            }
        }
        before
    }

    fn next(&mut self) -> u64 {
        self.facts.sequence.fetch_add(1, Ordering::Relaxed) + 1
    }
}
