//! A pooler in between: refused where it lends its connections by the transaction or the statement, good enough where it does so
//! by the session.

use std::time::Duration;

use bellwether_core::{ErrorKind, Grant, Outcome};
use bellwether_postgres::Postgres;
use bellwether_support::servers::pgbouncer::Pooler;
use bellwether_support::servers::postgres::Server;
use bellwether_support::{Actor, Child, role};

use crate::support::{actor, renew_for_ever};

const TTL: Duration = Duration::from_secs(1);

/// What a claim comes to when it is made again after every answer that says nothing, as a driver would: a pooler by the statement
/// ends a connection that begins a transaction, and its last words do not always arrive.
async fn certain(actor: &Actor<Postgres>) -> Outcome<Grant> {
    for _ in 0..20 {
        match actor.claim().await {
            Outcome::Unknown(_) => {}
            outcome => return outcome,
        }
    }
    panic!("twenty claims in a row without an answer");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooler_by_the_transaction_or_the_statement_is_refused_every_time() {
    let server = Server::start(TTL).await;
    for mode in ["transaction", "statement"] {
        let pooler = Pooler::start(&server, mode);
        // With an empty pool, with one in use, and with several candidates at once.
        for round in 0..10 {
            let (a, b) = (actor(&pooler.url(), "a", TTL), actor(&pooler.url(), "b", TTL));
            let (one, two) = tokio::join!(certain(&a), certain(&b));
            for outcome in [one, two] {
                match outcome {
                    Outcome::Refused(error) => {
                        assert_eq!(error.kind(), ErrorKind::Misconfigured, "{mode}, round {round}: {error}");
                        assert!(error.to_string().contains("pooler"), "{mode}, round {round}: {error}");
                    }
                    other => panic!("{mode}, round {round}: {other:?}"),
                }
            }
        }
        // Nothing that was tried through the pool is left on its sessions.
        drop(pooler);
    }
    actor(&server.url(), "c", TTL).lead().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooler_by_the_session_hands_over_and_replaces_the_killed_and_the_stopped() {
    const NAME: &str = "pooler::a_pooler_by_the_session_hands_over_and_replaces_the_killed_and_the_stopped";
    if let Some(role) = role() {
        return renew_for_ever(&role, TTL).await;
    }
    let server = Server::start(TTL).await;
    let pooler = Pooler::start(&server, "session");
    let (a, b) = (actor(&pooler.url(), "a", TTL), actor(&pooler.url(), "b", TTL));
    let first = a.lead().await;
    b.denied().await;
    let first = a.keep(&first).await;
    a.let_go(&first).await;
    let second = b.lead().await;
    assert!(second.epoch > first.epoch);
    b.let_go(&second).await;
    let mut last = second.epoch;
    for signal in ["-KILL", "-STOP"] {
        let note = server.dir().join("renewed");
        let mut child = Child::start(NAME, &format!("{}\n{}", pooler.url(), note.display()));
        child.wait_for("leading");
        b.denied().await;
        crate::support::renewed(&note).await;
        child.signal(signal);
        let (third, at) = b.lead_within(5 * TTL).await;
        if signal == "-STOP" {
            let end = crate::support::noted(&note) + TTL;
            assert!(at >= end, "b led {:?} before the stopped holder's ttl was over", end.since(at));
        }
        assert!(third.epoch > last);
        last = third.epoch;
        b.let_go(&third).await;
        std::fs::remove_file(&note).unwrap();
    }
}
