//! Reads of the store for people: one at a time, however many ask.
//!
//! The store is read in the process's own runtime, where its connections live, and by one task. Whoever asks while a read is under way gets
//! the answer of the next: an answer is never older than its question. A read is never dropped, since a store counts on that; one who
//! asked stops waiting instead.

use std::sync::Arc;

use bellwether_election::{ElectionName, Error, Store, past_json, record_json, status_json};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use crate::limits::{ELECTIONS_MAX, STORE_PAUSE, STORE_TIMEOUT};

/// What the store says, or why it says nothing.
pub(crate) type Answer = Result<Arc<Value>, String>;

/// Asks one question of the store, for any number of people.
pub(crate) struct StoreRead {
    asked: mpsc::Sender<oneshot::Sender<Answer>>,
}

/// An answer, and how many reads of the store it took.
pub(crate) type Read = (Answer, u32);

/// Those who wait to be taken note of; the others wait for that.
const WAITING: usize = 256;

impl StoreRead {
    /// The record and who follows, as the command `status` prints it.
    pub(crate) fn record(runtime: &Handle, store: Store, on: ElectionName) -> StoreRead {
        StoreRead::new(runtime, move || {
            let (store, on) = (store.clone(), on.clone());
            Box::pin(async move { (record(&store, &on).await, 1) })
        })
    }

    /// Past leaderships, as the command `history` prints them.
    pub(crate) fn history(runtime: &Handle, store: Store, on: ElectionName) -> StoreRead {
        StoreRead::new(runtime, move || {
            let (store, on) = (store.clone(), on.clone());
            Box::pin(async move { (history(&store, &on).await, 1) })
        })
    }

    /// The records of the first elections that the store lists, and how many there are.
    pub(crate) fn elections(runtime: &Handle, store: Store) -> StoreRead {
        StoreRead::new(runtime, move || {
            let store = store.clone();
            Box::pin(async move { elections(&store).await })
        })
    }

    /// What `read` answers.
    pub(crate) fn new(
        runtime: &Handle,
        read: impl Fn() -> BoxFuture<'static, Read> + Send + 'static,
    ) -> StoreRead {
        let (asked, mut asking) = mpsc::channel::<oneshot::Sender<Answer>>(WAITING);
        runtime.spawn(async move {
            let mut waiting = Vec::new();
            while asking.recv_many(&mut waiting, WAITING).await > 0 {
                waiting.retain(|one| !one.is_closed());
                if waiting.is_empty() {
                    continue;
                }
                let (answer, reads) = read().await;
                waiting.drain(..).for_each(|one| drop(one.send(answer.clone())));
                tokio::time::sleep(STORE_PAUSE * reads).await;
            }
        });
        StoreRead { asked }
    }

    /// Asks, and waits for a while.
    pub(crate) async fn ask(&self) -> Answer {
        let answered = async {
            let (reply, answer) = oneshot::channel();
            self.asked.send(reply).await.ok()?;
            answer.await.ok()
        };
        match tokio::time::timeout(STORE_TIMEOUT, answered).await {
            Ok(Some(answer)) => answer,
            Ok(None) => Err("this process is ending".to_owned()),
            Err(_) => Err(format!("the store did not answer within {STORE_TIMEOUT:?}")),
        }
    }
}

async fn record(store: &Store, on: &ElectionName) -> Answer {
    let seen = store.observe(on).await.map_err(|error| error.to_string())?;
    // That followers cannot be listed is as if the store did not know them.
    let followers = store.followers(on).await.unwrap_or_default();
    Ok(Arc::new(status_json(on, seen.seen(), followers.as_ref())))
}

async fn history(store: &Store, on: &ElectionName) -> Answer {
    let all = store.history(on).await.map_err(|error| error.to_string())?;
    Ok(Arc::new(all.iter().map(past_json).collect()))
}

async fn elections(store: &Store) -> Read {
    let mut reads = 1;
    let mut look = async || {
        let mut names = store.elections().await?;
        names.sort();
        let mut records = Vec::new();
        for on in names.iter().take(ELECTIONS_MAX) {
            reads += 1;
            records.push(record_json(on, store.observe(on).await?.seen()));
        }
        Ok(Arc::new(json!({ "count": names.len(), "elections": records })))
    };
    let looked: Result<_, Error> = look().await;
    (looked.map_err(|error| error.to_string()), reads)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bellwether_core::Clock;
    use bellwether_deadman::SystemClock;

    use super::*;

    #[tokio::test]
    async fn any_number_of_questions_is_a_few_reads() {
        let reads = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&reads);
        let read = StoreRead::new(&Handle::current(), move || {
            let count = counted.fetch_add(1, Ordering::Relaxed) + 1;
            Box::pin(async move { (Ok(Arc::new(Value::from(count))), 1) })
        });
        let answers = futures_util::future::join_all((0..200).map(|_| read.ask())).await;
        assert!(answers.iter().all(Result::is_ok));
        assert!(reads.load(Ordering::Relaxed) <= 2, "{reads:?}");
        let before = reads.load(Ordering::Relaxed);
        assert_eq!(
            read.ask().await.unwrap().as_u64(),
            Some(before as u64 + 1),
            "no answer is older than its question"
        );
    }

    #[tokio::test]
    async fn an_answer_that_took_many_reads_keeps_the_next_waiting_for_as_many_pauses() {
        let read = StoreRead::new(&Handle::current(), || Box::pin(async { (Ok(Arc::default()), 4) }));
        let before = SystemClock.boot();
        for _ in 0..2 {
            read.ask().await.unwrap();
        }
        assert!(SystemClock.boot().since(before) >= STORE_PAUSE * 4);
    }
}
