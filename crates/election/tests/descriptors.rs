//! A process with few file descriptors: leaderships leave them to their work.

mod common;

use std::fs::File;
use std::process::Command;

use bellwether_backend::MemoryStore;
use bellwether_election::{Election, Store};
use common::*;
use futures_util::future::join_all;

const LEADERS: usize = 600;
/// More than a test program needs, and far fewer than one for each leader.
const DESCRIPTORS: usize = 128;
const INSIDE: &str = "BELLWETHER_TEST_FEW_DESCRIPTORS";

#[test]
fn six_hundred_leaders_wait_for_their_deadlines_with_one_descriptor() {
    if std::env::var_os(INSIDE).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        return runtime.block_on(lead_and_open_files());
    }
    let name = "six_hundred_leaders_wait_for_their_deadlines_with_one_descriptor";
    let limited = format!("ulimit -n {DESCRIPTORS} && exec \"$0\" --exact {name} --nocapture");
    let program = std::env::current_exe().unwrap();
    let ended = Command::new("sh").args(["-c", &limited]).arg(program).env(INSIDE, "1").output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{said}");
}

async fn lead_and_open_files() {
    let store = Store::new(connect(&MemoryStore::default()));
    let leading = std::sync::Arc::new(tokio::sync::Barrier::new(LEADERS));
    let leaders = (0..LEADERS).map(|n| {
        let (store, leading) = (store.clone(), std::sync::Arc::clone(&leading));
        async move {
            let builder = Election::builder(format!("e{n}")).id("a").ttl(ms(60_000));
            let election = builder.backend(store).start().await.unwrap();
            election
                .lead(|_| async {
                    leading.wait().await;
                    // As much as the limit allows a program that has hardly anything open.
                    let files: std::io::Result<Vec<File>> =
                        (0..DESCRIPTORS / 2).map(|_| File::open("/dev/null")).collect();
                    files.map(drop)
                })
                .await
                .unwrap()
                .expect("the work has descriptors left to open files with");
        }
    });
    soon(join_all(leaders)).await;
}
