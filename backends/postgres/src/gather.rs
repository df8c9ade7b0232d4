//! What many elections ask at once is asked in one statement.
//!
//! ```text
//!  nothing under way ──▶ First: asks for itself, at once ─┐ done
//!  something under way ──▶ Later ──────────────────────────┴▶ all that wait, in one statement ──▶ again, until none waits
//!  in no hurry ──────────▶ Later, after a moment in which others join
//!  expected with others ─▶ Later, as soon as all of them are there
//! ```
//!
//! So one candidate alone pays nothing for it, a thousand that hear of one leader's death share two statements, and those that
//! only try as the net share one every moment. Every asker hears: of its own row, or of the failure of all.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bellwether_backend::Fut;
use tokio::sync::{Notify, oneshot};
use tokio_postgres::Row;

use crate::errors::{Failure, unavailable};

/// Most askers of one statement.
const TOGETHER_MAX: usize = 1_000;

/// How long those who are expected are waited for: a machine that needs longer is not held up any more by asking twice.
const EXPECTED_WITHIN: Duration = Duration::from_millis(10);

/// Asks for all of them: a row each, in their order.
pub(crate) type AskAll<Ask> = Arc<dyn Fn(Vec<Ask>) -> Fut<'static, Result<Vec<Row>, Failure>> + Send + Sync>;

/// Those who wait for one kind of question.
pub(crate) struct Gather<Ask>(Arc<Shared<Ask>>);

struct Shared<Ask> {
    queue: Mutex<Queue<Ask>>,
    hurry: Notify,
}

struct Queue<Ask> {
    waiting: Vec<(Ask, oneshot::Sender<Result<Row, Failure>>)>,
    busy: bool,
    /// How many more are about to ask. Forgotten with the next statement: who does not come after all holds up nobody twice.
    expected: usize,
}

impl<Ask> Queue<Ask> {
    /// One of those who are expected, maybe: how long it waits for the others.
    fn arrived(&mut self, pause: Option<Duration>) -> Option<Duration> {
        if self.expected == 0 {
            return pause;
        }
        self.expected -= 1;
        if self.expected == 0 {
            return None;
        }
        Some(pause.unwrap_or(EXPECTED_WITHIN))
    }
}

impl<Ask> Default for Gather<Ask> {
    fn default() -> Gather<Ask> {
        let queue = Mutex::new(Queue { waiting: Vec::new(), busy: false, expected: 0 });
        Gather(Arc::new(Shared { queue, hurry: Notify::new() }))
    }
}

impl<Ask: Send + 'static> Gather<Ask> {
    /// So many are about to ask, and one statement is to do for all.
    pub(crate) fn expect(&self, count: usize) {
        self.0.queue().expected = if count > 1 { count } else { 0 };
    }

    /// Asks by `alone` if nothing is under way, else with the others. With a `pause`, others may join for so long.
    pub(crate) async fn ask(
        &self,
        ask: Ask,
        pause: Option<Duration>,
        all: AskAll<Ask>,
        alone: impl Future<Output = Result<Row, Failure>>,
    ) -> Result<Row, Failure> {
        let (sender, answer) = oneshot::channel();
        let (first, pause) = {
            let mut queue = self.0.queue();
            let pause = queue.arrived(pause);
            let first = !std::mem::replace(&mut queue.busy, true);
            if !first || pause.is_some() {
                queue.waiting.push((ask, sender));
            }
            (first, pause)
        };
        match (first, pause) {
            (true, None) => {
                // Whatever becomes of it, those who came meanwhile are seen to.
                let _next = Next { shared: Arc::clone(&self.0), all };
                return alone.await;
            }
            (true, Some(pause)) => {
                let shared = Arc::clone(&self.0);
                tokio::spawn(async move {
                    let _ = tokio::time::timeout(pause, shared.hurry.notified()).await;
                    shared.go_on(all).await;
                });
            }
            (false, None) => self.0.hurry.notify_one(),
            (false, Some(_)) => {}
        }
        answer.await.unwrap_or_else(|_| Err(Failure::Over(unavailable("a statement ended in a panic"))))
    }
}

impl<Ask: Send + 'static> Shared<Ask> {
    async fn go_on(&self, all: AskAll<Ask>) {
        loop {
            let (asks, answers): (Vec<_>, Vec<_>) = {
                let mut queue = self.queue();
                if queue.waiting.is_empty() {
                    queue.busy = false;
                    return;
                }
                queue.expected = 0;
                let count = queue.waiting.len().min(TOGETHER_MAX);
                queue.waiting.drain(..count).unzip()
            };
            let count = asks.len();
            match all(asks).await {
                Ok(rows) if rows.len() == count => {
                    for (row, answer) in rows.into_iter().zip(answers) {
                        let _ = answer.send(Ok(row));
                    }
                }
                Ok(_) => answers.into_iter().for_each(|answer| {
                    let failure = Failure::Said(unavailable("the server answered with too few rows"));
                    let _ = answer.send(Err(failure));
                }),
                Err(failure) => answers.into_iter().for_each(|answer| {
                    let _ = answer.send(Err(failure.clone()));
                }),
            }
        }
    }
}

impl<Ask> Shared<Ask> {
    fn queue(&self) -> MutexGuard<'_, Queue<Ask>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sees to those who came while the first asked alone.
struct Next<Ask: Send + 'static> {
    shared: Arc<Shared<Ask>>,
    all: AskAll<Ask>,
}

impl<Ask: Send + 'static> Drop for Next<Ask> {
    fn drop(&mut self) {
        let mut queue = self.shared.queue();
        if queue.waiting.is_empty() {
            queue.busy = false;
            return;
        }
        drop(queue);
        let (shared, all) = (Arc::clone(&self.shared), Arc::clone(&self.all));
        tokio::spawn(async move { shared.go_on(all).await });
    }
}
