//! Reads of the store for people: one at a time, however many ask.
//!
//! The store is read in the process's own runtime, where its connections live, and by one task. Whoever asks while a read is under way gets
//! the answer of the next: an answer is never older than its question. A read is never dropped, since a store counts on that; one who
//! asked stops waiting instead.

use std::sync::Arc;

use bellwether_election::{ElectionName, Store, past_json, status_json};
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use crate::limits::{STORE_PAUSE, STORE_TIMEOUT};

/// What the store says, or why it says nothing.
pub(crate) type Answer = Result<Arc<Value>, String>;

/// Asks one question of the store, for any number of people.
pub(crate) struct StoreRead {
    asked: mpsc::Sender<oneshot::Sender<Answer>>,
}

/// Those who wait to be taken note of; the others wait for that.
const WAITING: usize = 256;

impl StoreRead {
    /// The record and who follows, as the command `status` prints it.
    pub(crate) fn record(runtime: &Handle, store: Store, on: ElectionName) -> StoreRead {
        StoreRead::new(runtime, move || {
            let (store, on) = (store.clone(), on.clone());
            Box::pin(async move {
                let seen = store.observe(&on).await.map_err(|error| error.to_string())?;
                // That followers cannot be listed is as if the store did not know them.
                let followers = store.followers(&on).await.unwrap_or_default();
                Ok(Arc::new(status_json(&on, seen.seen(), followers.as_ref())))
            })
        })
    }

    /// Past leaderships, as the command `history` prints them.
    pub(crate) fn history(runtime: &Handle, store: Store, on: ElectionName) -> StoreRead {
        StoreRead::new(runtime, move || {
            let (store, on) = (store.clone(), on.clone());
            Box::pin(async move {
                let all = store.history(&on).await.map_err(|error| error.to_string())?;
                Ok(Arc::new(all.iter().map(past_json).collect()))
            })
        })
    }

    /// What `read` answers.
    pub(crate) fn new(
        runtime: &Handle,
        read: impl Fn() -> BoxFuture<'static, Answer> + Send + 'static,
    ) -> StoreRead {
        let (asked, mut asking) = mpsc::channel::<oneshot::Sender<Answer>>(WAITING);
        runtime.spawn(async move {
            let mut waiting = Vec::new();
            while asking.recv_many(&mut waiting, WAITING).await > 0 {
                waiting.retain(|one| !one.is_closed());
                if waiting.is_empty() {
                    continue;
                }
                let answer = read().await;
                waiting.drain(..).for_each(|one| drop(one.send(answer.clone())));
                tokio::time::sleep(STORE_PAUSE).await;
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn any_number_of_questions_is_a_few_reads() {
        let reads = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&reads);
        let read = StoreRead::new(&Handle::current(), move || {
            let count = counted.fetch_add(1, Ordering::Relaxed) + 1;
            Box::pin(async move { Ok(Arc::new(Value::from(count))) })
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
}
