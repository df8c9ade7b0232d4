//! A cluster that stops and goes on from its disks.

use std::time::Duration;

use bellwether_backend::{Backend, Creation};
use bellwether_core::{Outcome, ReleaseOptions};

use crate::stage::{Stage, bid, election, lead};

const TTL: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn epochs_history_and_notes_outlive_all_nodes() {
    let mut stage = Stage::start().await;
    let on = election("outlives");
    let mut last = None;
    for _ in 0..2 {
        let a = stage.client();
        let bid = bid("a", TTL);
        let grant = lead(&a, &on, &bid).await;
        assert!(last.is_none_or(|last| grant.epoch > last), "{:?} followed {last:?}", grant.epoch);
        last = Some(grant.epoch);
        let released = a.release(&on, &grant, &ReleaseOptions::default()).await;
        assert!(matches!(released, Outcome::Done(())), "{released:?}");
        let created = a.create_once(&on, b"first").await;
        assert!(matches!(created, Creation::Created | Creation::Exists(_)), "{created:?}");
        for number in 0..3 {
            stage.kill(number).await;
        }
        stage.start_missing().await;
    }
    let a = stage.client();
    assert_eq!(a.read_once(&on).await.unwrap().as_deref(), Some(&b"first"[..]));
    assert_eq!(a.observe(&on).await.unwrap().epoch, last);
}
