//! What frees a lock, and who leads then: never two, whatever ended the session.

use std::time::Duration;

use bellwether_backend::Backend;
use bellwether_core::{Bid, ErrorKind, Outcome, Proof, Signal};
use bellwether_deadman::boot_now;
use bellwether_election::{Election, Store};
use bellwether_postgres::{Keys, Postgres, from_url};
use bellwether_support::servers::postgres::Server;
use bellwether_support::{Actor, Child, PATIENCE, Stopped, clock, election, role};

use crate::support::{actor, noted, renew_for_ever, renewed};

const TTL: Duration = Duration::from_secs(1);

async fn two(server: &Server) -> (Actor<Postgres>, Actor<Postgres>) {
    (actor(&server.url(), "a", TTL), actor(&server.url(), "b", TTL))
}

/// The server's process that holds the election's lock.
async fn holder(server: &Server) -> i32 {
    let Keys(one, two) = Keys::of(&actor(&server.url(), "x", TTL).on);
    let sql = format!(
        "SELECT pid::int8 FROM pg_locks WHERE classid::int8 = {} AND objid::int8 = {} AND mode = 'ExclusiveLock'",
        one as u32, two as u32
    );
    i32::try_from(server.number(&sql).await).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminated_session_is_a_loss_at_once_and_its_taker_waits_for_the_work() {
    let server = Server::start(TTL).await;
    let (a, b) = two(&server).await;
    let (mut of_a, mut of_b) = (a.news(), b.news());
    let first = a.lead().await;
    assert_eq!(b.denied().await.leader(), Some(&a.bid.who.id));
    let terminated = boot_now();
    server.admin().await.execute("SELECT pg_terminate_backend($1)", &[&holder(&server).await]).await.unwrap();
    of_a.until(|signal| matches!(signal, Signal::Gone)).await;
    assert!(boot_now().since(terminated) < TTL, "a was told late");
    // b has the lock, and a's presence says that its work may still be stopping.
    of_b.until(|signal| matches!(signal, Signal::Changed(_))).await;
    let seen = loop {
        // The server says goodbye to a session before it lets go of its locks.
        let seen = b.denied().await;
        if seen.free_at.is_some() || boot_now() > first.counted_from + TTL {
            break seen;
        }
    };
    assert!(seen.free_at.is_some_and(|at| at > boot_now()), "{seen:?}");
    assert!(
        matches!(a.renew(&first).await, Outcome::Denied(_)),
        "the session is over, and the grant with it"
    );
    // a stands again: its work is over, nobody has to wait for it, and b was there first.
    a.denied().await;
    let (second, at) = b.lead_within(TTL / 2).await;
    assert!(at < first.counted_from + TTL, "only the ttl let b in");
    assert!(second.epoch > first.epoch);
    b.keep(&second).await;
    assert_eq!(a.denied().await.leader(), Some(&b.bid.who.id));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_sessions_of_a_connected_leader_terminated_at_once_make_no_two_leaders() {
    // Longer than anything here takes: only the ends of the sessions can tell anybody anything.
    let ttl = Duration::from_secs(6);
    let server = Server::start(Duration::ZERO).await;
    let server = &server;
    let candidate = |id: &'static str| {
        let store = Store::from(from_url(&server.url(), clock()).unwrap());
        Election::builder("reports").backend(store).id(id).ttl(ttl).auto_reacquire(false).start()
    };
    let admin = server.admin().await;
    // The server has to be as old as the ttl for a freed lock to be led on at once.
    let old = format!(
        "SELECT (clock_timestamp() - greatest(pg_postmaster_start_time(), (SELECT stats_reset FROM pg_stat_wal)) \
         > interval '{} seconds')::int4::int8",
        ttl.as_secs()
    );
    server.until(&old, |number| number != 0).await;
    for _ in 0..3 {
        let a = candidate("a").await.unwrap();
        let first = a.wait_for_leadership().await.unwrap();
        let b = candidate("b").await.unwrap();
        b.wait_until(|status| status.leader.as_ref().is_some_and(|id| id.as_str() == "a")).await.unwrap();
        let both = format!(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid = {0} OR pid IN (SELECT pid FROM pg_locks \
             WHERE classid::int8 = 1113017410 AND objid::int8 = {0})",
            holder(server).await
        );
        let terminated = boot_now();
        let lost = async {
            first.lost().await;
            boot_now()
        };
        let leads = async {
            let second = b.wait_for_leadership().await.unwrap();
            (second, boot_now())
        };
        let (lost, (second, led), ended) = tokio::join!(lost, leads, admin.query_one(&both, &[]));
        assert_eq!(ended.unwrap().get::<_, i64>(0), 2);
        assert!(!a.is_leader() && second.epoch() > first.epoch());
        assert!(lost <= led, "b led {:?} before a was told", lost.since(led));
        assert!(led.since(terminated) < ttl / 2, "nobody was left to wait for: {:?}", led.since(terminated));
        b.stop().await.unwrap();
        a.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_leads_within_a_ttl_of_a_restart_and_epochs_go_up() {
    let mut server = Server::start(TTL).await;
    let mut last = None;
    // In order, and as after a power cut.
    for signal in ["INT", "QUIT"] {
        let (a, b) = two(&server).await;
        let mut of_a = a.news();
        let (first, _) = a.lead_within(2 * TTL).await;
        assert!(last.is_none_or(|last| first.epoch > last), "{:?} after {last:?}", first.epoch);
        b.denied().await;
        server.down(signal);
        of_a.until(|signal| matches!(signal, Signal::Gone)).await;
        server.up().await;
        of_a.until(|signal| matches!(signal, Signal::Restored)).await;
        let up = boot_now();
        // Somebody cut off from the old server would still believe.
        let (second, at) = b.lead_within(3 * TTL).await;
        assert!(at >= first.counted_from + TTL, "b led {:?} too early", (first.counted_from + TTL).since(at));
        assert!(at.since(up) < 3 * TTL, "b led late: {:?}", at.since(up));
        assert!(second.epoch > first.epoch, "{:?} after {:?}", second.epoch, first.epoch);
        b.let_go(&second).await;
        last = Some(second.epoch);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_crash_of_one_server_process_frees_all_locks_and_makes_nobody_lead_early() {
    let server = Server::start(TTL).await;
    let (a, b) = two(&server).await;
    let first = a.lead().await;
    b.denied().await;
    let bystander = server.admin().await;
    let victim: i32 = bystander.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    std::process::Command::new("kill").args(["-9", &victim.to_string()]).status().unwrap();
    let killed = boot_now();
    let (second, at) = b.lead_within(PATIENCE).await;
    assert!(at >= killed + TTL, "b led {:?} after all locks were freed", at.since(killed));
    assert!(second.epoch > first.epoch);
    assert!(matches!(a.renew(&first).await, Outcome::Denied(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_holder_is_replaced_after_its_ttl_and_not_before() {
    const NAME: &str = "takeover::a_stopped_holder_is_replaced_after_its_ttl_and_not_before";
    let ttl = Duration::from_secs(2);
    if let Some(role) = role() {
        return renew_for_ever(&role, ttl).await;
    }
    let server = Server::start(ttl).await;
    let mut late = Vec::new();
    for round in 0..10 {
        // A place of its own for each: what an earlier one wrote says nothing of this one.
        let note = server.dir().join(format!("renewed-{round}"));
        let mut child = Child::start(NAME, &format!("{}\n{}", server.url(), note.display()));
        child.wait_for("leading");
        let b = actor(&server.url(), "b", ttl);
        b.denied().await;
        renewed(&note).await;
        child.signal("-STOP");
        let (grant, at) = b.lead_within(2 * ttl).await;
        assert!(!grant.after_crash, "it was silent, not dead");
        let end = noted(&note) + ttl;
        assert!(at >= end, "b led {:?} before the stopped holder's ttl was over", end.since(at));
        late.push(at.since(end));
        b.let_go(&grant).await;
        child.kill();
    }
    println!("a stopped holder was replaced so long after its ttl: {late:?}");
    // A machine that others work on may be late once; whoever is not woken up is so every time.
    late.sort_unstable();
    assert!(late[late.len() / 2] < Duration::from_millis(300), "{late:?}");
    assert!(late.iter().all(|late| *late < ttl), "{late:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_holder_counts_as_crashed_for_whoever_saw_it() {
    const NAME: &str = "takeover::a_killed_holder_counts_as_crashed_for_whoever_saw_it";
    if let Some(role) = role() {
        return renew_for_ever(&role, TTL).await;
    }
    let server = Server::start(TTL).await;
    let note = server.dir().join("renewed");
    let mut child = Child::start(NAME, &format!("{}\n{}", server.url(), note.display()));
    child.wait_for("leading");
    let b = actor(&server.url(), "b", TTL);
    b.denied().await;
    child.kill();
    let (grant, _) = b.lead_within(2 * TTL).await;
    assert!(grant.after_crash, "b saw it alive, and it did not let go");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_is_refused_and_the_primary_among_several_hosts_is_found() {
    let server = Server::start(TTL).await;
    let replica = server.replica().await;
    let alone = actor(&replica.url(), "a", TTL);
    match alone.claim().await {
        Outcome::Refused(error) => {
            assert_eq!(error.kind(), ErrorKind::Misconfigured);
            assert!(error.to_string().contains("standby"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    let both = format!("postgres://postgres@127.0.0.1:{},127.0.0.1:{}/postgres", replica.port, server.port);
    actor(&both, "a", TTL).lead().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_work_is_refused_with_what_to_do() {
    let server = Server::start(TTL).await;
    let admin = server.admin().await;
    admin.batch_execute("CREATE ROLE nobody; CREATE ROLE plain LOGIN").await.unwrap();
    let place = format!("127.0.0.1:{}", server.port);
    for (url, kind) in [
        (format!("postgres://nobody@{place}/postgres"), ErrorKind::PermissionDenied),
        (format!("postgres://plain@{place}/nowhere"), ErrorKind::Misconfigured),
    ] {
        match actor(&url, "a", TTL).claim().await {
            Outcome::Refused(error) => assert_eq!(error.kind(), kind, "{error}"),
            other => panic!("{url}: {other:?}"),
        }
    }
    // A server that is not there may come.
    let outcome = actor("postgres://plain@127.0.0.1:1/postgres", "a", TTL).claim().await;
    assert!(matches!(outcome, Outcome::Unknown(_)), "{outcome:?}");
    // An ordinary role is enough.
    actor(&format!("postgres://plain@{place}/postgres"), "a", TTL).lead().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_candidate_with_another_ttl_waits_for_the_holder_and_leads_after_it() {
    let server = Server::start(2 * TTL).await;
    let a = actor(&server.url(), "a", TTL);
    for (id, ttl) in [("longer", 2 * TTL), ("shorter", TTL / 2)] {
        let grant = a.lead().await;
        let b = actor(&server.url(), id, ttl);
        assert_eq!(b.denied().await.leader(), Some(&a.bid.who.id), "{id}");
        a.keep(&grant).await;
        a.let_go(&grant).await;
        let (grant, _) = b.lead_within(PATIENCE).await;
        assert_eq!(a.denied().await.leader(), Some(&b.bid.who.id), "{id}");
        b.let_go(&grant).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_candidate_with_a_shorter_ttl_waits_for_that_of_the_holder_it_met() {
    let ttl = 3 * TTL;
    let server = Server::start(ttl).await;
    let (a, b) = (actor(&server.url(), "a", ttl), actor(&server.url(), "b", TTL / 2));
    let first = a.lead().await;
    b.denied().await;
    // All locks are freed at once. Had a been cut off from the server, it would still believe.
    let bystander = server.admin().await;
    server.kill(bystander.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0));
    let (second, at) = b.lead_within(PATIENCE).await;
    assert!(at >= first.counted_from + ttl, "b led {:?} too early", (first.counted_from + ttl).since(at));
    assert!(second.epoch > first.epoch);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_ttl_of_another_election_of_the_same_process_delays_nobody() {
    let server = Server::start(TTL).await;
    let (a, b) = two(&server).await;
    a.lead().await;
    let longer = Bid { ttl: Duration::from_secs(3_600), ..a.bid.clone() };
    let held = a.backend.claim(&election("longer"), &longer).await;
    assert!(matches!(held, Outcome::Done(_) | Outcome::Denied(_)), "{held:?}");
    b.denied().await;
    let bystander = server.admin().await;
    server.kill(bystander.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0));
    b.lead_within(PATIENCE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewal_counts_only_when_the_second_session_answered_too() {
    let server = Server::start(TTL).await;
    let a = actor(&server.url(), "a", TTL);
    let mut grant = a.lead().await;
    grant = a.keep(&grant).await;
    let second = "SELECT pid::int8 FROM pg_stat_activity WHERE application_name LIKE 'bellwether% presence'";
    let stopped = Stopped::process(server.number(second).await);
    let outcome = a.renew(&grant).await;
    drop(stopped);
    assert!(!matches!(outcome, Outcome::Done(_)), "the lock's session alone answered: {outcome:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewal_that_an_earlier_heartbeat_answers_counts_from_when_that_left() {
    let server = Server::start(TTL).await;
    let mut a = actor(&server.url(), "a", TTL);
    let (reports, other) = (a.on.clone(), election("other"));
    let first = a.lead().await;
    a.on = other.clone();
    let second = a.lead().await;
    a.on = reports;
    let left = a.keep(&first).await.counted_from;
    // Asked while that heartbeat was under way: it answers for both, and the server knows of no later instant.
    let asked = left + Duration::from_nanos(1);
    match a.backend.renew(&other, &second, asked).await {
        Outcome::Done(grant) => assert_eq!(grant.counted_from, left),
        outcome => panic!("{outcome:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_session_that_ends_is_replaced_and_costs_no_leadership() {
    let server = Server::start(TTL).await;
    let (a, b) = two(&server).await;
    let mut of_a = a.news();
    let grant = a.lead().await;
    let sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name LIKE 'bellwether% presence'";
    assert_eq!(server.number(sql).await, 1);
    of_a.until(|signal| matches!(signal, Signal::Restored)).await;
    a.keep(&grant).await;
    assert_eq!(b.denied().await.proof, Proof::Alive);
    a.let_go(&grant).await;
    b.lead().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_promotion_nobody_leads_within_the_ttl_and_the_epoch_is_higher() {
    let mut server = Server::start(TTL).await;
    let replica = server.replica().await;
    let url = format!("postgres://postgres@127.0.0.1:{},127.0.0.1:{}/postgres", server.port, replica.port);
    let (a, b) = (actor(&url, "a", TTL), actor(&url, "b", TTL));
    // The replica gets older than the ttl, so that only the promotion can make anybody wait.
    tokio::time::sleep(TTL).await;
    let first = a.lead().await;
    b.denied().await;
    server.down("INT");
    replica.admin().await.execute("SELECT pg_promote()", &[]).await.unwrap();
    let promoted = boot_now();
    let (second, at) = b.lead_within(PATIENCE).await;
    assert!(
        at >= promoted + TTL - Duration::from_millis(200),
        "b led {:?} after the promotion",
        at.since(promoted)
    );
    assert!(at >= first.counted_from + TTL);
    assert!(second.epoch > first.epoch && second.epoch.get() >> 40 == 2, "{:?}", second.epoch);
}
