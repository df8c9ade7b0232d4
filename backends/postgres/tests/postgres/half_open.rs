//! Connections that broke on the client's side only: the server still has them, with their locks.

use std::time::Duration;

use bellwether_core::{Outcome, Signal};
use bellwether_deadman::boot_now;
use bellwether_election::{Election, Events, Store, What};
use bellwether_postgres::{Postgres, from_config};
use bellwether_support::servers::postgres::Server;
use bellwether_support::{Actor, clock, until};

use crate::support::actor;
use crate::support::proxy::Way;

/// Long: within it the server ends nothing by itself.
const TTL: Duration = Duration::from_secs(4);

fn through(way: &Way, server: &Server, id: &str) -> Actor<Postgres> {
    Actor::new(from_config(way.to(server), clock()), id, TTL)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_own_half_open_sessions_are_ended_by_the_next_connection() {
    let server = Server::start(TTL).await;
    let way = Way::new();
    let a = through(&way, &server, "a");
    let mut news = a.news();
    let first = a.lead().await;
    let cut = boot_now();
    way.cut();
    news.until(|signal| matches!(signal, Signal::Gone)).await;
    news.until(|signal| matches!(signal, Signal::Restored)).await;
    assert!(matches!(a.renew(&first).await, Outcome::Denied(_)));
    let (second, at) = a.lead_within(TTL / 2).await;
    assert!(at.since(cut) < TTL / 2 && second.epoch > first.epoch, "{:?}", at.since(cut));
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'bellwether%'";
    assert_eq!(server.number(sessions).await, 2, "the old ones were ended");
    a.keep(&second).await;
}

async fn next(events: &mut Events, wanted: impl Fn(&What) -> bool) -> What {
    let found = async {
        loop {
            let event = events.next().await.expect("the election goes on");
            if wanted(&event.what) {
                return event.what;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), found).await.expect("no such event came")
}

async fn candidate(way: &Way, server: &Server, id: &str) -> Election {
    let store = Store::from(from_config(way.to(server), clock()));
    let builder = Election::builder("reports").backend(store).id(id).ttl(TTL);
    builder.reconnect_grace(Duration::from_secs(20)).start().await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_cut_off_for_a_moment_resumes_under_a_higher_epoch() {
    let server = Server::start(TTL).await;
    let way = Way::new();
    let a = candidate(&way, &server, "a").await;
    let first = a.wait_for_leadership().await.unwrap();
    let mut events = a.events();
    let cut = boot_now();
    way.cut();
    let over = |what: &What| {
        matches!(
            what,
            What::Suspended { .. } | What::Resumed { .. } | What::Lost { .. } | What::Acquired { .. }
        )
    };
    let What::Suspended { epoch, .. } = next(&mut events, over).await else { panic!("was to be suspended") };
    assert_eq!(epoch, first.epoch());
    let What::Resumed { epoch, .. } = next(&mut events, over).await else { panic!("was to be resumed") };
    assert!(epoch > first.epoch());
    assert!(
        boot_now().since(cut) < TTL / 2,
        "only the server's lease let it back: {:?}",
        boot_now().since(cut)
    );
    a.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_cut_off_while_another_takes_over_has_lost() {
    let server = Server::start(TTL).await;
    let way = Way::new();
    let a = candidate(&way, &server, "a").await;
    let first = a.wait_for_leadership().await.unwrap();
    let b = candidate(&Way::new(), &server, "b").await;
    b.wait_until(|status| status.leader.as_ref().is_some_and(|id| id.as_str() == "a")).await.unwrap();
    let mut events = a.events();
    way.shut(true);
    way.cut();
    next(&mut events, |what| matches!(what, What::Suspended { .. })).await;
    let second = b.wait_for_leadership().await.unwrap();
    assert!(second.epoch() > first.epoch());
    way.shut(false);
    let over = |what: &What| matches!(what, What::Resumed { .. } | What::Lost { .. });
    let What::Lost { epoch, .. } = next(&mut events, over).await else { panic!("resumed beside a leader") };
    assert_eq!(epoch, first.epoch());
    assert!(b.is_leader());
    for one in [a, b] {
        one.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_has_the_lock_and_waits_for_an_earlier_leader_is_not_shown_as_leading() {
    let server = Server::start(TTL).await;
    let way = Way::new();
    let a = through(&way, &server, "a");
    let (b, c) = (actor(&server.url(), "b", TTL), actor(&server.url(), "c", TTL));
    a.lead().await;
    b.denied().await;
    assert_eq!(c.seen().await.leader(), Some(&a.bid.who.id));
    // Only the session of the lock ends; the presence says that the work may still be stopping.
    let sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name LIKE 'bellwether/a lock %'";
    assert_eq!(server.number(sql).await, 1);
    let waits = until(async || {
        let seen = b.denied().await;
        let takes_its_time = seen.free_at.is_some_and(|at| at >= boot_now() + TTL / 4);
        if takes_its_time { Ok(()) } else { Err("b was to take the lock and wait") }
    });
    tokio::time::timeout(TTL, waits).await.expect("b was to take the lock and wait");
    assert_eq!(c.seen().await.holder, None, "b waits");
    assert_eq!(c.denied().await.holder, None, "b waits");
    // a comes back and finds that it is late; with that its work is over.
    a.denied().await;
    b.lead_within(TTL / 2).await;
    assert_eq!(c.seen().await.leader(), Some(&b.bid.who.id));
    assert_eq!(c.denied().await.leader(), Some(&b.bid.who.id));
}
