//! A leader of ours that steps down leaves candidates of others the time that they need.

use std::time::Duration;

use bellwether_deadman::boot_now;
use bellwether_election::Election;
use bellwether_nats::from_url;
use bellwether_support::servers::nats::{Server, Version};
use bellwether_support::{clock, until};
use futures_util::future::join_all;

use crate::support::other::Other;
use crate::support::stage::{LEASE, leads, options, soon};
use crate::support::{leaders, server_for_leaders};

const STEP_DOWNS: usize = 20;
/// The longest that a candidate of others was seen to wait after a release.
const THEIR_WAIT: Duration = Duration::from_millis(550);
/// A candidate of others that was held up for longer than this stands for nobody: the machine was too busy to tell.
const TOO_LATE: Duration = Duration::from_millis(1_200);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_step_down_a_candidate_of_others_leads_every_time() {
    let server = server_for_leaders(Version::Current, LEASE).await;
    // Each under a key of its own, all at once: one key would take a ttl for every round.
    let keys: Vec<String> = (0..STEP_DOWNS).map(|number| format!("job-{number}")).collect();
    let rounds = join_all(keys.iter().map(|key| step_down(&server, key))).await;
    let told = rounds.iter().flatten().count();
    assert!(told >= STEP_DOWNS / 2, "only {told} of {STEP_DOWNS} were in time to tell");
    let led = rounds.iter().flatten().filter(|led| **led).count();
    assert_eq!(led, told, "ours was back before the other candidate in the rest");
}

/// Whether the other candidate led then; `None` when it came too late to tell.
async fn step_down(server: &Server, key: &str) -> Option<bool> {
    let other = Other::on(server, "other", key).await;
    let backend = from_url(&leaders(server.port()), clock()).unwrap();
    let ours = Election::builder(key).backend(backend).id("ours").options(options()).start();
    let ours = soon(ours).await.expect("a candidate starts");
    leads(&ours).await;
    ours.step_down().await.expect("it leads");
    let free = boot_now();
    until(|| async { other.get().await.value.is_none().then_some(()).ok_or("the key is still there") }).await;
    tokio::time::sleep(THEIR_WAIT).await;
    let led = other.create().await.is_some();
    (boot_now().since(free) < TOO_LATE).then_some(led)
}
