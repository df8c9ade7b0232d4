//! The store itself: one record, compare-and-set, a count of its writes, and a past to fall back into.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bellwether_backend::{Note, Record, Write};
use bellwether_core::Epoch;

use crate::call::{RegisterAnswer, RegisterCall};
use crate::connection::Facts;

/// How many earlier states a rollback can choose from.
const PAST_MAX: usize = 48;

/// A record with its version, shared with everybody who is told of it.
pub type StoreState = Option<Arc<(Record, u64)>>;

/// What the candidates compete for.
#[derive(Debug, Default)]
pub struct RegisterStore {
    record: StoreState,
    notes: BTreeMap<Note, (Vec<u8>, u64)>,
    past: VecDeque<EarlierState>,
    facts: Arc<Facts>,
    /// How often the record was deleted: a create that left before a deletion does not count after it.
    deletions: u32,
}

/// What there was before a write.
#[derive(Debug)]
struct EarlierState {
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
    /// The record as it is.
    pub fn record(&self) -> &StoreState {
        &self.record
    }

    /// The state so many writes ago, if that is remembered.
    pub fn past(&self, writes: usize) -> Option<&StoreState> {
        self.past.iter().rev().nth(writes).map(|past| &past.state)
    }

    /// What can be known without asking.
    pub fn facts(&self) -> Arc<Facts> {
        Arc::clone(&self.facts)
    }

    /// How many writes it has taken, as far as it remembers: every epoch that it issued since is above.
    pub fn count(&self) -> Epoch {
        Epoch::new(self.facts.sequence.load(Ordering::Relaxed)).unwrap_or(Epoch::MAX)
    }

    /// How often the record was deleted.
    pub fn deletions(&self) -> u32 {
        self.deletions
    }

    /// Does what is asked.
    pub fn apply(&mut self, ask: &RegisterCall) -> (RegisterAnswer, Option<Commit>) {
        match ask {
            RegisterCall::Load => (RegisterAnswer::Loaded(Ok(self.record.as_deref().cloned())), None),
            RegisterCall::Write { at, record } => {
                if self.record.as_ref().map(|found| found.1) != *at {
                    return (RegisterAnswer::Written(Write::Conflict), None);
                }
                let sequence = self.facts.sequence.load(Ordering::Relaxed);
                let version = self.next();
                let after = Arc::new(((**record).clone(), version));
                let before = self.record.replace(Arc::clone(&after));
                self.past.push_back(EarlierState { state: before.clone(), sequence });
                if self.past.len() > PAST_MAX {
                    self.past.pop_front();
                }
                (RegisterAnswer::Written(Write::Done(version)), Some(Commit { before, after }))
            }
            RegisterCall::ReadNote(note) => {
                (RegisterAnswer::NoteRead(Ok(self.notes.get(note).cloned())), None)
            }
            RegisterCall::WriteNote(note, at, bytes) => {
                if self.notes.get(note).map(|(_, version)| *version) != *at {
                    return (RegisterAnswer::Written(Write::Conflict), None);
                }
                let version = self.next();
                self.notes.insert(note.clone(), (bytes.clone(), version));
                (RegisterAnswer::Written(Write::Done(version)), None)
            }
        }
    }

    /// Forgets the record. What was there.
    pub fn delete(&mut self) -> StoreState {
        self.deletions += 1;
        self.record.take()
    }

    /// Goes back by so many writes, as far as they are remembered. With its count, versions and epochs come a second time,
    /// as in a store that was restored from a backup. What was there.
    pub fn roll_back(&mut self, writes: usize, with_count: bool) -> StoreState {
        let mut older = None;
        for _ in 0..writes {
            let Some(past) = self.past.pop_back() else { break };
            older = Some(past);
        }
        let Some(older) = older else { return self.record.clone() };
        if with_count {
            self.facts.sequence.store(older.sequence, Ordering::Relaxed);
        }
        std::mem::replace(&mut self.record, older.state)
    }

    fn next(&mut self) -> u64 {
        self.facts.sequence.fetch_add(1, Ordering::Relaxed) + 1
    }
}
