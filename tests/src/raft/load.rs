//! Writes all the time, each under a name of its own, and what became of each.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bellwether_core::Boot;
use bellwether_deadman::boot_now;

use super::{Client, Outcome};
use crate::PATIENCE;

/// Between two writes, so that a long test has hundreds of them and not thousands.
const PAUSE: Duration = Duration::from_millis(10);

/// A thread that writes until it is told to stop.
pub struct Load {
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct State {
    record: Mutex<Record>,
    acknowledged: Condvar,
    ends: AtomicBool,
}

/// What became of each write, in their order.
#[derive(Clone, Debug, Default)]
pub struct Record {
    /// What the names begin with, of this load alone.
    prefix: String,
    /// The instant before each was sent, and what the client was told.
    writes: Vec<(Boot, Outcome)>,
}

impl Load {
    /// Writes with the client that `lend` hands to it, on the thread that it does so on.
    pub fn start(lend: impl FnOnce(&(dyn Fn(&Client) + Sync)) + Send + 'static) -> Load {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let state = Arc::new(State::default());
        state.lock().prefix = format!("load{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let writing = Arc::clone(&state);
        let thread = thread::spawn(move || {
            lend(&|client| {
                while !writing.ends.load(Ordering::Relaxed) {
                    writing.write(client);
                    thread::sleep(PAUSE);
                }
            });
        });
        Load { state, thread: Some(thread) }
    }

    /// Waits until a write is acknowledged that was sent after this call: the cluster works.
    #[track_caller]
    pub fn goes_on(&self) {
        let (begin, mut record) = (boot_now(), self.state.lock());
        loop {
            if record.writes.iter().rev().any(|(sent, outcome)| *sent >= begin && outcome.is_done()) {
                return;
            }
            let left = (begin + PATIENCE).since(boot_now());
            assert!(!left.is_zero(), "no write is acknowledged any more; the last ones: {}", record.tail());
            let woken = self.state.acknowledged.wait_timeout(record, left);
            record = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Ends it.
    pub fn end(mut self) -> Record {
        self.stop();
        self.state.lock().clone()
    }

    fn stop(&mut self) {
        self.state.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking(), "the client failed");
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop();
    }
}

impl State {
    fn write(&self, client: &Client) {
        let (name, text) = {
            let record = self.lock();
            record.written(record.writes.len())
        };
        let sent = boot_now();
        let outcome = client.write(&name, &text);
        self.lock().writes.push((sent, outcome));
        self.acknowledged.notify_all();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Record {
    /// The name and the text of one write.
    fn written(&self, number: usize) -> (String, String) {
        (format!("{}-{number}", self.prefix), format!("text-{number}"))
    }

    /// How many were acknowledged.
    pub fn acknowledged(&self) -> usize {
        self.writes.iter().filter(|(_, outcome)| outcome.is_done()).count()
    }

    /// The longest time without an acknowledgement.
    pub fn longest_pause(&self) -> Duration {
        let done: Vec<Boot> =
            self.writes.iter().filter(|(_, outcome)| outcome.is_done()).map(|(sent, _)| *sent).collect();
        done.windows(2).map(|pair| pair[1].since(pair[0])).max().unwrap_or_default()
    }

    /// Checks that everything acknowledged is there and nothing refused is, and that the log has only grown: two clusters, or one that
    /// forgot, would acknowledge two writes as the same entry, or a later one as an earlier entry.
    #[track_caller]
    pub fn check(&self, client: &Client) {
        let mut last = 0;
        for (number, (_, outcome)) in self.writes.iter().enumerate() {
            let (name, text) = self.written(number);
            let expected = match outcome {
                Outcome::Written { index } | Outcome::Done { index, .. } => {
                    assert!(*index > last, "{name} was acknowledged as entry {index}, after entry {last}");
                    last = *index;
                    Some(text)
                }
                Outcome::Refused(_) => None,
                Outcome::Unknown(_) => continue,
            };
            let found = match client.read(&name) {
                Outcome::Done { before, .. } => before,
                other => panic!("{name} cannot be read: {other:?}"),
            };
            assert_eq!(found, expected, "{name}: its write was {outcome:?}");
        }
    }

    fn tail(&self) -> String {
        format!("{:?}", &self.writes[self.writes.len().saturating_sub(3)..])
    }
}
