//! What others write into a fenced object, and what a client may not do.

use bellwether_core::Epoch;
use bellwether_fence::kubernetes::kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use bellwether_fence::kubernetes::{ELECTION_ANNOTATION, EPOCH_ANNOTATION, FencedObject};
use bellwether_fence::{Failure, FenceError};
use bellwether_support::servers::kubernetes::{ADMIN, LIMITED};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use crate::stage::{NAME, Namespace, election, epoch, meanwhile, refused, route, routed, stamp};

fn failure<T: std::fmt::Debug>(written: Result<T, FenceError>) -> Failure {
    match written.unwrap_err() {
        FenceError::Failed(failure) => failure,
        other => panic!("{other}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_and_annotations_of_others_stay_and_edits_by_hand_keep_the_epoch() {
    let namespace = Namespace::new().await;
    let object = namespace.object();
    object.update(epoch(7), |before| routed(before, "ours")).await.unwrap();
    namespace
        .edit(|found| {
            found["metadata"]["labels"] = json!({ "team": "a" });
            found["data"]["route"] = json!("by hand");
        })
        .await;
    assert_eq!(refused(object.update(epoch(6), |before| routed(before, "late")).await), (6, 7));
    object.update(epoch(8), |before| routed(before, "ours again")).await.unwrap();
    let found = namespace.found().await;
    assert_eq!(found["metadata"]["labels"]["team"], "a");
    assert_eq!(found["metadata"]["annotations"][EPOCH_ANNOTATION], "8");
    assert_eq!(found["metadata"]["annotations"][ELECTION_ANNOTATION], "reports%20%E2%84%961");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_without_an_epoch_is_refused_until_it_is_adopted() {
    let namespace = Namespace::new().await;
    let object = namespace.object();
    let none = failure(object.raise(epoch(1)).await);
    assert!(none.to_string().contains("create it first"), "{none}");
    namespace.create(json!({})).await;
    for failed in [
        failure(object.raise(epoch(1)).await),
        failure(object.update(epoch(1), |before| routed(before, "x")).await),
    ] {
        assert!(matches!(failed, Failure::Unstamped), "{failed}");
    }
    let seen = object.read().await.unwrap();
    assert_eq!((seen.stamp, seen.content.as_ref().map(route)), (None, Some("by hand")));
    assert_eq!(route(&object.adopt(epoch(5)).await.unwrap()), "by hand");
    assert_eq!(object.read().await.unwrap().stamp, stamp(5));
    // As `kubectl replace` with a file that knows nothing of epochs.
    namespace.edit(|found| found["metadata"]["annotations"] = Value::Null).await;
    assert!(matches!(failure(object.raise(epoch(6)).await), Failure::Unstamped));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_election_and_an_unreadable_epoch_are_refused() {
    let namespace = Namespace::new().await;
    let object = namespace.object();
    let ours = "reports%20%E2%84%961";
    namespace.create(json!({ EPOCH_ANNOTATION: Epoch::MAX.to_string(), ELECTION_ANNOTATION: ours })).await;
    let before_last = epoch(Epoch::MAX.get() - 1);
    assert_eq!(refused(object.raise(before_last).await), (before_last.get(), Epoch::MAX.get()));
    object.raise(Epoch::MAX).await.unwrap();
    for annotations in [
        json!({ EPOCH_ANNOTATION: "9007199254740992", ELECTION_ANNOTATION: ours }),
        json!({ EPOCH_ANNOTATION: "07", ELECTION_ANNOTATION: ours }),
        json!({ EPOCH_ANNOTATION: "7" }),
        json!({ ELECTION_ANNOTATION: ours }),
    ] {
        namespace.edit(|found| found["metadata"]["annotations"] = annotations.clone()).await;
        for failed in [failure(object.raise(Epoch::MAX).await), failure(object.adopt(Epoch::MAX).await)] {
            assert!(matches!(failed, Failure::Unreadable(_)), "{annotations}: {failed}");
        }
    }
    let theirs = json!({ EPOCH_ANNOTATION: "1", ELECTION_ANNOTATION: "billing" });
    namespace.edit(|found| found["metadata"]["annotations"] = theirs).await;
    let failed = failure(object.adopt(Epoch::MAX).await);
    assert!(matches!(failed, Failure::OtherElection { .. }), "{failed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_known_only_at_run_time_is_fenced_as_well() {
    let namespace = Namespace::new().await;
    let objects = namespace.objects(&namespace.server.kubeconfig(ADMIN), "");
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("coordination.k8s.io", "v1", "Lease"));
    let here = Some(namespace.name.clone());
    let lease = FencedObject::of_kind(objects, kind.clone(), here, NAME, election());
    let held = |before: Option<DynamicObject>| {
        let mut object = before.unwrap_or_else(|| DynamicObject::new(NAME, &kind));
        object.data["spec"] = json!({ "holderIdentity": "somebody" });
        object
    };
    lease.update(epoch(2), held).await.unwrap();
    assert_eq!(refused(lease.update(epoch(1), held).await), (1, 2));
    assert_eq!(lease.raise(epoch(3)).await.unwrap().data["spec"]["holderIdentity"], "somebody");
    // A PUT of a Lease would make one that was deleted, if it did not name the one that it replaces.
    let mut looks = 0;
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases/{NAME}", namespace.name);
    let made = lease.update(epoch(3), |before| {
        looks += 1;
        if looks == 1 {
            meanwhile(namespace.server.api("DELETE", &path, Value::Null));
        }
        held(before)
    });
    made.await.unwrap();
    assert_eq!(looks, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_no_right_to_write_is_told_so() {
    let namespace = Namespace::new().await;
    let objects = namespace.objects(&namespace.server.kubeconfig(LIMITED[0]), "");
    let object: FencedObject<ConfigMap> = FencedObject::new(objects, &namespace.name, NAME, election());
    let failed = failure(object.update(epoch(1), |before| routed(before, "x")).await);
    assert!(failed.to_string().contains("cannot get the ConfigMap routes: grant that verb"), "{failed}");
}
