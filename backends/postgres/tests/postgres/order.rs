//! What comes before what, seen by holding one side back: the epoch after the lock, belief before the answer, the notice of a
//! release after it, presence after the claim.

use std::time::Duration;

use bellwether_backend::Backend;
use bellwether_core::{Bid, ElectionName, Epoch, Outcome};
use bellwether_deadman::boot_now;
use bellwether_postgres::Keys;
use bellwether_support::servers::postgres::Server;
use bellwether_support::{Stopped, election};
use futures_util::future::poll_fn;
use tokio::sync::mpsc;
use tokio_postgres::{AsyncMessage, Client, NoTls};

use crate::support::actor;

/// Each of these takes milliseconds, and no call may take longer than this.
const TTL: Duration = Duration::from_secs(3);

/// As the catalogue shows it.
fn locks(Keys(one, two): Keys) -> String {
    format!("FROM pg_locks WHERE granted AND classid::int8 = {} AND objid::int8 = {}", one as u32, two as u32)
}

/// Whoever tries to take the lock of one of these elections waits, just before it would be granted, until this session lets go of
/// the advisory lock with the number of their group.
async fn gates(server: &Server, groups: &[&[&ElectionName]]) -> Client {
    let admin = server.admin().await;
    let mut waits = String::new();
    for (number, on) in (0_i64..).zip(groups) {
        admin.execute("SELECT pg_advisory_lock($1)", &[&number]).await.unwrap();
        for Keys(one, two) in on.iter().map(|on| Keys::of(on)) {
            let wait = format!("PERFORM pg_advisory_xact_lock_shared({number})");
            waits += &format!("IF ($1, $2) = ({one}, {two}) THEN {wait}; END IF; ");
        }
    }
    let gated = format!(
        "ALTER FUNCTION pg_catalog.pg_try_advisory_lock(int4, int4) RENAME TO behind_the_gate; \
         CREATE FUNCTION pg_catalog.pg_try_advisory_lock(int4, int4) RETURNS bool LANGUAGE plpgsql AS $$ \
         BEGIN {waits} RETURN behind_the_gate($1, $2); END $$"
    );
    admin.batch_execute(&gated).await.unwrap();
    admin
}

/// Sessions that wait before a gate.
const BEFORE_A_GATE: &str = "SELECT count(*) FROM pg_locks WHERE NOT granted";

/// Opens a gate once somebody waits before it; the number that another leader would have been given until then.
async fn open(server: &Server, admin: &Client, number: i64) -> u64 {
    server.until(BEFORE_A_GATE, |waiting| waiting == 1).await;
    let given = server.number("SELECT pg_current_xact_id()::text::int8").await;
    admin.execute("SELECT pg_advisory_unlock($1)", &[&number]).await.unwrap();
    u64::try_from(given).unwrap()
}

/// The part of an epoch that is the transaction id.
fn given_to(epoch: Epoch) -> u64 {
    epoch.get() & ((1 << 40) - 1)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_epoch_is_above_whatever_was_given_out_before_the_lock_was_granted() {
    let server = Server::start(TTL).await;
    let a = actor(&server.url(), "a", TTL);
    let (one, two, three) = (election("one"), election("two"), election("three"));
    let admin = gates(&server, &[&[&one], &[&two, &three]]).await;
    let claim = async |on: &ElectionName| {
        let bid = Bid { sent: boot_now(), ..a.bid.clone() };
        match a.backend.claim(on, &bid).await {
            Outcome::Done(grant) => given_to(grant.epoch),
            other => panic!("{on}: {other:?}"),
        }
    };
    let rest = async {
        server.until(BEFORE_A_GATE, |waiting| waiting == 1).await;
        // Asked while the first is under way, so these two share a statement.
        let given = async { (open(&server, &admin, 0).await, open(&server, &admin, 1).await) };
        tokio::join!(claim(&two), claim(&three), given)
    };
    let (alone, (second, third, (first, later))) = tokio::join!(claim(&one), rest);
    println!("given out before: {first} and {later}; led with {alone}, {second} and {third}");
    assert!(alone > first, "{alone} was assigned before the lock was there: {first} came first");
    assert!(second > later && third > later, "{second} and {third}, where {later} came first");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewal_counts_from_before_it_was_asked_for_however_late_the_answer() {
    let server = Server::start(TTL).await;
    let a = actor(&server.url(), "a", TTL);
    let grant = a.lead().await;
    let first = server.number(&format!("SELECT pid::int8 {}", locks(Keys::of(&a.on)))).await;
    let answered = format!(
        "SELECT (extract(epoch FROM state_change) * 1000000)::int8 FROM pg_stat_activity WHERE pid = {first}"
    );
    let before = server.number(&answered).await;
    let second = "SELECT pid::int8 FROM pg_stat_activity WHERE application_name LIKE 'bellwether% presence'";
    let stopped = Stopped::process(server.number(second).await);
    let goes_on = async {
        // The heartbeat has left by now: the other session has answered it.
        server.until(&answered, |at| at > before).await;
        let now = boot_now();
        drop(stopped);
        now
    };
    let (renewed, answered) = tokio::join!(a.keep(&grant), goes_on);
    let late = renewed.counted_from.since(answered);
    assert!(renewed.counted_from < answered, "counted from {late:?} after the server could answer");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_told_of_a_release_before_the_lock_is_free() {
    let server = Server::start(TTL).await;
    let a = actor(&server.url(), "a", TTL);
    let grant = a.lead().await;
    let (lock, presence) = (locks(Keys::of(&a.on)), locks(Keys::of(&a.on).presence()));
    let (listener, mut told) = listen(&server).await;
    let stopped = Stopped::process(server.number(&format!("SELECT pid::int8 {lock}")).await);
    let goes_on = async {
        // What the second session does for the release is done; what the first has to do cannot be.
        server.until(&format!("SELECT count(*) {presence}"), |present| present == 0).await;
        listener.batch_execute("SELECT 1").await.unwrap();
        assert_eq!(told.try_recv().ok(), None, "told while the lock is held");
        drop(stopped);
        loop {
            if told.recv().await.unwrap().starts_with("release ") {
                return server.number(&format!("SELECT count(*) {lock}")).await;
            }
        }
    };
    let ((), held) = tokio::join!(a.let_go(&grant), goes_on);
    assert_eq!(held, 0, "told while the lock is held");
}

/// A session that hears everything that is told from now on.
async fn listen(server: &Server) -> (Client, mpsc::UnboundedReceiver<String>) {
    let (client, mut connection) = tokio_postgres::connect(&server.local_url(), NoTls).await.unwrap();
    let (tell, told) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(note) = message {
                let _ = tell.send(note.payload().to_owned());
            }
        }
    });
    client.batch_execute("LISTEN bellwether").await.unwrap();
    (client, told)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_in_vain_leaves_no_presence_behind() {
    let server = Server::start(TTL).await;
    let (a, b) = (actor(&server.url(), "a", TTL), actor(&server.url(), "b", TTL));
    let Keys(one, two) = Keys::of(&a.on);
    // Somebody has the lock and is not present: it took it by hand, or a moment ago.
    let other = server.admin().await;
    other.execute("SELECT pg_advisory_lock($1, $2)", &[&one, &two]).await.unwrap();
    for _ in 0..20 {
        a.denied().await;
    }
    let present = format!("SELECT count(*) {}", locks(Keys(one, two).presence()));
    assert_eq!(server.number(&present).await, 0);
    // So whoever is next waits for nobody.
    other.execute("SELECT pg_advisory_unlock($1, $2)", &[&one, &two]).await.unwrap();
    b.lead().await;
}
