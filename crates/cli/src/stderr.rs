//! Everything that `bellwether` writes to stderr.
//!
//! A thread of its own writes, in the order in which [`write`] was called, so that a pipe that nobody reads and a terminal that is
//! held (Ctrl-S) delay no renewal and no end. What does not fit into the queue is dropped, and the log says how much once stderr
//! takes something again. Nothing here fails: a candidate whose stderr is full or closed does its work in silence.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

/// How much may wait: hours of log lines at the default level.
const WAITING_MAX_BYTES: usize = 1 << 20;

/// How long a stderr that is stuck may hold up the end.
const LAST_LINES: Duration = Duration::from_millis(500);

/// Where lines wait, once there is a thread that writes them.
static QUEUE: OnceLock<Arc<StderrQueue>> = OnceLock::new();

/// From now on, [`write`] does not wait for stderr. If no thread can be started, it goes on waiting.
pub(crate) fn start() {
    let queue = Arc::new(StderrQueue::new(WAITING_MAX_BYTES));
    let writing = Arc::clone(&queue);
    let report = |count| tracing::warn!("{count} lines of the log were dropped: stderr was full");
    let thread = thread::Builder::new().name("stderr".to_owned());
    if thread.spawn(move || writing.write_to(&mut io::stderr(), report)).is_ok() {
        let _ = QUEUE.set(queue);
    }
}

/// Writes this in one piece.
pub(crate) fn write(text: impl Into<Vec<u8>>) {
    match QUEUE.get() {
        Some(queue) => queue.push(text.into()),
        // There is nowhere left to say that it failed.
        None => drop(io::stderr().write_all(&text.into())),
    }
}

/// Writes a last sentence after all that waits, unless stderr is stuck.
pub(crate) fn end(sentence: Option<String>) {
    let last = sentence.map(|sentence| format!("bellwether: {sentence}\n").into_bytes());
    match (QUEUE.get(), last) {
        (Some(queue), last) => queue.end(last, LAST_LINES),
        (None, Some(last)) => write(last),
        (None, None) => {}
    }
}

/// Pieces of text between those who have something to say and the thread that writes.
struct StderrQueue {
    max_bytes: usize,
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct QueueState {
    waiting: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Until all that waits is written, so that what is missing is missing in one place, where the log says so.
    is_full: bool,
    /// How many pieces were dropped or could not be written, since the log last said so.
    missing: u64,
    is_writing: bool,
}

impl StderrQueue {
    fn new(max_bytes: usize) -> StderrQueue {
        StderrQueue { max_bytes, state: Mutex::default(), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, piece: Vec<u8>) {
        let mut state = self.state();
        state.is_full |= state.bytes >= self.max_bytes;
        if state.is_full {
            state.missing += 1;
            return;
        }
        state.bytes += piece.len();
        state.waiting.push_back(piece);
        self.changed.notify_all();
    }

    /// Adds the last piece, however full it is, and waits until all is written, or until the limit.
    fn end(&self, last: Option<Vec<u8>>, limit: Duration) {
        let mut state = self.state();
        state.waiting.extend(last);
        self.changed.notify_all();
        let pending = |state: &mut QueueState| !state.waiting.is_empty() || state.is_writing;
        drop(self.changed.wait_timeout_while(state, limit, pending));
    }

    /// Writes for ever; `report` hears how many pieces are missing, once something could be written again.
    fn write_to(&self, out: &mut impl Write, report: impl Fn(u64)) {
        loop {
            let piece = self.next();
            let result = out.write_all(&piece).and_then(|()| out.flush());
            let missing = self.written(result);
            if missing > 0 {
                report(missing);
            }
        }
    }

    fn next(&self) -> Vec<u8> {
        let mut state = self.state();
        loop {
            if let Some(piece) = state.waiting.pop_front() {
                state.bytes = state.bytes.saturating_sub(piece.len());
                state.is_writing = true;
                return piece;
            }
            state.is_writing = false;
            self.changed.notify_all();
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// How many pieces are missing, if this is the time to say so.
    fn written(&self, result: io::Result<()>) -> u64 {
        let mut state = self.state();
        state.is_full &= !state.waiting.is_empty();
        match result {
            Err(_) => state.missing += 1,
            Ok(()) if state.waiting.is_empty() => return mem::take(&mut state.missing),
            Ok(()) => {}
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// Takes a piece, says so, and waits until it may go on.
    struct Stuck {
        taken: Sender<String>,
        go_on: Receiver<io::Result<()>>,
    }

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.taken.send(String::from_utf8_lossy(bytes).into_owned());
            self.go_on.recv().unwrap_or(Ok(())).map(|()| bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A queue of four bytes that is written to a [`Stuck`]; what is missing is reported as `-N`.
    fn stuck() -> (Arc<StderrQueue>, Receiver<String>, Sender<io::Result<()>>) {
        let queue = Arc::new(StderrQueue::new(4));
        let ((taken, pieces), (going_on, go_on)) = (channel(), channel());
        let (writing, reported) = (Arc::clone(&queue), Arc::clone(&queue));
        let mut out = Stuck { taken, go_on };
        thread::spawn(move || {
            writing.write_to(&mut out, |count| reported.push(format!("-{count}").into_bytes()));
        });
        (queue, pieces, going_on)
    }

    fn push(queue: &StderrQueue, pieces: &[&str]) {
        pieces.iter().for_each(|piece| queue.push(piece.as_bytes().to_vec()));
    }

    fn take(pieces: &Receiver<String>) -> String {
        pieces.recv_timeout(Duration::from_secs(60)).expect("a piece in time")
    }

    #[test]
    fn what_does_not_fit_is_dropped_in_one_place_and_counted_there() {
        let (queue, pieces, go_on) = stuck();
        push(&queue, &["a"]);
        assert_eq!(take(&pieces), "a");
        push(&queue, &["bb", "cc", "dd", "ee"]);
        go_on.send(Ok(())).expect("the thread is there");
        assert_eq!(take(&pieces), "bb");
        // There is room, and it would come before those that are missing were told of.
        push(&queue, &["ff"]);
        go_on.send(Ok(())).expect("the thread is there");
        assert_eq!(take(&pieces), "cc");
        go_on.send(Ok(())).expect("the thread is there");
        assert_eq!(take(&pieces), "-3");
        push(&queue, &["gg"]);
        go_on.send(Ok(())).expect("the thread is there");
        assert_eq!(take(&pieces), "gg");
    }

    #[test]
    fn what_cannot_be_written_is_counted_when_something_can_again() {
        let (queue, pieces, go_on) = stuck();
        for (piece, result) in [("a", Err(io::ErrorKind::StorageFull.into())), ("b", Ok(()))] {
            push(&queue, &[piece]);
            assert_eq!(take(&pieces), piece);
            go_on.send(result).expect("the thread is there");
        }
        assert_eq!(take(&pieces), "-1");
    }

    #[test]
    fn the_end_comes_after_all_that_waits_however_full_it_is() {
        let (queue, pieces, go_on) = stuck();
        push(&queue, &["a", "bbbb", "cc"]);
        for _ in 0..4 {
            go_on.send(Ok(())).expect("the thread is there");
        }
        queue.end(Some(b"last".to_vec()), Duration::from_secs(60));
        let all: Vec<String> = pieces.try_iter().collect();
        assert!(all.starts_with(&["a".to_owned(), "bbbb".to_owned()]), "{all:?}");
        assert!(all.contains(&"last".to_owned()), "{all:?}");
    }

    #[test]
    fn the_end_does_not_wait_for_ever() {
        let (queue, pieces, _go_on) = stuck();
        push(&queue, &["a"]);
        assert_eq!(take(&pieces), "a");
        queue.end(Some(b"last".to_vec()), Duration::from_millis(1));
        assert!(pieces.try_recv().is_err(), "it is stuck");
    }
}
