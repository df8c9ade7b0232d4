//! Threads of the store's own, for calls that wait for a disk.
//!
//! Not the runtime's: those are shared with whatever else the process does on them, and a leader must not lose its lease because its
//! own work keeps every one of them busy.
//!
//! Owns the threads and what waits for them. A thread is started when there is something to do and nobody idle, up to
//! [`THREADS_MAX`]; one that has had nothing to do for [`IDLE_MAX`] ends, and so do all when the store is dropped and
//! everything has been done. A call runs to its end whether or not anybody waits for its answer.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use bellwether_backend::lock;
use bellwether_core::{ErrorKind, StoreError};
use tokio::sync::oneshot;

use crate::errors::BACKEND;

/// Most disk calls at a time. Of thousands of elections that renew together, the others wait for their turn.
const THREADS_MAX: usize = 64;
const IDLE_MAX: Duration = Duration::from_secs(10);

type BlockingCall = Box<dyn FnOnce() + Send>;

#[derive(Default)]
pub(crate) struct Threads(Arc<Shared>);

#[derive(Default)]
struct Shared {
    queue: Mutex<CallQueue>,
    /// Somebody idle is wanted, or nobody is any more.
    wanted: Condvar,
}

#[derive(Default)]
struct CallQueue {
    calls: VecDeque<BlockingCall>,
    threads: usize,
    idle: usize,
    closed: bool,
}

impl Threads {
    /// Runs this on one of the threads.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        self.put(Box::new(move || {
            // Who asked may have gone.
            let _ = answer.send(catch_unwind(AssertUnwindSafe(work)));
        }))?;
        match answered.await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) | Err(_) => {
                Err(StoreError::new(ErrorKind::Bug, BACKEND, "the file backend panicked; please report it"))
            }
        }
    }

    fn put(&self, call: BlockingCall) -> Result<(), StoreError> {
        let mut queue = lock(&self.0.queue);
        if queue.idle < queue.calls.len() + 1 && queue.threads < THREADS_MAX {
            let shared = Arc::clone(&self.0);
            let thread = std::thread::Builder::new().name("bellwether-file".to_owned());
            match thread.spawn(move || shared.serve()) {
                Ok(_) => queue.threads += 1,
                // Those that are there will get round to it.
                Err(_) if queue.threads > 0 => {}
                Err(error) => {
                    let sentence = "no thread could be started: raise the limit on processes and threads";
                    return Err(StoreError::new(ErrorKind::Exhausted, BACKEND, sentence).caused_by(error));
                }
            }
        }
        queue.calls.push_back(call);
        drop(queue);
        self.0.wanted.notify_one();
        Ok(())
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        lock(&self.0.queue).closed = true;
        self.0.wanted.notify_all();
    }
}

impl Shared {
    /// The life of a thread.
    fn serve(&self) {
        let mut queue = lock(&self.queue);
        loop {
            if let Some(call) = queue.calls.pop_front() {
                drop(queue);
                call();
                queue = lock(&self.queue);
                continue;
            }
            if queue.closed {
                break;
            }
            queue.idle += 1;
            let (woken, waited) =
                self.wanted.wait_timeout(queue, IDLE_MAX).unwrap_or_else(PoisonError::into_inner);
            queue = woken;
            queue.idle -= 1;
            if waited.timed_out() && queue.calls.is_empty() {
                break;
            }
        }
        queue.threads -= 1;
    }
}

impl std::fmt::Debug for Threads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let queue = lock(&self.0.queue);
        write!(f, "Threads({} of {THREADS_MAX}, {} calls wait)", queue.threads, queue.calls.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[tokio::test]
    async fn calls_run_side_by_side_and_a_panic_is_an_error_and_no_more() {
        let threads = Threads::default();
        let both = Arc::new(Barrier::new(2));
        let meet = || {
            let both = Arc::clone(&both);
            threads.run(move || both.wait().is_leader())
        };
        let (one, two) = tokio::join!(meet(), meet());
        assert_ne!(one.unwrap(), two.unwrap());
        let error = threads.run::<()>(|| panic!("a planned panic")).await.expect_err("panicked");
        assert_eq!(error.kind(), ErrorKind::Bug);
        assert_eq!(threads.run(|| 7).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn threads_are_bounded_and_end_with_the_store() {
        let threads = Threads::default();
        let running = Arc::new(AtomicUsize::new(0));
        let calls = (0..10 * THREADS_MAX).map(|_| {
            let running = Arc::clone(&running);
            threads.run(move || {
                let now = running.fetch_add(1, Ordering::SeqCst) + 1;
                std::thread::yield_now();
                running.fetch_sub(1, Ordering::SeqCst);
                now
            })
        });
        let most = futures_util::future::join_all(calls).await.into_iter().map(Result::unwrap).max();
        assert!(most <= Some(THREADS_MAX) && lock(&threads.0.queue).threads <= THREADS_MAX);
        let shared = Arc::downgrade(&threads.0);
        drop(threads);
        bellwether_support::until_blocking(|| shared.upgrade().map_or(Ok(()), |_| Err("some still run")));
    }
}
