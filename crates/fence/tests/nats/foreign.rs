//! What others read and write under a fenced key, and buckets that keep no epoch.

use std::sync::Arc;

use bellwether_core::{ElectionName, Epoch};
use bellwether_fence::nats::{Config, FencedKey, Keys};
use bellwether_fence::{Failure, FenceError};
use bellwether_support::servers::nats::{Server, Version};
use serde_json::json;

use crate::stage::{BUCKET, KEY, election, epoch, key, message, refused, server, stamp};

fn failure<T: std::fmt::Debug>(written: Result<T, FenceError>) -> Failure {
    match written.unwrap_err() {
        FenceError::Failed(failure) => failure,
        other => panic!("{other}"),
    }
}

fn last() -> serde_json::Value {
    json!({ "last_by_subj": format!("$KV.{BUCKET}.{KEY}") })
}

/// Writes the key with these headers, as another program would.
async fn put(server: &Server, headers: &[(&str, &str)], value: &str) {
    let mut map = async_nats::HeaderMap::new();
    for (name, value) in headers {
        map.append(*name, *value);
    }
    let subject = format!("$KV.{BUCKET}.{KEY}");
    server.admin().await.request_with_headers(subject, map, value.to_owned().into()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn others_read_the_plain_value() {
    let server = server(Version::Current).await;
    key(&server).write(epoch(7), b"via a\n").await.unwrap();
    let (headers, payload) = message(&server, last()).await.unwrap();
    assert_eq!(payload, b"via a\n");
    assert!(headers.contains("Bellwether-Epoch: 7\r\n"), "{headers}");
    assert!(headers.contains("Bellwether-Election: reports%20%E2%84%961\r\n"), "{headers}");
    assert!(!headers.contains("KV-Operation"), "{headers}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_without_an_epoch_is_refused_until_it_is_adopted() {
    let server = server(Version::Current).await;
    let key = key(&server);
    for value in [Some(&b"by hand"[..]), None] {
        server.put(BUCKET, KEY, value).await;
        for failed in [failure(key.write(epoch(5), b"x").await), failure(key.raise(epoch(5)).await)] {
            assert!(matches!(failed, Failure::Unstamped), "{failed}");
        }
        let seen = key.read().await.unwrap();
        assert_eq!((seen.content.as_deref(), seen.stamp), (value, None));
        assert_eq!(key.adopt(epoch(5)).await.unwrap().as_deref(), value);
        assert_eq!(key.read().await.unwrap().stamp, stamp(5));
        assert_eq!(refused(key.write(epoch(4), b"x").await), (4, 5));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_election_and_an_unreadable_epoch_are_refused() {
    let server = server(Version::Current).await;
    let key = key(&server);
    put(
        &server,
        &[("Bellwether-Epoch", "9007199254740991"), ("Bellwether-Election", "reports%20%E2%84%961")],
        "x",
    )
    .await;
    let before_last = Epoch::new(Epoch::MAX.get() - 1).unwrap();
    assert_eq!(refused(key.write(before_last, b"x").await), (before_last.get(), Epoch::MAX.get()));
    key.write(Epoch::MAX, b"the last").await.unwrap();
    for headers in [
        &[("Bellwether-Epoch", "9007199254740992"), ("Bellwether-Election", "reports%20%E2%84%961")][..],
        &[
            ("Bellwether-Epoch", "1"),
            ("Bellwether-Epoch", "2"),
            ("Bellwether-Election", "reports%20%E2%84%961"),
        ],
        &[("Bellwether-Epoch", "1")],
        &[("Bellwether-Election", "reports%20%E2%84%961")],
    ] {
        put(&server, headers, "x").await;
        for failed in [failure(key.write(Epoch::MAX, b"x").await), failure(key.adopt(Epoch::MAX).await)] {
            assert!(matches!(failed, Failure::Unreadable(_)), "{headers:?}: {failed}");
        }
    }
    put(&server, &[("Bellwether-Epoch", "1"), ("Bellwether-Election", "billing")], "x").await;
    let failed = failure(key.adopt(Epoch::MAX).await);
    assert!(matches!(failed, Failure::OtherElection { .. }), "{failed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_that_keeps_no_epoch_is_refused_with_what_to_change() {
    let server = Server::start(Version::Current).await;
    server.bucket("forgetful", json!({ "max_age": 60_000_000_000_u64 })).await;
    server.bucket("volatile", json!({ "storage": "memory" })).await;
    server.bucket("fit", json!({})).await;
    let of = |bucket: &str, key: &str| {
        let config = Config::from_url(&format!("{}?bucket={bucket}", server.url())).unwrap();
        FencedKey::new(Arc::new(Keys::new(config)), key, ElectionName::new("reports").unwrap())
    };
    for (bucket, name, part) in [
        ("forgetful", KEY, "set its max age to 0"),
        ("volatile", KEY, "use file storage"),
        ("missing", KEY, "there is no bucket missing"),
        ("fit", "routes.>", "cannot be a key"),
        ("fit", "*", "cannot be a key"),
    ] {
        let key = of(bucket, name);
        for _ in 0..2 {
            let failed = failure(key.write(epoch(1), b"x").await);
            assert!(failed.to_string().contains(part), "{failed}");
        }
    }
    let fit = FencedKey::new(
        Arc::new(Keys::new(Config::from_url(&format!("{}?bucket=fit", server.url())).unwrap())),
        "a/b.c",
        election(),
    );
    fit.write(epoch(1), b"x").await.unwrap();
}
