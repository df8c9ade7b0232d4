//! A writer of an old epoch has looked, and its write comes late; and many of them race.

use std::time::Duration;

use bellwether_core::Epoch;
use bellwether_fence::FenceError;
use bellwether_fence::kubernetes::FencedObject;
use bellwether_support::proxy_to;
use bellwether_support::servers::kubernetes::ADMIN;
use futures_util::future::join_all;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::Value;

use crate::stage::{NAME, Namespace, election, epoch, meanwhile, refused, route, routed, stamp};

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_overtaken_between_its_look_and_its_write_is_fenced() {
    let namespace = Namespace::new().await;
    let (old, new) = (namespace.object(), namespace.object());
    // Both find nothing, and one creates it.
    let late = old.update(epoch(1), |before| {
        assert!(before.is_none());
        meanwhile(new.update(epoch(2), |before| routed(before, "later"))).unwrap();
        routed(before, "too late")
    });
    assert_eq!(refused(late.await), (1, 2));
    let late = old.update(epoch(2), |before| {
        assert_eq!(route(&meanwhile(new.raise(epoch(3))).unwrap()), "later");
        routed(before, "too late")
    });
    assert_eq!(refused(late.await), (2, 3));
    let value = new.read().await.unwrap();
    assert_eq!((value.content.as_ref().map(route), value.stamp), (Some("later"), stamp(3)));
    // An equal epoch is the same leader: it looks again, and writes.
    let mut looks = 0;
    let slow = old.update(epoch(3), |before| {
        looks += 1;
        if looks == 1 {
            meanwhile(new.update(epoch(3), |before| routed(before, "between"))).unwrap();
        }
        routed(before, "last")
    });
    assert_eq!(route(&slow.await.unwrap()), "last");
    assert_eq!(looks, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_was_deleted_and_made_anew_is_another_one() {
    let namespace = Namespace::new().await;
    let (old, new) = (namespace.object(), namespace.object());
    old.update(epoch(1), |before| routed(before, "first")).await.unwrap();
    let late = old.update(epoch(1), |before| {
        meanwhile(async {
            namespace.server.api("DELETE", &namespace.path(), Value::Null).await;
            new.update(epoch(2), |before| routed(before, "later")).await.unwrap();
        });
        routed(before, "too late")
    });
    assert_eq!(refused(late.await), (1, 2));
    // Deleted, and nobody has made it anew: it is not made by whoever had seen it, but looked for again.
    let mut looks = 0;
    let made = old.update(epoch(2), |before| {
        looks += 1;
        if looks == 1 {
            meanwhile(namespace.server.api("DELETE", &namespace.path(), Value::Null));
        }
        assert_eq!(before.is_some(), looks == 1);
        routed(before, "made anew")
    });
    assert_eq!(route(&made.await.unwrap()), "made anew");
    assert_eq!(looks, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_without_an_answer_is_unknown_and_harms_nobody_when_it_arrives() {
    let namespace = Namespace::new().await;
    let proxy = proxy_to(namespace.server.port()).await;
    let kubeconfig = namespace.server.kubeconfig_through(proxy.port(), ADMIN);
    let objects = namespace.objects(&kubeconfig, "&timeout=700ms");
    let old: FencedObject<ConfigMap> = FencedObject::new(objects, &namespace.name, NAME, election());
    let new = namespace.object();
    old.update(epoch(1), |before| routed(before, "first")).await.unwrap();
    let late = old.update(epoch(1), |before| {
        proxy.silence();
        routed(before, "too late")
    });
    let error = late.await.unwrap_err();
    assert!(matches!(error, FenceError::Unknown(_)), "{error}");
    let failed = old.update(epoch(1), |before| routed(before, "too late")).await.unwrap_err();
    assert!(matches!(failed, FenceError::Failed(_)) && failed.is_retryable(), "no look, no write: {failed}");
    new.update(epoch(2), |before| routed(before, "later")).await.unwrap();
    proxy.heal();
    while let Err(error) = old.read().await {
        assert!(error.is_retryable(), "{error}");
    }
    assert_eq!(refused(old.update(epoch(1), |before| routed(before, "too late")).await), (1, 2));
    assert_eq!(namespace.found().await["data"]["route"], "later");
}

const LEADERS: u64 = 3;
const WRITES: u64 = 25;

/// Counts up under an epoch of its own until it is fenced, and then under a later one. Returns how often it was fenced.
async fn lead_again_and_again(namespace: &Namespace, number: u64) -> u64 {
    let object = namespace.object();
    let (mut done, mut fenced) = (0, 0);
    let mut mine = epoch(LEADERS + number);
    while done < WRITES {
        let counted = object.update(mine, |before| {
            let count: u64 = before.as_ref().map_or(0, |before| route(before).parse().unwrap());
            routed(before, &(count + 1).to_string())
        });
        match counted.await {
            Ok(_) => done += 1,
            Err(FenceError::Fenced(by)) => {
                assert!(by.mine == mine && by.latest > mine, "{by:?}");
                fenced += 1;
                mine = next_of(number, by.latest);
            }
            Err(other) => panic!("{other}"),
        }
    }
    fenced
}

/// The first epoch above this one that is nobody else's.
fn next_of(number: u64, latest: Epoch) -> Epoch {
    let above = latest.get() + 1;
    epoch(above + (LEADERS + number - above % LEADERS) % LEADERS)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_observed_never_goes_back_and_no_write_is_lost() {
    let namespace = Namespace::new().await;
    let leaders = join_all((0..LEADERS).map(|number| lead_again_and_again(&namespace, number)));
    let observer = async {
        let object = namespace.object();
        let mut last = (epoch(0), 0);
        while last.1 < LEADERS * WRITES {
            let value = object.read().await.unwrap();
            let count = value.content.map_or(0, |object| route(&object).parse().unwrap());
            let now = (value.stamp.map_or(epoch(0), |stamp| stamp.epoch), count);
            assert!(now.0 >= last.0 && now.1 >= last.1, "{now:?} after {last:?}");
            last = now;
        }
    };
    let both = async { tokio::join!(leaders, observer) };
    let (fenced, ()) = tokio::time::timeout(Duration::from_secs(60), both).await.unwrap();
    assert_eq!(namespace.found().await["data"]["route"], (LEADERS * WRITES).to_string());
    println!("{} writes, {} fenced", LEADERS * WRITES, fenced.iter().sum::<u64>());
    assert!(fenced.iter().sum::<u64>() > 0, "they never met");
}
