//! A lease that outlives the runtime in which it was driven: who followed elections there follows none any more.

use std::sync::Arc;

use bellwether_backend::{Backend, MemoryStore, Record};
use bellwether_core::ElectionName;
use bellwether_deadman::SystemClock;
use futures_util::StreamExt;

#[tokio::test]
async fn what_was_followed_in_the_old_runtime_is_followed_by_nobody_in_the_new_one() {
    let store = MemoryStore::default();
    let [first, second] = ["first", "second"].map(|name| ElectionName::new(name).unwrap());
    let lease = store.connect(Arc::new(SystemClock));
    lease.follow(&first);
    lease.change_runtime().unwrap();
    // One follower comes and goes. The one of before does not keep the news coming.
    lease.follow(&first);
    lease.unfollow(&first);
    lease.follow(&second);
    let mut news = lease.signals();
    store.put(&first, Record::default());
    store.put(&second, Record::default());
    assert_eq!(news.next().await.unwrap().election, Some(second));
}
