//! Combines questions that many ask at once into one statement.
//!
//! ```text
//!  nothing under way ────▶ asks for itself, at once ─────────────────────────┐ done
//!  something under way ──▶ waits ──▶ whoever comes next asks for all that wait ◀┘
//!  in no hurry ──────────▶ waits for a moment in which others join
//!  expected with others ─▶ waits until all of them are there
//! ```
//!
//! So one asker alone pays nothing for it, a thousand that hear of one leader's death share two statements, and those that
//! only try in case they missed something share one every moment. Every asker gets its own answer, or the failure of all.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bellwether_core::{ErrorKind, StoreError};
use tokio::sync::{MutexGuard, oneshot};

use crate::Fut;
use crate::session::SessionFailure;

/// The most questions in one statement.
const TOGETHER_MAX: usize = 1_000;

/// How long those who are expected are waited for: a machine that needs longer is not held up any more by asking twice.
const EXPECTED_WITHIN: Duration = Duration::from_millis(10);

/// Those who wait for one kind of question.
pub(crate) struct Coalesce<Ask, Answer> {
    asking: tokio::sync::Mutex<()>,
    queue: Mutex<Waiters<Ask, Answer>>,
}

type Asker<Answer> = oneshot::Sender<Result<Answer, SessionFailure>>;

struct Waiters<Ask, Answer> {
    waiting: Vec<(Ask, Asker<Answer>)>,
    /// How many more are about to ask. Forgotten with the next statement: who does not come after all holds up nobody twice.
    expected: usize,
}

impl<Ask, Answer> Waiters<Ask, Answer> {
    /// One of those who are expected, maybe: how long it waits for the others.
    fn arrived(&mut self, pause: Option<Duration>) -> Option<Duration> {
        if self.expected == 0 {
            return pause;
        }
        self.expected -= 1;
        (self.expected > 0).then(|| pause.unwrap_or(EXPECTED_WITHIN))
    }
}

/// How an asker begins.
enum Entered<'a, Answer> {
    /// Nothing else is under way.
    Alone(MutexGuard<'a, ()>),
    /// With the others, at the latest after this pause.
    Waits(Option<Duration>, oneshot::Receiver<Result<Answer, SessionFailure>>),
}

impl<Ask, Answer> Default for Coalesce<Ask, Answer> {
    fn default() -> Coalesce<Ask, Answer> {
        Coalesce {
            asking: tokio::sync::Mutex::default(),
            queue: Mutex::new(Waiters { waiting: Vec::new(), expected: 0 }),
        }
    }
}

impl<Ask, Answer> Coalesce<Ask, Answer> {
    /// Announces that `count` callers are about to ask, so that one statement answers all.
    pub(crate) fn expect(&self, count: usize) {
        self.queue().expected = if count > 1 { count } else { 0 };
    }

    /// Asks by `alone` if nothing is under way and nobody else waits, else with the others by `all`, which answers in the order of what it
    /// is asked. With a `pause`, others may join until it ends; `wait` sleeps for it.
    pub(crate) async fn ask<'a, Wait: Future<Output = ()>>(
        &self,
        ask: Ask,
        pause: Option<Duration>,
        wait: impl FnOnce(Duration) -> Wait,
        all: impl Fn(Vec<Ask>) -> Fut<'a, Result<Vec<Answer>, SessionFailure>>,
        alone: impl Future<Output = Result<Answer, SessionFailure>>,
    ) -> Result<Answer, SessionFailure> {
        let (pause, mut answer) = match self.enter(ask, pause) {
            Entered::Alone(_turn) => return alone.await,
            Entered::Waits(pause, answer) => (pause, answer),
        };
        if let Some(pause) = pause {
            tokio::select! {
                biased;
                answer = &mut answer => return answered(answer),
                () = wait(pause) => {}
            }
        }
        loop {
            let turn = tokio::select! {
                biased;
                answer = &mut answer => return answered(answer),
                turn = self.asking.lock() => turn,
            };
            let (asks, askers) = self.take_waiting();
            if !asks.is_empty() {
                tell(askers, all(asks).await);
            }
            drop(turn);
        }
    }

    fn enter(&self, ask: Ask, pause: Option<Duration>) -> Entered<'_, Answer> {
        let mut queue = self.queue();
        let pause = queue.arrived(pause);
        if pause.is_none()
            && queue.waiting.is_empty()
            && let Ok(turn) = self.asking.try_lock()
        {
            return Entered::Alone(turn);
        }
        let (sender, answer) = oneshot::channel();
        queue.waiting.push((ask, sender));
        Entered::Waits(pause, answer)
    }

    /// Those who wait, as many as one statement takes.
    fn take_waiting(&self) -> (Vec<Ask>, Vec<Asker<Answer>>) {
        let mut queue = self.queue();
        queue.expected = 0;
        let count = queue.waiting.len().min(TOGETHER_MAX);
        queue.waiting.drain(..count).unzip()
    }

    fn queue(&self) -> std::sync::MutexGuard<'_, Waiters<Ask, Answer>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives every asker its own answer.
fn tell<Answer>(askers: Vec<Asker<Answer>>, said: Result<Vec<Answer>, SessionFailure>) {
    let said = said.and_then(|said| match said.len() == askers.len() {
        true => Ok(said),
        false => Err(SessionFailure::Said(internal("the server answered with too few rows"))),
    });
    match said {
        Ok(said) => askers.into_iter().zip(said).for_each(|(asker, answer)| {
            let _ = asker.send(Ok(answer));
        }),
        Err(failure) => askers.into_iter().for_each(|asker| {
            let _ = asker.send(Err(failure.clone()));
        }),
    }
}

fn answered<Answer>(
    answer: Result<Result<Answer, SessionFailure>, oneshot::error::RecvError>,
) -> Result<Answer, SessionFailure> {
    answer.unwrap_or_else(|_| {
        Err(SessionFailure::Over(internal("whoever asked for all ended before it was answered")))
    })
}

fn internal(sentence: &str) -> StoreError {
    StoreError::new(ErrorKind::Unavailable, "session", sentence)
}
