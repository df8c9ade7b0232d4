//! What is wrong ends with its code and a sentence, and a password is never in it.

use bellwether_support::servers::nats::{Server, Version};
use bellwether_tests::{Candidate, command, on};
use serde_json::json;

use super::{BUCKET, said, server};

const RUN: &[&str] = &["-v", "run", "job", "--ttl", "2s"];

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_ends_with_its_code_and_never_says_the_password() {
    let config = r#"authorization { users = [
        { user: all, password: open-sesame },
        { user: some, password: open-sesame, permissions: { publish: ["$JS.API.STREAM.>", "$JS.API.CONSUMER.>"], subscribe: "_INBOX.>" } },
    ] }
    no_auth_user: all"#;
    let server = Server::start_with(Version::Current, config).await;
    server.bucket(BUCKET, json!({})).await;
    server.bucket("memory", json!({ "storage": "memory" })).await;
    server.bucket("once", json!({ "discard_new_per_subject": true })).await;
    let place = format!("127.0.0.1:{}", server.port());
    let wait = ["-v", "run", "job", "--ttl", "2s", "--wait", "1s"];
    for (url, arguments, code, part) in [
        (format!("nats://{place}?bucket=missing"), RUN, 78, "create=yes"),
        (format!("nats://{place}?bucket=missing"), &["status", "job"], 78, "create=yes"),
        (format!("nats://{place}?bucket=memory"), RUN, 78, "file storage"),
        (format!("nats://{place}?bucket=once"), RUN, 78, "discard_new_per_subject"),
        (format!("nats://{place}?bucket=r3&create=yes&replicas=3"), RUN, 78, "10074"),
        (format!("nats://{place}?ca=/nowhere/ca.pem"), RUN, 78, "cannot read /nowhere/ca.pem"),
        (format!("nats://{place}?nkey=/dev/null"), RUN, 78, "/dev/null holds no seed"),
        (format!("nats://all:close-sesame@{place}"), RUN, 77, "rejected the login"),
        (format!("nats://all:close-sesame@{place}"), &["doctor"], 77, "rejected the login"),
        (format!("nats://some:open-sesame@{place}"), RUN, 77, "may not publish to $KV.bellwether"),
        ("nats://all:open-sesame@127.0.0.1:1".to_owned(), &wait, 69, "reached"),
        ("nats://all:open-sesame@127.0.0.1:1".to_owned(), &["status", "job"], 69, "reached"),
        (format!("nats://all:open-sesame@{place}?bukket=b"), RUN, 64, "bukket"),
        (format!("nats://all:open-sesame@{place}:x"), RUN, 64, "HOST:PORT"),
        (format!("nats://all:open-sesame@{place}?replicas=9"), RUN, 64, "from 1 to 5"),
        (format!("nats://all:open-sesame@{place}?creds=/nowhere/sesame"), RUN, 78, "cannot read /nowhere"),
    ] {
        let output = on(&url, arguments);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(code), "{url} {arguments:?}: {said}");
        let said = said.replace("/nowhere/sesame", "/nowhere");
        assert!(said.contains(part) && !said.contains("sesame"), "{url} {arguments:?}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_does_not_inherit_the_password() {
    let server =
        Server::start_with(Version::Current, "authorization { user: all, password: open-sesame }").await;
    let url = format!("nats://all:open-sesame@127.0.0.1:{}?create=yes", server.port());
    let ran = on(&url, &["run", "job", "--ttl", "2s", "--", "env"]);
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    let said = said(&ran);
    assert!(said.contains("BELLWETHER_EPOCH=") && !said.contains("sesame"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_that_is_deleted_ends_a_candidate_with_its_code() {
    let (server, url) = server(Version::Current).await;
    let mut leader = Candidate::start(command(&url, &["run", "job", "--ttl", "2s", "--events"]));
    leader.expect("acquired");
    server.remove_bucket(BUCKET).await;
    leader.expect("lost");
    let ended = leader.ended();
    assert_eq!(ended.code, Some(78), "{}", ended.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn rights_that_are_missing_are_told_before_they_are_needed() {
    let config = r#"authorization { users = [
        { user: all, password: x },
        { user: deaf, password: x, permissions: { publish: { deny: "$JS.API.CONSUMER.>" } } },
        { user: mute, password: x, permissions: { publish: { deny: "$KV.>" } } },
    ] }
    no_auth_user: all"#;
    let server = Server::start_with(Version::Current, config).await;
    server.bucket(BUCKET, json!({})).await;
    let by = |user: &str| format!("nats://{user}:x@127.0.0.1:{}", server.port());
    let mut leader =
        Candidate::start(command(&by("all"), &["--id", "a", "run", "job", "--ttl", "2s", "--events"]));
    leader.expect("acquired");
    // Somebody leads, and so neither of them has to watch or to write.
    let mute = on(&by("mute"), RUN);
    assert_eq!(mute.status.code(), Some(77), "{}", said(&mute));
    assert!(said(&mute).contains("may not publish to $KV.bellwether.election.job"), "{}", said(&mute));
    let deaf = on(&by("deaf"), &["run", "job", "--ttl", "2s", "--wait", "2s"]);
    assert_eq!(deaf.status.code(), Some(75), "{}", said(&deaf));
    let warning = "may not publish to $JS.API.CONSUMER.CREATE.KV_bellwether";
    assert_eq!(said(&deaf).matches(warning).count(), 1, "once: {}", said(&deaf));
    let shown = on(&by("deaf"), &["status", "job", "--confirm", "-o", "json"]);
    let unwatched = bellwether_tests::json(&shown)["unwatched"].as_str().map(str::to_owned);
    assert!(unwatched.is_some_and(|why| why.contains(warning)), "{}", said(&shown));
    let shown = on(&by("deaf"), &["status", "job", "--confirm"]);
    assert!(said(&shown).contains(warning), "{}", said(&shown));
    let shown = on(&by("all"), &["status", "job", "--confirm", "-o", "json"]);
    assert!(bellwether_tests::json(&shown)["unwatched"].is_null(), "{}", said(&shown));
}
