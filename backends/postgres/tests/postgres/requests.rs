//! What is asked of a leader by NOTIFY reaches that leadership and no other.

use std::time::Duration;

use bellwether_backend::Backend;
use bellwether_core::{Ask, CandidateId, Epoch, ErrorKind, Outcome, ReleaseOptions, Request, Signal, Timing};
use bellwether_deadman::boot_now;
use bellwether_postgres::{Keys, Postgres, from_url};
use bellwether_support::servers::postgres::Server;
use bellwether_support::{Actor, News, clock, election};
use tokio_postgres::Client;

const TTL: Duration = Duration::from_secs(1);

fn actor(server: &Server, id: &str) -> Actor<Postgres> {
    Actor::new(from_url(&server.url(), clock()).unwrap(), id, TTL)
}

fn step_down(epoch: Epoch) -> Request {
    Request { epoch, what: Ask::StepDown { to: None } }
}

/// The payload of a request, as anybody could send it at any time.
fn payload(Keys(one, two): Keys, epoch: Epoch, what: &str) -> String {
    format!("SELECT pg_notify('bellwether', 'ask {one} {two} {epoch} {what}')")
}

/// Until what was sent before has been heard by the leader of that epoch, to which it was no request. What comes later is heard later;
/// the first answer may be to something earlier.
async fn nothing_asked(news: &mut News, admin: &Client, leading: Epoch) {
    let Keys(one, two) = Keys::of(&election("reports"));
    for _ in 0..2 {
        admin.batch_execute(&format!("NOTIFY bellwether, 'release {one} {two}'")).await.unwrap();
        news.until(|signal| {
            assert!(!matches!(signal, Signal::Requested(_)), "{signal:?}");
            matches!(signal, Signal::Changed(seen) if seen.epoch == Some(leading))
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_request_does_not_hit_the_next_leader_nor_the_same_one_anew() {
    let server = Server::start(TTL).await;
    let (a, b) = (actor(&server, "a"), actor(&server, "b"));
    let (mut of_a, mut of_b) = (a.news(), b.news());
    let first = a.lead().await;
    assert_eq!(b.seen().await.epoch, Some(first.epoch), "the epoch is there to be read");
    a.let_go(&first).await;
    let second = b.lead().await;
    let admin = server.admin().await;
    let keys = Keys::of(&a.on);
    // What was meant for a arrives now.
    let late = payload(keys, first.epoch, "step-down late");
    admin.batch_execute(&late).await.unwrap();
    nothing_asked(&mut of_b, &admin, second.epoch).await;
    // What is meant for b is heard.
    admin.batch_execute(&payload(keys, second.epoch, "step-down meant")).await.unwrap();
    let meant = Ask::StepDown { to: Some(CandidateId::new("meant").unwrap()) };
    let heard = |what: Ask| {
        move |signal: &Signal| match signal {
            Signal::Requested(request) => {
                assert_eq!(request.what, what);
                true
            }
            _ => false,
        }
    };
    of_b.until(heard(meant)).await;
    b.let_go(&second).await;
    // The same session leads once more: the number is another, and so the request is nobody's.
    let third = a.lead().await;
    admin.batch_execute(&late).await.unwrap();
    nothing_asked(&mut of_a, &admin, third.epoch).await;
    admin.batch_execute(&payload(keys, third.epoch, "preempt 7 b%20c")).await.unwrap();
    of_a.until(heard(Ask::Preempt { by: CandidateId::new("b c").unwrap(), priority: 7 })).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_not_ours_cannot_be_asked_and_nobody_is_said_to_be_nobody() {
    let server = Server::start(TTL).await;
    let b = actor(&server, "b");
    let nobody = b.backend.request(&b.on, &step_down(Epoch::new(5).unwrap())).await;
    assert!(matches!(&nobody, Outcome::Denied(seen) if seen.holder.is_none()), "{nobody:?}");
    let foreign = server.admin().await;
    let Keys(one, two) = Keys::of(&b.on);
    foreign.batch_execute("SET application_name = 'somebody else'").await.unwrap();
    foreign.batch_execute(&format!("SELECT pg_advisory_lock({one}, {two})")).await.unwrap();
    match b.backend.request(&b.on, &step_down(Epoch::new(5).unwrap())).await {
        Outcome::Refused(error) => {
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.to_string().contains("somebody else"), "{error}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_let_go_for_somebody_is_left_to_it_by_those_who_heard() {
    let server = Server::start(TTL).await;
    let (a, named) = (actor(&server, "a"), actor(&server, "näm ed"));
    let mut others = Vec::new();
    for number in 0..8 {
        let other = actor(&server, &format!("other-{number}"));
        other.backend.connect().await.unwrap();
        others.push(other);
    }
    named.backend.connect().await.unwrap();
    for _ in 0..5 {
        // It may not have heard yet that the last reservation was used.
        let (grant, _) = a.lead_within(TTL).await;
        // Who has seen the leader knows that it is the leader who keeps it for somebody.
        futures_util::future::join_all(others.iter().chain([&named]).map(Actor::denied)).await;
        let from = boot_now();
        let how = ReleaseOptions { reserve_for: Some(named.bid.who.id.clone()), cooldown: None };
        let released = a.backend.release(&a.on, &grant, &how).await;
        assert!(matches!(released, Outcome::Done(())), "{released:?}");
        // All at once, and each may have the lock for a moment; none may keep it.
        let claims = others.iter().map(|other| async move { (other.claim().await, other) });
        for (outcome, other) in futures_util::future::join_all(claims).await {
            if let Outcome::Done(grant) = &outcome {
                let after = boot_now().since(from);
                assert!(after >= Timing::reservation(TTL), "{} led after {after:?}", other.bid.who.id);
                other.let_go(grant).await;
            }
        }
        let (grant, _) = named.lead_within(TTL).await;
        named.let_go(&grant).await;
        // The reservation is over once it was used.
        let (grant, _) = others[0].lead_within(TTL).await;
        others[0].let_go(&grant).await;
    }
}

/// A candidate that used its reservation and let go before the others looked: the server shows nobody then, and only the notice of its claim
/// says that nothing is kept for it any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reservation_is_over_though_whom_it_was_for_has_let_go_before_anybody_looked() {
    let ttl = 5 * TTL;
    let server = Server::start(ttl).await;
    let b = Actor::new(from_url(&server.url(), clock()).unwrap(), "b", ttl);
    b.backend.connect().await.unwrap();
    let mut news = b.news();
    let Keys(one, two) = Keys::of(&b.on);
    let told = [
        format!("reserve {one} {two} 1000 named"),
        format!("claim {one} {two} 1 named 1"),
        format!("release {one} {two}"),
    ];
    // In one transaction, so that they are heard together.
    let told = told.map(|notice| format!("NOTIFY bellwether, '{notice}';")).concat();
    server.admin().await.batch_execute(&format!("BEGIN; {told} COMMIT")).await.unwrap();
    let seen = news.until_seen(|_| true).await;
    assert_eq!((seen.leader(), &seen.reserved_for), (None, &None));
    b.lead().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn epochs_are_told_apart_on_one_session_and_gone_with_the_leadership() {
    let server = Server::start(TTL).await;
    let (mut a, b) = (actor(&server, "a"), actor(&server, "b"));
    let mut held = Vec::new();
    for number in 0..20 {
        a.on = election(&format!("job-{number}"));
        held.push((a.on.clone(), a.lead().await));
    }
    for (on, grant) in &held {
        assert_eq!(b.backend.observe(on).await.unwrap().epoch, Some(grant.epoch));
    }
    for (on, grant) in &held {
        let released = a.backend.release(on, grant, &ReleaseOptions::default()).await;
        assert!(matches!(released, Outcome::Done(())));
        assert_eq!(b.backend.observe(on).await.unwrap().epoch, None);
    }
    let marks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1";
    assert_eq!(server.number(marks).await, 0, "no lock stays behind");
}
