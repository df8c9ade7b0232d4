//! Combines questions that many ask at once into one call.
//!
//! ```text
//!  nothing under way ────▶ asks for itself, at once ─────────────────────────┐ done
//!  something under way ──▶ waits ──▶ whoever comes next asks for all that wait ◀┘
//!  in no hurry ──────────▶ waits for a moment in which others join
//!  expected with others ─▶ waits until all of them are there
//! ```

use std::sync::Mutex;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::lock;

/// The most questions in one call.
const TOGETHER_MAX: usize = 1_000;

/// How long those who are expected are waited for: a machine that needs longer is not held up any more by asking twice.
const EXPECTED_WITHIN: Duration = Duration::from_millis(10);

/// Combines questions of one kind that many ask at once into one call, for a store whose calls take lists.
///
/// One asker alone pays nothing for it, a thousand that hear of one leader's death share two calls, and those that only try in
/// case they missed something share one every moment. Every asker gets its own answer, or the failure of the whole call.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// use bellwether_backend::{Coalesce, Unanswered};
///
/// let squares = Coalesce::<u64, u64, Unanswered>::default();
/// // Answers in the order of what it is asked.
/// let call = |all: Vec<u64>| async move { Ok(all.iter().map(|number| number * number).collect()) };
/// let ask = |number| squares.ask(number, None, tokio::time::sleep, call);
/// let (two, three, four) = tokio::join!(ask(2), ask(3), ask(4));
/// assert_eq!((two, three, four), (Ok(4), Ok(9), Ok(16)));
/// # });
/// ```
pub struct Coalesce<Ask, Answer, Failure> {
    asking: tokio::sync::Mutex<()>,
    queue: Mutex<Waiters<Ask, Answer, Failure>>,
}

/// Why a call that succeeded, or never ended, left a question open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// It gave another number of answers than it was asked for.
    Miscounted,
    /// Whoever asked for all was dropped before the call ended.
    Abandoned,
}

type Asker<Answer, Failure> = oneshot::Sender<Result<Answer, Failure>>;

struct Waiters<Ask, Answer, Failure> {
    waiting: Vec<(Ask, Asker<Answer, Failure>)>,
    /// How many more are about to ask. Forgotten with the next call, so that one who never asks delays one call only.
    expected: usize,
}

impl<Ask, Answer, Failure> Default for Coalesce<Ask, Answer, Failure> {
    fn default() -> Coalesce<Ask, Answer, Failure> {
        let queue = Mutex::new(Waiters { waiting: Vec::new(), expected: 0 });
        Coalesce { asking: tokio::sync::Mutex::default(), queue }
    }
}

impl<Ask, Answer, Failure: Clone + From<Unanswered>> Coalesce<Ask, Answer, Failure> {
    /// Announces that `count` callers are about to ask, so that one call answers all.
    pub fn expect(&self, count: usize) {
        lock(&self.queue).expected = if count > 1 { count } else { 0 };
    }

    /// Asks at once if nothing is under way and nobody else waits, else with the others. `call` answers in the order of what it is
    /// asked. With a `pause`, others may join until it ends; `wait` sleeps for it.
    ///
    /// # Errors
    /// The failure of the call, or [`Unanswered`].
    pub async fn ask<Wait, Call>(
        &self,
        ask: Ask,
        pause: Option<Duration>,
        wait: impl FnOnce(Duration) -> Wait,
        call: impl Fn(Vec<Ask>) -> Call,
    ) -> Result<Answer, Failure>
    where
        Wait: Future<Output = ()>,
        Call: Future<Output = Result<Vec<Answer>, Failure>>,
    {
        let (sender, mut answer) = oneshot::channel();
        let (pause, mut turn) = self.enter(ask, sender, pause);
        if let Some(pause) = pause {
            tokio::select! {
                biased;
                answer = &mut answer => return answered(answer),
                () = wait(pause) => {}
            }
        }
        loop {
            let _turn = match turn.take() {
                Some(turn) => turn,
                None => tokio::select! {
                    biased;
                    answer = &mut answer => return answered(answer),
                    turn = self.asking.lock() => turn,
                },
            };
            let (asks, askers) = self.take_waiting();
            if !asks.is_empty() {
                tell(askers, call(asks).await);
            }
        }
    }

    /// Joins those who wait. Returns how long to wait for more, and the turn if it can be taken at once.
    fn enter(
        &self,
        ask: Ask,
        asker: Asker<Answer, Failure>,
        pause: Option<Duration>,
    ) -> (Option<Duration>, Option<tokio::sync::MutexGuard<'_, ()>>) {
        let mut queue = lock(&self.queue);
        let pause = match queue.expected {
            0 => pause,
            1 => None,
            _ => pause.or(Some(EXPECTED_WITHIN)),
        };
        queue.expected = queue.expected.saturating_sub(1);
        let is_first = queue.waiting.is_empty();
        queue.waiting.push((ask, asker));
        let turn = if pause.is_none() && is_first { self.asking.try_lock().ok() } else { None };
        (pause, turn)
    }

    /// Those who wait, as many as one call takes.
    fn take_waiting(&self) -> (Vec<Ask>, Vec<Asker<Answer, Failure>>) {
        let mut queue = lock(&self.queue);
        queue.expected = 0;
        let count = queue.waiting.len().min(TOGETHER_MAX);
        queue.waiting.drain(..count).unzip()
    }
}

/// Gives every asker its own answer.
fn tell<Answer, Failure: Clone + From<Unanswered>>(
    askers: Vec<Asker<Answer, Failure>>,
    said: Result<Vec<Answer>, Failure>,
) {
    let answers = match said {
        Ok(answers) if answers.len() == askers.len() => Ok(answers),
        Ok(_) => Err(Failure::from(Unanswered::Miscounted)),
        Err(failure) => Err(failure),
    };
    // Who has gone meanwhile needs no answer.
    match answers {
        Ok(answers) => {
            askers.into_iter().zip(answers).for_each(|(asker, answer)| drop(asker.send(Ok(answer))))
        }
        Err(failure) => askers.into_iter().for_each(|asker| drop(asker.send(Err(failure.clone())))),
    }
}

fn answered<Answer, Failure: From<Unanswered>>(
    answer: Result<Result<Answer, Failure>, oneshot::error::RecvError>,
) -> Result<Answer, Failure> {
    answer.unwrap_or_else(|_| Err(Unanswered::Abandoned.into()))
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;

    use super::*;

    const CALL: Duration = Duration::from_millis(4);

    /// Doubles what it is asked, which takes a moment, and remembers how much it was asked at once.
    #[derive(Default)]
    struct Store {
        numbers: Coalesce<u32, u32, Unanswered>,
        sizes: Mutex<Vec<usize>>,
    }

    impl Store {
        async fn ask(&self, number: u32, pause: Option<Duration>) -> Result<u32, Unanswered> {
            let call = |all: Vec<u32>| async move {
                self.sizes.lock().unwrap().push(all.len());
                tokio::time::sleep(CALL).await;
                Ok(all.iter().map(|number| 2 * number).collect())
            };
            self.numbers.ask(number, pause, tokio::time::sleep, call).await
        }

        /// Asks all of them at once; how much was asked together.
        async fn ask_all(&self, count: u32, pause: Option<Duration>) -> Vec<usize> {
            let asking =
                (0..count).map(async |number| assert_eq!(self.ask(number, pause).await, Ok(2 * number)));
            join_all(asking).await;
            std::mem::take(&mut self.sizes.lock().unwrap())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_asks_at_once_and_those_who_come_meanwhile_ask_together() {
        assert_eq!(Store::default().ask_all(100, None).await, [1, 99]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_has_at_most_a_thousand_questions() {
        assert_eq!(Store::default().ask_all(2_500, None).await, [1, 1_000, 1_000, 499]);
    }

    #[tokio::test(start_paused = true)]
    async fn those_in_no_hurry_ask_together_after_their_pause() {
        let store = Store::default();
        assert_eq!(store.ask_all(10, Some(Duration::from_secs(1))).await, [10]);
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_are_expected_ask_together_and_one_that_does_not_come_holds_up_nobody_twice() {
        let store = Store::default();
        store.numbers.expect(10);
        assert_eq!(store.ask_all(10, None).await, [10]);
        store.numbers.expect(10);
        assert_eq!(store.ask_all(8, None).await, [8]);
        assert_eq!(store.ask_all(2, None).await, [1, 1], "nobody is expected any more");
    }

    #[tokio::test]
    async fn a_failure_is_everybodys_and_so_is_a_wrong_number_of_answers() {
        let numbers = Coalesce::<u32, u32, Unanswered>::default();
        for (said, expected) in [
            (Err(Unanswered::Abandoned), Unanswered::Abandoned),
            (Ok(vec![1, 2, 3]), Unanswered::Miscounted),
            (Ok(Vec::new()), Unanswered::Miscounted),
        ] {
            numbers.expect(2);
            let ask = || numbers.ask(1, None, tokio::time::sleep, |_| std::future::ready(said.clone()));
            assert_eq!(tokio::join!(ask(), ask()), (Err(expected), Err(expected)));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_asked_for_by_somebody_that_is_dropped_is_told_so() {
        let store = Store::default();
        let later = store.ask(2, Some(10 * CALL));
        tokio::pin!(later);
        tokio::select! {
            biased;
            _ = &mut later => unreachable!("it waits for ten calls"),
            _ = store.ask(1, None) => unreachable!("it takes a call"),
            () = tokio::time::sleep(CALL / 2) => {}
        }
        assert_eq!(*store.sizes.lock().unwrap(), [2], "the one that was dropped asked for both");
        assert_eq!(later.await, Err(Unanswered::Abandoned));
    }
}
