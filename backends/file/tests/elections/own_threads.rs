//! A process that keeps every blocking thread of its runtime busy.

use std::sync::mpsc;
use std::time::Duration;

use bellwether_election::{Election, Standing};
use bellwether_file::open;
use bellwether_support::{PATIENCE, Scratch, clock};

#[test]
fn a_leader_whose_work_keeps_all_blocking_threads_of_the_runtime_busy_goes_on_renewing() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let scratch = Scratch::new();
    let (end, ended) = mpsc::channel::<()>();
    runtime.block_on(async {
        let backend = open(scratch.path(), clock()).unwrap();
        let builder = Election::builder("reports").backend(backend).id("a").ttl(Duration::from_secs(3));
        let election = builder.start().await.unwrap();
        let leadership = election.wait_for_leadership().await.unwrap();
        let ended = std::sync::Arc::new(std::sync::Mutex::new(ended));
        for _ in 0..2 {
            let ended = std::sync::Arc::clone(&ended);
            tokio::task::spawn_blocking(move || {
                let _ = ended.lock().unwrap().recv();
            });
        }
        let mut standing = leadership.standing();
        // Longer than one lease lasts.
        for _ in 0..5 {
            let Standing::Until(_) = standing.now() else { panic!("the leadership ended: {leadership:?}") };
            tokio::time::timeout(PATIENCE, standing.changed()).await.expect("renewed, or over");
        }
        assert!(leadership.is_valid());
        drop(end);
    });
}
