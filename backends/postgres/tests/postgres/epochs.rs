//! Epochs only go up: through crashes of the server, restarts and promotions, several times; and what two primaries mean.

use std::time::Duration;

use bellwether_core::Epoch;
use bellwether_deadman::boot_now;
use bellwether_support::PATIENCE;
use bellwether_support::servers::postgres::Server;

use crate::support::actor;

const TTL: Duration = Duration::from_millis(1_000);
/// For what takes as long as this test's own statements.
const PATIENT: Duration = Duration::from_secs(5);

/// Three leaderships by somebody who remembers nothing, each released; the last epoch.
async fn some(server: &Server, mut last: Epoch) -> Epoch {
    for _ in 0..3 {
        let a = actor(&server.url(), "a", TTL);
        let (grant, _) = a.lead_within(PATIENCE).await;
        assert!(grant.epoch > last, "{:?} after {last:?}", grant.epoch);
        last = grant.epoch;
        a.let_go(&grant).await;
    }
    last
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn epochs_go_up_through_crash_restart_and_promotion() {
    let mut server = Server::start(TTL).await;
    let mut last = some(&server, Epoch::ZERO).await;
    for round in 0..2 {
        // kill −9 of the first process, a crash of all, an ordinary restart.
        for signal in ["KILL", "QUIT", "INT"] {
            let a = actor(&server.url(), "a", TTL);
            let (held, _) = a.lead_within(PATIENCE).await;
            assert!(held.epoch > last, "{:?} after {last:?}", held.epoch);
            server.down(signal);
            server.up().await;
            last = some(&server, held.epoch).await;
        }
        // kill −9 of one process of the server makes it start all others anew.
        let a = actor(&server.url(), "a", TTL);
        let (held, _) = a.lead_within(PATIENCE).await;
        let holder =
            "SELECT pid::int8 FROM pg_stat_activity WHERE application_name LIKE 'bellwether/a lock %'";
        server.kill(i32::try_from(server.number(holder).await).unwrap());
        last = some(&server, held.epoch).await;
        // Promotion, with the old primary stopped.
        let replica = server.replica().await;
        server.down("INT");
        replica.admin().await.execute("SELECT pg_promote()", &[]).await.unwrap();
        server = replica;
        last = some(&server, last).await;
        assert_eq!(last.get() >> 40, round + 2, "the timeline is above the transaction id");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_of_the_first_server_process_makes_nobody_lead_within_the_ttl() {
    let mut server = Server::start(TTL).await;
    let (a, b) = (actor(&server.url(), "a", TTL), actor(&server.url(), "b", TTL));
    let first = a.lead().await;
    b.denied().await;
    let first = a.keep(&first).await;
    server.down("KILL");
    server.up().await;
    let up = boot_now();
    let (second, at) = b.lead_within(PATIENCE).await;
    assert!(at >= first.counted_from + TTL, "b led {:?} too early", (first.counted_from + TTL).since(at));
    assert!(second.epoch > first.epoch);
    println!("led {:?} after the server was back, at a ttl of {TTL:?}", at.since(up));
}

/// What GUARANTEES.md says cannot be avoided, and that the epoch is higher then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_primary_that_is_left_running_keeps_its_leader_and_the_new_one_s_epoch_is_higher() {
    let server = Server::start(TTL).await;
    let replica = server.replica().await;
    let (a, b) = (actor(&server.url(), "a", TTL), actor(&replica.url(), "b", TTL));
    let first = a.lead().await;
    replica.admin().await.execute("SELECT pg_promote()", &[]).await.unwrap();
    let (second, _) = b.lead_within(PATIENCE).await;
    // Both servers grant; only who is written to can tell, by the epoch.
    let still = a.claim().await;
    let bellwether_core::Outcome::Done(again) = still else { panic!("{still:?}") };
    assert!(second.epoch > first.epoch && second.epoch > again.epoch, "{second:?} against {again:?}");
}

/// How many claims wait until they are durable, with the presence that was asked for meanwhile.
const CLAIMING: &str = "SELECT count(*) FROM pg_stat_activity a, pg_locks p JOIN pg_stat_activity b ON b.pid = p.pid \
     WHERE a.wait_event = 'SyncRep' AND a.application_name LIKE 'bellwether% lock%' \
     AND b.application_name LIKE 'bellwether/a presence' AND p.mode = 'ShareLock' AND p.classid::int8 <> 1113017410";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_shown_to_lead_before_its_epoch_is_durable() {
    let server = Server::start(PATIENT).await;
    let (a, b) = (actor(&server.url(), "a", PATIENT), actor(&server.url(), "b", PATIENT));
    b.seen().await;
    // Commits wait for a standby that there is not.
    let admin = server.admin().await;
    let waits_for = async |standby: &str| {
        admin
            .batch_execute(&format!("ALTER SYSTEM SET synchronous_standby_names = '{standby}'"))
            .await
            .unwrap();
        admin.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    };
    waits_for("nobody").await;
    let looking = async {
        server.until(CLAIMING, |claims| claims == 1).await;
        let seen = b.seen().await;
        assert!(seen.leader().is_none() || seen.epoch.is_some(), "a leader without an epoch: {seen:?}");
        waits_for("").await;
    };
    let (grant, ()) = tokio::join!(a.lead(), looking);
    let seen = b.seen().await;
    assert_eq!((seen.leader(), seen.epoch), (Some(&a.bid.who.id), Some(grant.epoch)));
}
