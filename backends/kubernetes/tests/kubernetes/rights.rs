//! Users who may do little, and namespaces that are not there.

use bellwether_backend::{Backend as _, Grade, PERMISSIONS, Probing};
use bellwether_core::{ErrorKind, Outcome};
use bellwether_kubernetes::from_url;
use bellwether_support::servers::kubernetes::{ADMIN, LIMITED};
use bellwether_support::{Actor, clock, until};
use serde_json::Value;

use crate::stage::{Namespace, TTL, rule};

const USER: &str = LIMITED[0];
const NAMES: [&str; 2] = ["reports", "reports.notes"];

fn refused<T: std::fmt::Debug>(outcome: Outcome<T>, kind: ErrorKind, part: &str) {
    match outcome {
        Outcome::Refused(error) => {
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().contains(part), "{error}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_user_with_the_least_of_rights_leads_follows_and_hands_over() {
    let namespace = Namespace::new().await;
    namespace.permit(USER, vec![rule(&["create"], &[]), rule(&["get", "update", "watch"], &NAMES)]).await;
    let (one, two) = (namespace.actor_of(USER, "a"), namespace.actor_of(USER, "b"));
    let grant = one.lead().await;
    let mut news = two.news();
    let _ = two.denied().await;
    let grant = one.keep(&grant).await;
    news.until_seen(|seen| seen.holder.is_some()).await;
    one.let_go(&grant).await;
    news.until_seen(|seen| seen.holder.is_none()).await;
    let next = two.lead().await;
    assert!(next.epoch > grant.epoch);
    assert_eq!(two.backend.unwatched(&two.on).map(|error| error.to_string()), None);
}

#[tokio::test]
async fn a_missing_verb_is_named() {
    for (verbs, part) in [
        (vec![rule(&["create"], &[]), rule(&["update", "watch"], &NAMES)], "get the Lease reports"),
        (vec![rule(&["create"], &[]), rule(&["get", "watch"], &NAMES)], "update the Lease reports"),
        (vec![rule(&["get", "update", "watch"], &NAMES)], "create the Lease reports"),
    ] {
        let namespace = Namespace::new().await;
        namespace.permit(USER, verbs).await;
        let actor = namespace.actor_of(USER, "a");
        refused(actor.claim().await, ErrorKind::PermissionDenied, part);
    }
}

/// Told when it begins to follow, and not when it is needed.
#[tokio::test]
async fn a_follower_that_may_not_write_is_refused_while_another_leads() {
    let namespace = Namespace::new().await;
    namespace.permit(USER, vec![rule(&["create"], &[]), rule(&["get", "watch"], &NAMES)]).await;
    let _grant = namespace.actor("a").lead().await;
    let before = namespace.lease("reports").await;
    refused(
        namespace.actor_of(USER, "b").claim().await,
        ErrorKind::PermissionDenied,
        "update the Lease reports",
    );
    assert_eq!(namespace.lease("reports").await, before, "nothing was written to find that out");
}

#[tokio::test]
async fn without_the_right_to_watch_a_follower_says_so_and_looks() {
    let namespace = Namespace::new().await;
    namespace.permit(USER, vec![rule(&["create"], &[]), rule(&["get", "update"], &NAMES)]).await;
    let leader = namespace.actor("a");
    let grant = leader.lead().await;
    let follower = namespace.actor_of(USER, "b");
    let mut news = follower.news();
    let _ = follower.denied().await;
    leader.let_go(&grant).await;
    news.until_seen(|seen| seen.holder.is_none()).await;
    let why = follower.backend.unwatched(&follower.on).expect("there is a reason").to_string();
    assert!(why.contains("watch Leases"), "{why}");
}

#[tokio::test]
async fn a_right_that_is_withdrawn_ends_the_leadership_with_the_reason() {
    let namespace = Namespace::new().await;
    namespace.permit(USER, vec![rule(&["create"], &[]), rule(&["get", "update", "watch"], &NAMES)]).await;
    let actor = namespace.actor_of(USER, "a");
    let grant = actor.lead().await;
    namespace.forbid(USER).await;
    // The server hears of it by a watch of its own.
    let last = until(|| async {
        match actor.renew(&grant).await {
            Outcome::Done(_) => Err("it may still renew".to_owned()),
            other => Ok(other),
        }
    })
    .await;
    refused(last, ErrorKind::PermissionDenied, "update the Lease reports");
}

#[tokio::test]
async fn a_namespace_that_is_missing_or_being_deleted_is_named() {
    let namespace = Namespace::new().await;
    let url = namespace.url_of(ADMIN).replace(&namespace.name, "nowhere");
    let actor = Actor::new(from_url(&url, clock()).unwrap(), "a", TTL);
    refused(actor.claim().await, ErrorKind::Misconfigured, "the namespace does not exist");

    let leader = namespace.actor("a");
    let grant = leader.lead().await;
    namespace.server.api("DELETE", &format!("/api/v1/namespaces/{}", namespace.name), Value::Null).await;
    leader.keep(&grant).await;
    let other = Actor { on: bellwether_support::election("other"), ..namespace.actor("b") };
    let last = until(|| async {
        match other.claim().await {
            Outcome::Done(_) => Err("the server does not know yet".to_owned()),
            other => Ok(other),
        }
    })
    .await;
    refused(last, ErrorKind::Misconfigured, "being deleted");
}

#[tokio::test]
async fn the_checkup_names_the_verbs_that_are_missing() {
    let namespace = Namespace::new().await;
    let look = |url: String, on: Option<&'static str>| async move {
        let on = on.map(bellwether_support::election);
        let probing = on.as_ref().map_or(Probing::Look, Probing::LookAt);
        let findings = from_url(&url, clock()).unwrap().checkup(probing).await;
        findings.into_iter().find(|finding| finding.what == PERMISSIONS).expect("permissions are looked at")
    };
    let permissions = |url| look(url, None);
    assert_eq!(permissions(namespace.url_of(ADMIN)).await.grade, Grade::Good);
    namespace.permit(USER, vec![rule(&["create", "get", "watch"], &[])]).await;
    let found = permissions(namespace.url_of(USER)).await;
    assert_eq!(found.grade, Grade::Bad(ErrorKind::PermissionDenied));
    assert!(found.sentence.contains("may not update leases in"), "{}", found.sentence);
    let one_by_one = LIMITED[1];
    namespace
        .permit(one_by_one, vec![rule(&["create"], &[]), rule(&["get", "update", "watch"], &NAMES)])
        .await;
    let found = permissions(namespace.url_of(one_by_one)).await;
    assert_eq!(found.grade, Grade::Warning, "{}", found.sentence);
    assert!(found.sentence.contains("bellwether doctor ELECTION"), "{}", found.sentence);
    let found = look(namespace.url_of(one_by_one), Some("reports")).await;
    assert_eq!(found.grade, Grade::Good, "{}", found.sentence);
    let found = look(namespace.url_of(one_by_one), Some("other")).await;
    assert_eq!(found.grade, Grade::Bad(ErrorKind::PermissionDenied));
    let named = "may not get leases/other, update leases/other, watch leases/other in";
    assert!(found.sentence.contains(named), "{}", found.sentence);
}

/// Each in a finding of its own, with what happens without it.
#[tokio::test]
async fn the_checkup_names_the_rights_that_options_lack() {
    let namespace = Namespace::new().await;
    namespace.permit(USER, vec![rule(&["create", "get", "update", "watch"], &[])]).await;
    let url = format!("{}&label=yes&pod=a&service=b&port=1&address=10.0.0.1", namespace.url_of(USER));
    let on = bellwether_support::election("reports");
    let findings = from_url(&url, clock()).unwrap().checkup(Probing::LookAt(&on)).await;
    for (what, part) in [
        ("events", "may not create events"),
        ("label", "may not patch pods"),
        ("address", "create endpointslices, get endpointslices/b, update endpointslices/b"),
    ] {
        let found = findings.iter().find(|finding| finding.what == what).expect(what);
        assert!(found.grade == Grade::Warning && found.sentence.contains(part), "{found:?}");
    }
    assert!(findings.iter().all(|finding| finding.what != "history"), "{findings:?}");
}
