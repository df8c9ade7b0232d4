//! The testing matrix of the profile `leader`: clocks that are wrong and runtimes that do not run.

use std::sync::Arc;
use std::time::Duration;

use crate::support::other::Other;
use crate::support::stage::{Judge, LEASE, candidate, leads, options, soon};
use crate::support::{KEY, leaders, server_for_leaders};
use bellwether_core::{Boot, Clock, Wall};
use bellwether_deadman::{SystemClock, boot_now};
use bellwether_election::Election;
use bellwether_nats::from_url;
use bellwether_support::servers::nats::Version;
use tokio::sync::oneshot;

/// A machine whose wall clock is wrong by this many hours.
struct Wrong(i64);

impl Clock for Wrong {
    fn boot(&self) -> Boot {
        SystemClock.boot()
    }

    fn wall(&self) -> Wall {
        Wall::from_unix_nanos(SystemClock.wall().as_unix_nanos() + self.0 * 3_600_000_000_000)
    }
}

#[tokio::test]
async fn wall_clocks_that_are_an_hour_apart_depose_nobody_and_block_nobody() {
    tokio::join!(apart(1, -1), apart(-1, 1));
}

async fn apart(leader: i64, follower: i64) {
    let server = server_for_leaders(Version::Current, 2 * LEASE).await;
    let judge = Judge::default();
    let stand = |id: &str, hours: i64| {
        let backend = from_url(&leaders(server.port()), Arc::new(Wrong(hours))).unwrap();
        Election::builder(KEY).backend(backend).id(id).options(options())
    };
    let a = judge.start(stand("a", leader).release_on_stop(false)).await;
    let first = leads(&a).await;
    let b = judge.start(stand("b", follower)).await;
    let written =
        Other::new(&server, "x").await.get().await.value.expect("a record")["bellwether"]["renewTime"]
            .clone();
    let written = Wall::parse(written.as_str().expect("a time")).expect("a time").as_unix_nanos();
    let skew = (written - SystemClock.wall().as_unix_nanos()) / 1_000_000_000;
    assert!((skew - leader * 3_600).abs() < 60, "the clock that was to be wrong is not: {skew} s");
    tokio::time::sleep(LEASE + LEASE / 2).await;
    assert!(first.is_valid() && !b.is_leader(), "deposed by a clock");
    let end = first.deadline();
    // As if it had crashed.
    soon(a.stop()).await.unwrap();
    let stopped = boot_now();
    let second = leads(&b).await;
    assert!(boot_now() > end && second.epoch() > first.epoch());
    assert!(boot_now().since(stopped) < LEASE + Duration::from_secs(5), "blocked by a clock");
    judge.verdict();
}

/// A runtime of its own, in which a candidate leads and which is then kept from running at all.
fn starved_leader(
    url: String,
    ready: oneshot::Sender<Election>,
    starve: oneshot::Receiver<()>,
    span: Duration,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let election = candidate(&url, "starved").start().await.unwrap();
        leads(&election).await;
        assert!(ready.send(election.clone()).is_ok(), "nobody waits for it");
        starve.await.unwrap();
        // The only thread there is: no renewal, no timer, no event.
        std::thread::sleep(span);
        soon(election.wait_until(|status| status.leader.as_ref().is_some_and(|id| id.as_str() == "b")))
            .await
            .unwrap();
        soon(election.stop()).await.unwrap();
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_whose_runtime_does_not_run_is_no_leader_past_its_deadline() {
    let server = server_for_leaders(Version::Current, LEASE).await;
    let url = leaders(server.port());
    let judge = Judge::default();
    let (ready, told) = oneshot::channel();
    let (starve, starved) = oneshot::channel();
    let its_url = url.clone();
    let thread = std::thread::spawn(move || starved_leader(its_url, ready, starved, 2 * LEASE));
    let a = soon(told).await.unwrap();
    let first = a.leadership().expect("it leads");
    let b = judge.start(candidate(&url, "b")).await;
    soon(b.wait_until(|status| status.leader.is_some())).await.unwrap();
    starve.send(()).unwrap();
    // Whenever `b` leads, `a` does not: asked in this order, so that a handover in between cannot look like one at once.
    let mut last_led = boot_now();
    soon(async {
        loop {
            let b_leads = b.is_leader();
            if a.is_leader() {
                last_led = boot_now();
                assert!(!b_leads, "two lead at once");
            }
            if b_leads {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    assert!(!first.is_valid() && last_led < boot_now());
    assert!(b.leadership().expect("it leads").epoch() > first.epoch());
    soon(tokio::task::spawn_blocking(move || thread.join().unwrap())).await.unwrap();
    assert!(b.is_leader(), "what the starved one did on waking did no harm");
    judge.verdict();
}

#[tokio::test]
async fn a_short_pause_delays_a_renewal_and_no_more() {
    let server = server_for_leaders(Version::Current, LEASE).await;
    let judge = Judge::default();
    let a = judge.start(candidate(&leaders(server.port()), "a")).await;
    let first = leads(&a).await;
    for _ in 0..3 {
        std::thread::sleep(LEASE / 5);
        let before = a.status().last_success;
        soon(a.wait_until(|status| status.last_success > before)).await.unwrap();
    }
    assert!(first.is_valid());
    assert_eq!(judge.verdict(), 1);
}
