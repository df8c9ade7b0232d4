//! The log as openraft uses it: all of it in memory, and on disk through the [`Writer`].
//!
//! Memory runs ahead of the disk: an entry can be read, and sent to followers, while its fsync is under way. Only openraft's callback
//! counts as "on disk". Snapshots keep the log short, so that it fits.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use openraft::storage::{IOFlushed, LogState, RaftLogStorage};
use openraft::{EntryPayload, OptionalSend, RaftLogReader};

use super::log_file::{Head, put};
use super::types::{Command, Entry, LogId, Types, Vote};
use super::writer::{Operation, Writer};

/// The entries of one message have at most this many bytes, or there is only one: a frame with it stays far below what a connection takes.
const READ_MAX_BYTES: usize = 1 << 20;

/// So many entries are purged with one commit: a few milliseconds, for which appends wait.
const PURGE_STEP: usize = 500;

/// A handle on the log; clones are of the same log.
#[derive(Clone, Debug)]
pub(super) struct LogStore {
    memory: Arc<Mutex<Memory>>,
    writer: Writer,
}

/// What the log is once the writer has done everything in its queue.
#[derive(Debug)]
struct Memory {
    vote: Option<Vote>,
    committed: Option<LogId>,
    purged: Option<LogId>,
    /// The entries after the purged ones, without a hole.
    entries: VecDeque<Entry>,
}

impl LogStore {
    pub(super) fn new(head: &Head, entries: Vec<Entry>, writer: Writer) -> LogStore {
        let memory = Memory {
            vote: head.vote,
            committed: head.committed,
            purged: head.purged,
            entries: entries.into(),
        };
        LogStore { memory: Arc::new(Mutex::new(memory)), writer }
    }

    /// Whether anything was ever stored: a vote, or an entry.
    pub(super) fn is_used(&self) -> bool {
        let memory = self.memory();
        memory.vote.is_some() || memory.last().is_some()
    }

    /// Ends the writing and closes the file.
    pub(super) async fn close(&self) -> io::Result<()> {
        self.writer.run(|done| Operation::Close { orderly: true, done }).await
    }

    /// Ends the writing without waiting, and without what is only noted: as if the process had been killed.
    pub(super) fn abandon(&self) {
        let (done, _) = tokio::sync::oneshot::channel();
        let _ = self.writer.send(Operation::Close { orderly: false, done });
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Memory {
    /// The index of the first entry that is, or will be, in memory.
    fn first(&self) -> u64 {
        self.entries
            .front()
            .map_or_else(|| self.purged.as_ref().map_or(0, |id| id.index + 1), |entry| entry.log_id.index)
    }

    fn last(&self) -> Option<LogId> {
        self.entries.back().map(|entry| entry.log_id).or(self.purged)
    }

    fn last_entry(&self) -> Option<u64> {
        self.entries.back().map(|entry| entry.log_id.index)
    }

    fn append(&mut self, entry: Entry) -> io::Result<()> {
        // Followers and restarts trust that a log has no holes, so one is refused here and not found later.
        let last = self.last().map(|id| id.index);
        if last.is_some_and(|last| last + 1 != entry.log_id.index) {
            return Err(io::Error::other(format!(
                "entry {} cannot follow entry {last:?}",
                entry.log_id.index
            )));
        }
        self.entries.push_back(entry);
        Ok(())
    }

    fn cut(&mut self, from: u64) {
        let first = self.first();
        self.entries.truncate(usize::try_from(from.saturating_sub(first)).unwrap_or(usize::MAX));
    }

    /// Where to pause on the way to `upto`, which comes last.
    fn purge_steps(&self, upto: LogId) -> VecDeque<LogId> {
        let going = self.range(..upto.index).map(|entry| entry.log_id);
        going.skip(PURGE_STEP - 1).step_by(PURGE_STEP).chain([upto]).collect()
    }

    fn purge(&mut self, upto: LogId) {
        while self.entries.front().is_some_and(|entry| entry.log_id.index <= upto.index) {
            self.entries.pop_front();
        }
        self.purged = self.purged.max(Some(upto));
    }

    fn range(&self, range: impl RangeBounds<u64>) -> impl Iterator<Item = &Entry> {
        let first = self.first();
        let start = match range.start_bound() {
            Bound::Included(start) => *start,
            Bound::Excluded(before) => before + 1,
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(last) => last.saturating_add(1),
            Bound::Excluded(end) => *end,
            Bound::Unbounded => u64::MAX,
        };
        let place = |index: u64| {
            usize::try_from(index.saturating_sub(first)).unwrap_or(usize::MAX).min(self.entries.len())
        };
        self.entries.range(place(start)..place(end).max(place(start)))
    }
}

impl RaftLogReader<Types> for LogStore {
    async fn try_get_log_entries<RB>(&mut self, range: RB) -> io::Result<Vec<Entry>>
    where
        RB: RangeBounds<u64> + Clone + Debug + OptionalSend,
    {
        Ok(self.memory().range(range).cloned().collect())
    }

    async fn read_vote(&mut self) -> io::Result<Option<Vote>> {
        Ok(self.memory().vote)
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> io::Result<Vec<Entry>> {
        let mut bytes = 0;
        let fits = |entry: &&Entry| {
            let is_first = bytes == 0;
            bytes += size(entry);
            is_first || bytes <= READ_MAX_BYTES
        };
        Ok(self.memory().range(start..end).take_while(fits).cloned().collect())
    }
}

/// About what an entry adds to a message; never 0.
fn size(entry: &Entry) -> usize {
    const AROUND_IT: usize = 64;
    match &entry.payload {
        EntryPayload::Normal(Command::Apply(command)) => AROUND_IT + command.0.len(),
        EntryPayload::Normal(Command::Recovered(_)) | EntryPayload::Blank | EntryPayload::Membership(_) => {
            AROUND_IT
        }
    }
}

impl RaftLogStorage<Types> for LogStore {
    type LogReader = LogStore;

    async fn get_log_state(&mut self) -> io::Result<LogState<Types>> {
        let memory = self.memory();
        Ok(LogState { last_purged_log_id: memory.purged, last_log_id: memory.last() })
    }

    async fn get_log_reader(&mut self) -> LogStore {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> io::Result<()> {
        let vote = *vote;
        self.writer.run(|done| Operation::Vote { vote, done }).await?;
        self.memory().vote = Some(vote);
        Ok(())
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> io::Result<()> {
        self.memory().committed = committed;
        self.writer.send(Operation::Committed(committed))
    }

    async fn read_committed(&mut self) -> io::Result<Option<LogId>> {
        Ok(self.memory().committed)
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<Types>) -> io::Result<()>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut edits = Vec::new();
        let last = {
            let mut memory = self.memory();
            for entry in entries {
                edits.push(put(&entry)?);
                memory.append(entry)?;
            }
            memory.last_entry()
        };
        // Also without entries through the queue: the callback says that everything before it is on disk too.
        self.writer.send(Operation::Append { edits, last, done: callback })
    }

    async fn truncate_after(&mut self, last_log_id: Option<LogId>) -> io::Result<()> {
        let from = last_log_id.map_or(0, |id| id.index + 1);
        let last = {
            let mut memory = self.memory();
            memory.cut(from);
            memory.last_entry()
        };
        self.writer.run(|done| Operation::Cut { from, last, done }).await
    }

    async fn purge(&mut self, log_id: LogId) -> io::Result<()> {
        let (upto, last, steps) = {
            let mut memory = self.memory();
            let steps = memory.purge_steps(log_id);
            memory.purge(log_id);
            (memory.purged.unwrap_or(log_id), memory.last_entry(), steps)
        };
        // Entries that a snapshot includes do no harm on disk. Only where nothing is left must they go before anything is appended: there
        // would be a hole.
        if last.is_some() && steps.len() > 1 {
            return self.writer.send(Operation::PurgeLater(steps));
        }
        self.writer.run(|done| Operation::Purge { upto, last, done }).await
    }
}
