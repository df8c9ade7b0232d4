//! A writer of an old epoch has looked, and its write comes late.

use std::time::Duration;

use bellwether_fence::FenceError;
use bellwether_support::proxy_to;
use bellwether_support::servers::nats::Version;
use serde_json::json;

use crate::stage::{KEY, epoch, key, key_through, meanwhile, message, refused, server, stamp};

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_overtaken_between_its_look_and_its_write_is_fenced() {
    for version in [Version::Current, Version::Old] {
        let server = server(version).await;
        let (old, new) = (key(&server), key(&server));
        old.write(epoch(1), b"first").await.unwrap();
        for (mine, later, writes) in [(1, 2, 1), (2, 3, 9)] {
            let mut looks = 0;
            let late = old.update(epoch(mine), |_| {
                looks += 1;
                for _ in 0..writes {
                    meanwhile(new.write(epoch(later), b"later")).unwrap();
                }
                b"too late".to_vec()
            });
            assert_eq!(refused(late.await), (mine, later), "{version:?}");
            assert_eq!(looks, 1);
            let value = new.read().await.unwrap();
            assert_eq!((value.content.as_deref(), value.stamp), (Some(&b"later"[..]), stamp(later)));
        }
        let late = old.update(epoch(3), |_| {
            assert_eq!(meanwhile(new.raise(epoch(4))).unwrap().as_deref(), Some(&b"later"[..]));
            b"too late".to_vec()
        });
        assert_eq!(refused(late.await), (3, 4));
        // An equal epoch is the same leader: it looks again, and writes.
        let mut looks = 0;
        let slow = old.update(epoch(4), |_| {
            looks += 1;
            if looks == 1 {
                meanwhile(new.write(epoch(4), b"between")).unwrap();
            }
            b"last".to_vec()
        });
        assert_eq!(slow.await.unwrap(), b"last");
        assert_eq!(looks, 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_that_find_nothing_write_one_after_the_other() {
    let server = server(Version::Current).await;
    let (old, new) = (key(&server), key(&server));
    let late = old.update(epoch(1), |before| {
        assert_eq!(before, None);
        meanwhile(new.write(epoch(2), b"later")).unwrap();
        b"too late".to_vec()
    });
    assert_eq!(refused(late.await), (1, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removal_is_a_plain_deletion_that_refuses_earlier_epochs() {
    for version in [Version::Current, Version::Old] {
        let server = server(version).await;
        let key = key(&server);
        key.write(epoch(1), b"first").await.unwrap();
        key.remove(epoch(2)).await.unwrap();
        let value = key.read().await.unwrap();
        assert_eq!((value.content, value.stamp), (None, stamp(2)));
        let (headers, payload) =
            message(&server, json!({ "last_by_subj": format!("$KV.settings.{KEY}") })).await.unwrap();
        assert!(headers.contains("KV-Operation: DEL") && payload.is_empty(), "{headers}");
        assert_eq!(refused(key.write(epoch(1), b"late").await), (1, 2));
        assert_eq!(key.raise(epoch(3)).await.unwrap(), None);
        assert_eq!(refused(key.write(epoch(2), b"late").await), (2, 3));
        key.write(epoch(3), b"again").await.unwrap();
        assert_eq!(key.read().await.unwrap().content.as_deref(), Some(&b"again"[..]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_without_an_answer_is_unknown_and_harms_nobody_when_it_arrives() {
    let server = server(Version::Current).await;
    let proxy = proxy_to(server.port()).await;
    let (old, new) = (key_through(proxy.port(), Duration::from_millis(500)), key(&server));
    old.write(epoch(1), b"first").await.unwrap();
    let late = old.update(epoch(1), |_| {
        proxy.silence();
        b"too late".to_vec()
    });
    let error = late.await.unwrap_err();
    assert!(matches!(error, FenceError::Unknown(_)), "{error}");
    assert!(error.is_retryable());
    new.write(epoch(2), b"later").await.unwrap();
    // Now the server gets it.
    proxy.heal();
    let again = old.write(epoch(1), b"too late").await;
    assert!(again.is_err());
    while let Err(error) = old.read().await {
        assert!(error.is_retryable(), "{error}");
    }
    assert_eq!(refused(old.write(epoch(1), b"too late").await), (1, 2));
    let value = new.read().await.unwrap();
    assert_eq!((value.content.as_deref(), value.stamp), (Some(&b"later"[..]), stamp(2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_stopped_before_the_look_makes_a_write_fail() {
    let server = server(Version::Current).await;
    let key = key_through(server.port(), Duration::from_millis(500));
    key.write(epoch(1), b"first").await.unwrap();
    server.stop();
    let error = key.write(epoch(1), b"second").await.unwrap_err();
    assert!(matches!(error, FenceError::Failed(_)) && error.is_retryable(), "{error}");
    server.resume();
    while let Err(error) = key.write(epoch(1), b"third").await {
        assert!(error.is_retryable(), "{error}");
    }
}
