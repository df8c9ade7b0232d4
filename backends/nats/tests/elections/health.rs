//! Questions about health, between nodes of ours and those of others.

use std::sync::Arc;
use std::time::Duration;

use crate::support::{PATIENCE, actor, cluster};
use async_nats::Client;
use bellwether_core::ErrorKind;
use bellwether_deadman::boot_now;
use bellwether_nats::{Config, HealthChecker, Nats, Response, from_url};
use bellwether_support::servers::nats::{Server, Version};
use bellwether_support::{clock, until};
use serde_json::{Value, json};

const LONG: Duration = Duration::from_secs(10);

fn checker(server: &Server, node: &str) -> HealthChecker {
    HealthChecker::new(Config::from_url(&server.url()).unwrap(), "c", node, clock()).unwrap()
}

async fn ask(client: &Client, node: &str) -> Value {
    let answer = client.request(format!("cluster.c.health.{node}"), "".into()).await.expect("an answer");
    serde_json::from_slice(&answer.payload).expect("JSON")
}

/// The server has heard everything that this client has said: it knows that nobody listens there.
async fn settled(client: &Client) {
    assert!(client.request(client.new_inbox(), "".into()).await.is_err());
}

#[tokio::test]
async fn a_node_answers_in_the_fields_of_others_and_can_ask_others() {
    for version in [Version::Current, Version::Old] {
        let server = Server::start(version).await;
        let (a, b) = (checker(&server, "a"), checker(&server, "b"));
        a.start().await.unwrap();
        a.start().await.unwrap();
        let client = server.admin().await;
        let first = ask(&client, "a").await;
        let now = clock().wall().as_unix_nanos() / 1_000_000;
        assert_eq!((first["nodeId"].as_str(), first["role"].as_str()), (Some("a"), Some("UNKNOWN")));
        assert_eq!(first["leader"], "");
        assert!(first["uptimeMs"].as_i64().is_some_and(|up| up >= 0), "{first}");
        let told = first["timestamp"].as_i64().expect("a number");
        assert!((now - 60_000..=now).contains(&told), "{first}");
        assert!(first.get("custom").is_none(), "left out where there is nothing: {first}");

        a.set_role("PRIMARY");
        a.set_leader("a");
        a.set_custom("version", "1.2").unwrap();
        a.set_custom("lag", json!({ "seconds": 3 })).unwrap();
        let second = ask(&client, "a").await;
        assert_eq!((second["role"].as_str(), second["leader"].as_str()), (Some("PRIMARY"), Some("a")));
        assert_eq!(second["custom"], json!({ "version": "1.2", "lag": { "seconds": 3 } }));
        a.set_custom("lag", Value::Null).unwrap();
        let asked = b.query_node("a", LONG).await.unwrap();
        assert_eq!((asked.node_id.as_str(), asked.role.as_str()), ("a", "PRIMARY"));
        assert_eq!(asked.custom, [("version".to_owned(), json!("1.2"))].into());
        assert!(asked.uptime_ms >= first["uptimeMs"].as_i64().unwrap());

        // A node of somebody else's, with as little and as much as they say.
        let mut questions = client.subscribe("cluster.c.health.go").await.unwrap();
        settled(&client).await;
        let replies = client.clone();
        tokio::spawn(async move {
            while let Some(question) = futures_util::StreamExt::next(&mut questions).await {
                let answer = r#"{"nodeId":"go","role":"PASSIVE","leader":"a","uptimeMs":5,"timestamp":7,"custom":null,"x":1}"#;
                replies.publish(question.reply.unwrap(), answer.into()).await.unwrap();
            }
        });
        let go = b.query_node("go", LONG).await.unwrap();
        let expected = Response {
            node_id: "go".into(),
            role: "PASSIVE".into(),
            leader: "a".into(),
            uptime_ms: 5,
            timestamp: 7,
            custom: Default::default(),
        };
        assert_eq!(go, expected);
    }
}

#[tokio::test]
async fn a_node_that_is_not_there_is_told_from_one_that_does_not_answer() {
    let server = Server::start(Version::Current).await;
    let a = checker(&server, "a");
    let start = boot_now();
    let error = a.query_node("b", LONG).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("nobody answers for the node b"), "{error}");
    assert!(boot_now().since(start) < LONG, "at once, and not by a time-out");

    let client = server.admin().await;
    let _deaf = client.subscribe("cluster.c.health.b").await.unwrap();
    settled(&client).await;
    let limit = Duration::from_millis(200);
    let start = boot_now();
    assert_eq!(a.query_node("b", limit).await.unwrap_err().kind(), ErrorKind::TimedOut);
    let took = boot_now().since(start);
    assert!(took >= limit && took < LONG, "{took:?}");

    let b = checker(&server, "c");
    b.start().await.unwrap();
    a.query_node("c", LONG).await.unwrap();
    b.stop();
    let by = boot_now() + PATIENCE;
    while a.query_node("c", limit).await.is_ok() {
        assert!(boot_now() < by, "a stopped checker goes on answering");
    }
}

#[tokio::test]
async fn what_cannot_be_a_subject_or_a_message_is_refused() {
    let server = Server::start(Version::Current).await;
    for (cluster, node) in [("", "a"), ("c", ""), ("a.b", "a"), ("c", "*"), ("c", "a b")] {
        let config = Config::from_url(&server.url()).unwrap();
        let error = HealthChecker::new(config, cluster, node, clock()).err().expect("refused");
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }
    let a = checker(&server, "a");
    assert_eq!(a.query_node("b.c", LONG).await.unwrap_err().kind(), ErrorKind::InvalidInput);
    a.set_custom("fits", "x".repeat(60_000)).unwrap();
    let error = a.set_custom("more", "x".repeat(10_000)).unwrap_err();
    assert!(error.to_string().contains("65536 bytes"), "{error}");
}

#[tokio::test]
async fn it_shares_the_connection_of_the_elections_answers_again_after_an_outage_and_survives_a_panic() {
    let mut server = Server::start(Version::Current).await;
    let nats: Nats = from_url(&cluster(&server), clock()).unwrap();
    let health = Arc::new(nats.register().health("c", "a", clock()).unwrap());
    let ours = bellwether_support::Actor::new(nats, "a", crate::support::TTL);
    let _ = ours.lead().await;
    health.start().await.unwrap();
    let connections = server.monitored("/connz").await;
    assert_eq!(connections["num_connections"], 1, "{connections}");
    health.report(|| panic!("in somebody else's code"));
    let client = server.admin().await;
    assert_eq!(ask(&client, "a").await["role"], "UNKNOWN");
    health.report(|| ("PRIMARY".to_owned(), "a".to_owned()));
    server.down("KILL");
    server.up().await;
    let other = actor(&cluster(&server), "b");
    let asking = other.backend.register().health("c", "b", clock()).unwrap();
    let answer = until(|| asking.query_node("a", Duration::from_secs(1))).await;
    assert_eq!((answer.role.as_str(), answer.leader.as_str()), ("PRIMARY", "a"));
}
