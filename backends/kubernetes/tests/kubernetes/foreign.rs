//! What others do to a Lease: candidates of client-go, people with `kubectl edit`, whoever labels it.

use bellwether_core::{Outcome, Signal};
use serde_json::{Value, json};

use crate::stage::{Namespace, TTL, is_kubernetes};

const REPORTS: &str = "reports";

#[tokio::test]
async fn the_epoch_of_a_claim_is_the_version_that_it_replaced() {
    let namespace = Namespace::new().await;
    let actor = namespace.actor("a");
    assert!(is_kubernetes(&actor.backend));
    let first = actor.lead().await;
    actor.let_go(&first).await;
    let version: u64 =
        namespace.lease(REPORTS).await["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    let second = actor.lead().await;
    assert_eq!(second.epoch.get(), version);
    assert!(second.epoch > first.epoch);
    let lease = namespace.lease(REPORTS).await;
    assert_eq!(lease["metadata"]["annotations"]["bellwether/epoch"], version.to_string());
    assert_eq!(lease["spec"]["leaseTransitions"], 1);
}

#[tokio::test]
async fn what_others_wrote_into_the_metadata_survives() {
    let namespace = Namespace::new().await;
    let actor = namespace.actor("a");
    let grant = actor.lead().await;
    namespace
        .edit(REPORTS, |lease| {
            lease["metadata"]["labels"] = json!({ "team": "x" });
            lease["metadata"]["annotations"]["theirs"] = "kept".into();
            lease["metadata"]["finalizers"] = json!(["example.org/keep"]);
        })
        .await;
    let grant = actor.keep(&grant).await;
    actor.let_go(&grant).await;
    let metadata = namespace.lease(REPORTS).await["metadata"].take();
    assert_eq!(metadata["labels"]["team"], "x");
    assert_eq!(metadata["annotations"]["theirs"], "kept");
    assert_eq!(metadata["finalizers"], json!(["example.org/keep"]));
}

#[tokio::test]
async fn a_lease_that_client_go_holds_is_waited_for_and_then_taken() {
    let namespace = Namespace::new().await;
    let held = json!({ "holderIdentity": "host_6f1c", "leaseDurationSeconds": 1, "leaseTransitions": 4,
        "acquireTime": "2026-01-01T00:00:00.000000Z", "renewTime": "2026-01-01T00:00:00.000000Z" });
    namespace.create(REPORTS, held).await;
    let actor = namespace.actor("a");
    let seen = actor.denied().await;
    assert_eq!(seen.holder.unwrap().id.as_str(), "host_6f1c");
    assert_eq!(seen.epoch, None, "client-go has none");
    let (grant, _) = actor.lead_within(2 * TTL).await;
    let lease = namespace.lease(REPORTS).await;
    assert_eq!(lease["spec"]["leaseTransitions"], 5);
    actor.let_go(&grant).await;
    assert_eq!(namespace.lease(REPORTS).await["spec"]["holderIdentity"], "");
}

#[tokio::test]
async fn epochs_rise_through_a_leadership_of_client_go() {
    let namespace = Namespace::new().await;
    let actor = namespace.actor("a");
    let far = bellwether_core::Epoch::new(1 << 40).unwrap();
    let bid = bellwether_core::Bid { floor: far, ..actor.bid.clone() };
    let actor = bellwether_support::Actor { bid, ..actor };
    let first = actor.lead().await;
    assert!(first.epoch > far);
    led_and_released_by_client_go(&namespace).await;
    let second = namespace.actor("b").lead().await;
    assert!(second.epoch > first.epoch, "{} after {}", second.epoch, first.epoch);
}

/// client-go keeps annotations, and counts its leaderships.
async fn led_and_released_by_client_go(namespace: &Namespace) {
    let led = |lease: &mut Value| {
        let count = lease["spec"]["leaseTransitions"].as_i64().unwrap() + 1;
        lease["spec"]["leaseTransitions"] = count.into();
        lease["spec"]["holderIdentity"] = "host_6f1c".into();
    };
    namespace.edit(REPORTS, led).await;
    namespace.edit(REPORTS, |lease| lease["spec"]["holderIdentity"] = "".into()).await;
}

#[tokio::test]
async fn what_client_go_has_released_is_free_at_once() {
    let namespace = Namespace::new().await;
    let (first, second) = (namespace.actor("a"), namespace.actor("b"));
    let grant = first.lead().await;
    let _ = second.denied().await;
    led_and_released_by_client_go(&namespace).await;
    let claimed = second.claim().await;
    assert!(matches!(&claimed, Outcome::Done(next) if next.epoch > grant.epoch), "{claimed:?}");
}

/// As a leader of client-go leaves the Lease of its successor that was cut off for longer than its lease and is back: it releases
/// whatever is there. The leader hears of it with its next renewal, so nobody may lead before its ttl is over.
#[tokio::test]
async fn a_lease_that_somebody_else_emptied_is_waited_for() {
    let namespace = Namespace::new().await;
    let (leader, other, newcomer) = (namespace.actor("a"), namespace.actor("b"), namespace.actor("c"));
    let grant = leader.lead().await;
    let _ = other.denied().await;
    let before = bellwether_deadman::boot_now();
    let emptied = |lease: &mut Value| {
        lease["spec"]["holderIdentity"] = "".into();
        lease["spec"]["leaseDurationSeconds"] = 1.into();
    };
    namespace.edit(REPORTS, emptied).await;
    let _ = (other.denied().await, newcomer.denied().await);
    let renewed = leader.renew(&grant).await;
    assert!(matches!(renewed, Outcome::Denied(_)), "{renewed:?}");
    let (next, led) = other.lead_within(3 * TTL).await;
    assert!(next.epoch > grant.epoch);
    assert!(led.since(before) >= TTL, "led {:?} after it was emptied", led.since(before));
}

/// The leader reads what is there and ends, or goes on where the record is still its own. Nobody else leads early.
#[tokio::test]
async fn no_edit_of_a_field_makes_two_leaders() {
    type Edit = (&'static str, bool, fn(&mut Value));
    let edits: [Edit; 10] = [
        ("holder", false, |lease| lease["spec"]["holderIdentity"] = "somebody".into()),
        ("no holder", false, |lease| lease["spec"]["holderIdentity"] = Value::Null),
        ("duration", true, |lease| lease["spec"]["leaseDurationSeconds"] = 1.into()),
        ("renewal", true, |lease| lease["spec"]["renewTime"] = "2001-01-01T00:00:00.000000Z".into()),
        ("acquisition", true, |lease| lease["spec"]["acquireTime"] = "2001-01-01T00:00:00.000000Z".into()),
        ("transitions", true, |lease| lease["spec"]["leaseTransitions"] = 77.into()),
        ("no times", true, |lease| {
            lease["spec"]["renewTime"] = Value::Null;
            lease["spec"]["acquireTime"] = Value::Null;
        }),
        ("record", false, |lease| lease["metadata"]["annotations"]["bellwether/record"] = "{".into()),
        ("no record", false, |lease| lease["metadata"]["annotations"]["bellwether/record"] = Value::Null),
        ("labels", true, |lease| lease["metadata"]["labels"] = json!({ "a": "b" })),
    ];
    let namespace = Namespace::new().await;
    for (what, goes_on, edit) in edits {
        let name = what.replace(' ', "-");
        let on = bellwether_support::election(&name);
        let leader = bellwether_support::Actor { on: on.clone(), ..namespace.actor("a") };
        let other = bellwether_support::Actor { on, ..namespace.actor("b") };
        let grant = leader.lead().await;
        let _ = other.denied().await;
        namespace.edit(&name, edit).await;
        let renewed = leader.renew(&grant).await;
        if goes_on {
            assert!(matches!(renewed, Outcome::Done(_)), "{what}: {renewed:?}");
            let _ = other.denied().await;
        } else {
            assert!(matches!(renewed, Outcome::Denied(_)), "{what}: {renewed:?}");
        }
    }
}

#[tokio::test]
async fn a_deleted_lease_is_not_made_again_by_its_leader_and_counts_as_held_to_those_who_saw_it() {
    let namespace = Namespace::new().await;
    let (leader, other) = (namespace.actor("a"), namespace.actor("b"));
    let grant = leader.lead().await;
    let mut news = other.news();
    let _ = other.denied().await;
    namespace.delete(REPORTS).await;
    news.until(|signal| matches!(signal, Signal::Changed(seen) if seen.holder.is_none())).await;
    let before = bellwether_deadman::boot_now();
    let renewed = leader.renew(&grant).await;
    assert!(matches!(renewed, Outcome::Denied(_)), "{renewed:?}");
    let (next, led) = other.lead_within(3 * TTL).await;
    assert!(next.epoch > grant.epoch);
    assert!(led.since(before) + TTL / 4 > TTL, "led {:?} after the deletion", led.since(before));
}

#[tokio::test]
async fn a_copy_of_another_election_s_lease_is_refused_by_name() {
    let namespace = Namespace::new().await;
    let actor = namespace.actor("a");
    let grant = actor.lead().await;
    actor.let_go(&grant).await;
    namespace
        .edit(REPORTS, |lease| lease["metadata"]["annotations"]["bellwether/election"] = "other".into())
        .await;
    match actor.claim().await {
        Outcome::Refused(error) => assert!(error.to_string().contains("\"other\""), "{error}"),
        other => panic!("{other:?}"),
    }
}
