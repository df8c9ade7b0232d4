//! The thread that writes `raft.redb`.
//!
//! Operations are queued in order, and committed in order. Whatever waits in the queue when the thread gets to it goes into one commit, so
//! that many appends share one fsync; the async runtime never waits for the disk. Nobody hears "done" before the fsync.
//!
//! ```text
//!   append ─┐                                   ┌─▶ done
//!   vote ───┼─▶ queue ─▶ one commit, one fsync ─┼─▶ done
//!   append ─┘                                   └─▶ done
//! ```
//!
//! The committed index is worth no fsync of its own: a lower one is safe. It goes to disk with the next commit, and at the end.
//!
//! A long purge is done in steps, one with each commit, so that appends do not wait for all of it. What is left of it after a crash stays
//! in the log until the next purge.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvError, Sender, TryRecvError, channel};
use std::thread;

use openraft::storage::IOFlushed;
use tokio::sync::oneshot;

use super::failure::Failure;
use super::log_file::{Edit, Head, LogFile};
use super::types::{LogId, Types, Vote};
use crate::error::ClusterError;

/// A commit gathers at most this many bytes: enough to make the fsync cheap per entry, and little enough that the first operation in it
/// is not kept waiting for the last.
const COMMIT_MAX_BYTES: usize = 8 << 20;

/// What the thread can do.
pub(super) enum Operation {
    /// Stores sealed entries. `last` is the last index then.
    Append { edits: Vec<Edit>, last: Option<u64>, done: IOFlushed<Types> },
    /// Stores a vote.
    Vote { vote: Vote, done: Done },
    /// Notes what is committed.
    Committed(Option<LogId>),
    /// Removes the entries from `from` on. `last` is what remains as the last index.
    Cut { from: u64, last: Option<u64>, done: Done },
    /// Removes the entries up to `upto`. `last` is what remains as the last index.
    Purge { upto: LogId, last: Option<u64>, done: Done },
    /// Removes the entries up to the last of these, in these steps, when there is time. There are entries after them.
    PurgeLater(VecDeque<LogId>),
    /// Ends the thread and closes the file. With `orderly`, everything noted is on disk.
    Close { orderly: bool, done: Done },
}

type Done = oneshot::Sender<io::Result<()>>;

/// The way to the thread.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    queue: Sender<Operation>,
    failure: Failure,
}

impl Writer {
    pub(super) fn start(file: LogFile, head: Head, failure: Failure) -> Result<Writer, ClusterError> {
        let (queue, operations) = channel();
        let state = State { file, head, failure: failure.clone(), is_noted: false, purges: VecDeque::new() };
        let spawned =
            thread::Builder::new().name("raft-log".to_owned()).spawn(move || state.run(&operations));
        spawned.map_err(|error| {
            ClusterError::storage(format!("cannot start the thread that writes the log: {error}"))
        })?;
        Ok(Writer { queue, failure })
    }

    pub(super) fn send(&self, operation: Operation) -> io::Result<()> {
        // The file is closed after a failure too: whoever starts the node again in this process finds it free.
        if !matches!(operation, Operation::Close { .. }) {
            self.failure.check()?;
        }
        self.queue.send(operation).map_err(|_| io::Error::other("the engine was shut down"))
    }

    /// Sends an operation, and waits until it is on disk.
    pub(super) async fn run(&self, operation: impl FnOnce(Done) -> Operation) -> io::Result<()> {
        let (done, wait) = oneshot::channel();
        self.send(operation(done))?;
        wait.await.unwrap_or_else(|_| Err(io::Error::other("the engine was shut down")))
    }
}

struct State {
    file: LogFile,
    /// What is on disk, or will be with the next commit.
    head: Head,
    failure: Failure,
    /// Whether the head has a committed index that is not on disk yet.
    is_noted: bool,
    /// The steps of purges that are left.
    purges: VecDeque<LogId>,
}

/// What one commit does, and who hears of it.
#[derive(Default)]
struct Batch {
    edits: Vec<Edit>,
    bytes: usize,
    appended: Vec<IOFlushed<Types>>,
    waiting: Vec<Done>,
    close: Option<(bool, Done)>,
}

impl State {
    fn run(mut self, operations: &Receiver<Operation>) {
        // Whoever holds no engine any more has asked for nothing more: a closed queue is the end too.
        while let Ok(first) = self.next(operations) {
            let mut batch = Batch::default();
            if let Some(first) = first {
                self.take(first, &mut batch);
            }
            while batch.has_room() {
                match operations.try_recv() {
                    Ok(next) => self.take(next, &mut batch),
                    Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
                }
            }
            self.purge(&mut batch);
            let result = self.commit(&batch);
            batch.appended.into_iter().for_each(|done| done.io_completed(again(&result)));
            batch.waiting.into_iter().for_each(|done| drop(done.send(again(&result))));
            if let Some((_, done)) = batch.close {
                drop(self.file);
                let _ = done.send(result);
                return;
            }
        }
    }

    /// Waits for the next operation, unless there is something left to do without one.
    fn next(&self, operations: &Receiver<Operation>) -> Result<Option<Operation>, RecvError> {
        if self.purges.is_empty() {
            return operations.recv().map(Some);
        }
        match operations.try_recv() {
            Ok(operation) => Ok(Some(operation)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(RecvError),
        }
    }

    /// Adds the next step of a purge to a commit, and all steps to the last one.
    fn purge(&mut self, batch: &mut Batch) {
        let step = match batch.close {
            None => self.purges.pop_front(),
            Some((orderly, _)) => self.purges.drain(..).next_back().filter(|_| orderly),
        };
        if let Some(step) = step.filter(|step| self.head.purged.as_ref() < Some(step)) {
            batch.edits.push(Edit::Purge(step.index));
            self.head.purged = Some(step);
        }
    }

    fn take(&mut self, operation: Operation, batch: &mut Batch) {
        match operation {
            Operation::Append { edits, last, done } => {
                batch.bytes += edits.iter().map(Edit::bytes).sum::<usize>();
                batch.edits.extend(edits);
                self.head.last = last;
                batch.appended.push(done);
            }
            Operation::Vote { vote, done } => {
                self.head.vote = Some(vote);
                batch.waiting.push(done);
            }
            Operation::Committed(id) => {
                self.head.committed = id;
                self.is_noted = true;
            }
            Operation::Cut { from, last, done } => {
                batch.edits.push(Edit::Cut(from));
                self.head.last = last;
                batch.waiting.push(done);
            }
            Operation::Purge { upto, last, done } => {
                batch.edits.push(Edit::Purge(upto.index));
                self.head.purged = Some(upto);
                self.head.last = last;
                batch.waiting.push(done);
            }
            Operation::PurgeLater(steps) => self.purges.extend(steps),
            Operation::Close { orderly, done } => batch.close = Some((orderly, done)),
        }
    }

    fn commit(&mut self, batch: &Batch) -> io::Result<()> {
        self.failure.check()?;
        let is_asked = !batch.appended.is_empty() || !batch.waiting.is_empty() || !batch.edits.is_empty();
        let is_end = self.is_noted && matches!(batch.close, Some((true, _)));
        if !is_asked && !is_end {
            return Ok(());
        }
        self.is_noted = false;
        let (file, head) = (&self.file, &self.head);
        // A database that finds its own file damaged may panic. Whoever waits has to hear of that too.
        let committed = catch_unwind(AssertUnwindSafe(|| file.commit(&batch.edits, head)));
        let why = match committed {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the database panicked".to_owned(),
        };
        Err(self.failure.note(&format!(
            "cannot write {}: {why}; mend the disk or make room on it, then start the node again",
            file.path().display()
        )))
    }
}

impl Batch {
    fn has_room(&self) -> bool {
        self.close.is_none() && self.bytes < COMMIT_MAX_BYTES
    }
}

fn again(result: &io::Result<()>) -> io::Result<()> {
    match result {
        Ok(()) => Ok(()),
        Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
    }
}
