//! Leaders of ever later epochs race each other, and the server keeps every message: their order shows all.

use std::time::Duration;

use bellwether_core::Epoch;
use bellwether_fence::FenceError;
use bellwether_support::servers::nats::{Server, Version};
use futures_util::future::join_all;
use serde_json::json;

use crate::stage::{epoch, key, message, server};

const LEADERS: u64 = 4;
const WRITES: u64 = 60;

/// Counts up under an epoch of its own until it is fenced, and then under a later one. Returns how often it was fenced.
async fn lead_again_and_again(server: &Server, number: u64) -> u64 {
    let key = key(server);
    let (mut done, mut fenced) = (0, 0);
    let mut mine = epoch(LEADERS + number);
    while done < WRITES {
        match key.update(mine, |before| (count(before.as_deref()) + 1).to_string().into_bytes()).await {
            Ok(_) => done += 1,
            Err(FenceError::Fenced(by)) => {
                assert!(by.mine == mine && by.latest > mine, "{by:?}");
                fenced += 1;
                mine = next_of(number, by.latest);
            }
            Err(other) => panic!("{other}"),
        }
    }
    fenced
}

/// The first epoch above this one that is nobody else's.
fn next_of(number: u64, latest: Epoch) -> Epoch {
    let above = latest.get() + 1;
    epoch(above + (LEADERS + number - above % LEADERS) % LEADERS)
}

fn count(content: Option<&[u8]>) -> u64 {
    content.map_or(0, |bytes| std::str::from_utf8(bytes).unwrap().parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_history_of_a_key_never_goes_back_and_no_write_is_lost() {
    let server = server(Version::Current).await;
    let all = join_all((0..LEADERS).map(|number| lead_again_and_again(&server, number)));
    let fenced: u64 = tokio::time::timeout(Duration::from_secs(60), all).await.unwrap().iter().sum();
    let mut last = (0, 0);
    for sequence in 1..=LEADERS * WRITES {
        let (headers, payload) = message(&server, json!({ "seq": sequence })).await.unwrap();
        let line = headers.lines().find_map(|line| line.strip_prefix("Bellwether-Epoch: ")).unwrap();
        let now = (line.trim().parse::<u64>().unwrap(), count(Some(&payload)));
        assert!(now.0 >= last.0 && now.1 == last.1 + 1, "{now:?} after {last:?}");
        last = now;
    }
    assert!(message(&server, json!({ "seq": LEADERS * WRITES + 1 })).await.is_none());
    println!("{} writes, {fenced} fenced", LEADERS * WRITES);
    assert!(fenced > 0, "they never met");
}
