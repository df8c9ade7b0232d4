//! What each kind of request is answered.

use bellwether_core::{ElectionName, Epoch};
use bellwether_fence::Stamp;
use bellwether_fence::http::{ELECTION, EPOCH, FenceLayer, stamp};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use crate::stage::{Stage, election, stamped};

#[tokio::test]
async fn a_late_epoch_is_told_both_epochs() {
    let stage = Stage::new(FenceLayer::in_memory(election())).await;
    for (number, status) in
        [(7, 200), (7, 200), (8, 200), (7, 412), (8, 200), (1, 412), (Epoch::MAX.get(), 200), (8, 412)]
    {
        assert_eq!(stage.post("/", number).await.status().await, status, "epoch {number}");
    }
    let (status, head, body) = stage.post("/", 9).await.answer().await;
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &body["error"], &body["epoch"]), (412, &Value::from("fenced"), &Value::from(9)));
    assert_eq!(
        (&body["latest"], &body["election"]),
        (&Value::from(Epoch::MAX.get()), &Value::from("reports №1"))
    );
    assert!(
        head.contains("bellwether-epoch: 9007199254740991") && head.contains("application/json"),
        "{head}"
    );
}

#[tokio::test]
async fn a_header_that_is_missing_or_makes_no_sense_is_told_apart() {
    let stage = Stage::new(FenceLayer::in_memory(election())).await;
    let with = |change: &dyn Fn(&mut HeaderMap)| {
        let mut headers = stamped(7);
        change(&mut headers);
        headers
    };
    let text = |text: &'static str| HeaderValue::from_static(text);
    for (headers, status, word) in [
        (HeaderMap::new(), 428, "epoch_required"),
        (with(&|headers| drop(headers.remove(EPOCH))), 428, "epoch_required"),
        (with(&|headers| drop(headers.remove(ELECTION))), 428, "epoch_required"),
        (with(&|headers| assert!(headers.append(EPOCH, text("7")))), 400, "malformed_epoch"),
        (with(&|headers| drop(headers.insert(EPOCH, text("9007199254740992")))), 400, "malformed_epoch"),
        (with(&|headers| drop(headers.insert(EPOCH, text("seven")))), 400, "malformed_epoch"),
        (with(&|headers| drop(headers.insert(EPOCH, text("007")))), 400, "malformed_epoch"),
        (with(&|headers| drop(headers.insert(ELECTION, text("a b")))), 400, "malformed_epoch"),
        (with(&|headers| drop(headers.insert(ELECTION, text("billing")))), 409, "other_election"),
        (with(&|_| {}), 200, ""),
    ] {
        let (answered, _, body) = stage.send("POST", "/", &headers).await.answer().await;
        assert_eq!(answered, status, "{headers:?}: {body}");
        assert!(body.contains(word), "{body}");
    }
    assert_eq!(stage.effects(), ["7 begins", "7 ends"], "nothing else was handled");
}

#[tokio::test]
async fn methods_that_change_nothing_pass_unless_every_method_is_fenced() {
    let stage = Stage::new(FenceLayer::in_memory(election())).await;
    for (method, status) in [
        ("GET", 200),
        ("HEAD", 200),
        ("OPTIONS", 200),
        ("PUT", 428),
        ("PATCH", 428),
        ("DELETE", 428),
        ("X", 428),
    ] {
        assert_eq!(stage.send(method, "/", &HeaderMap::new()).await.status().await, status, "{method}");
    }
    let strict = Stage::new(FenceLayer::in_memory(election()).every_method()).await;
    assert_eq!(strict.send("GET", "/", &HeaderMap::new()).await.status().await, 428);
    assert_eq!(strict.send("GET", "/", &stamped(1)).await.status().await, 200);
}

#[tokio::test]
async fn headers_may_have_other_names() {
    let names = (HeaderName::from_static("x-epoch"), HeaderName::from_static("x-election"));
    let layer = FenceLayer::in_memory(election()).headers(names.0.clone(), names.1.clone());
    let stage = Stage::new(layer).await;
    assert_eq!(stage.post("/", 1).await.status().await, 428);
    for (number, status) in [("2", 200), ("1", 412)] {
        let mut headers = stamped(1);
        let election = headers.remove(ELECTION).unwrap();
        headers.insert(&names.0, HeaderValue::from_static(number));
        headers.insert(&names.1, election);
        let (answered, head, _) = stage.send("POST", "/", &headers).await.answer().await;
        assert_eq!((answered, head.contains("x-epoch: 2")), (status, status == 412), "{head}");
    }
}

#[tokio::test]
async fn a_stamp_replaces_what_was_on_the_request() {
    let mut headers = stamped(3);
    headers.append(EPOCH, HeaderValue::from_static("4"));
    stamp(&mut headers, &Stamp::new(ElectionName::new("a").unwrap(), Epoch::new(5).unwrap()));
    assert_eq!(headers.get_all(EPOCH).iter().collect::<Vec<_>>(), ["5"]);
    assert_eq!(headers.get_all(ELECTION).iter().collect::<Vec<_>>(), ["a"]);
}
