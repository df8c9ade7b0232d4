//! The command in the NATS profile `cluster`: its timing, and looking, asking and remembering without a surprise in the bucket.

use bellwether_deadman::boot_now;
use bellwether_support::servers::nats::{Server, Version};
use bellwether_support::until;
use bellwether_tests::{Candidate, OutputLines, PATIENCE, bellwether, command, json, on};
use futures_util::StreamExt;
use rustix::process::Signal;
use serde_json::{Value, json};

const BUCKET: &str = "cluster-job";

fn candidate(url: &str, id: &str, more: &[&str]) -> Candidate {
    let mut command = command(url, &["--id", id, "run", "job", "--events"]);
    command.args(more);
    Candidate::start(command)
}

fn cluster(server: &Server) -> String {
    format!("{}?profile=cluster&create=yes", server.url())
}

#[test]
fn the_profile_s_own_timing_holds_where_no_flag_says_otherwise() {
    let explain = |url: &str, more: &[&str]| {
        let explained = json(&on(url, &[&["explain", "-o", "json"], more].concat()));
        ["ttl_ms", "renew_ms"].map(|field| explained[field].as_f64().expect("a number"))
    };
    let url = "nats://127.0.0.1?profile=cluster";
    assert_eq!(explain(url, &[]), [10_000.0, 3_000.0]);
    assert_eq!(explain(url, &["--ttl", "30s"]), [30_000.0, 10_000.0]);
    assert_eq!(explain(url, &["--renew", "1s"]), [10_000.0, 1_000.0]);
    assert_eq!(explain("nats://127.0.0.1", &[]), [15_000.0, 5_000.0]);
    assert_eq!(explain("memory:", &[]), [15_000.0, 5_000.0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn candidates_are_looked_at_and_asked_to_hand_over() {
    let server = Server::start(Version::Current).await;
    let url = cluster(&server);
    let mut first = candidate(&url, "a", &[]);
    first.expect("acquired");
    let made = server.api(&format!("STREAM.INFO.KV_{BUCKET}"), json!({})).await;
    assert_eq!(made["config"]["max_age"].as_u64(), Some(20_000_000_000), "two ttls: {made}");
    let shown = json(&on(&url, &["status", "job", "-o", "json"]));
    assert_eq!((shown["ttl_ms"].as_u64(), shown["holder"].as_str()), (Some(10_000), Some("a")), "{shown}");
    let mut second = candidate(&url, "b", &[]);
    second.joined();

    let asked = on(&url, &["step-down", "job", "-o", "json"]);
    assert_eq!(asked.status.code(), Some(0), "{asked:?}");
    assert_eq!(json(&asked)["to"], "b");
    second.expect("acquired");
    // The cooldown is written after the release, and before it is told.
    first.expect("lost");
    first.kill();
    // It is in the bucket, and the same id stays away after a restart.
    let mut again = candidate(&url, "a", &[]);
    again.joined();
    let listed = on(&url, &["status"]);
    assert_eq!(listed.status.code(), Some(64), "{listed:?}");
    assert_eq!(server.keys(BUCKET).await, ["cooldown-a", "lease"], "no other key is added");
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_of_another_program_who_takes_over_is_a_successor() {
    let server = Server::start(Version::Current).await;
    let url = cluster(&server);
    let mut first = candidate(&url, "a", &["--cooldown", "10m"]);
    first.expect("acquired");
    let mut asked = OutputLines::run(command(&url, &["step-down", "job", "-o", "json"]));
    first.expect("lost");
    let lease = br#"{"node_id":"go-1","epoch":7,"expires_at":"2124-01-15T10:30:00Z","acquired_at":"2024-01-15T10:29:50Z"}"#;
    server.put(BUCKET, "lease", Some(lease)).await;
    let answer: Value = serde_json::from_str(&asked.line()).expect("JSON");
    assert_eq!((answer["from"].as_str(), answer["to"].as_str()), (Some("a"), Some("go-1")), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn past_leaderships_are_kept_in_a_bucket_of_their_own() {
    let server = Server::start(Version::Current).await;
    let url = cluster(&server);
    for looking in [&["history", "job"][..], &["status", "job"], &["doctor", "--no-write"]] {
        let looked = on(&url, looking);
        assert!(matches!(looked.status.code(), Some(0 | 1)), "{looked:?}");
    }
    assert!(server.revisions().await.is_empty(), "looking made a bucket");
    let short = ["--ttl", "2s", "--renew", "500ms"];
    let mut killed = candidate(&url, "a", &short);
    let acquired = killed.expect("acquired");
    let first = || json(&on(&url, &["history", "job", "-o", "json"]))[0].clone();
    let by = boot_now() + PATIENCE;
    while first()["epoch"].as_u64() != acquired.epoch() {
        assert!(boot_now() < by, "it is not written down");
    }
    killed.kill();
    for id in ["b", "c"] {
        let mut next = candidate(&url, id, &short);
        next.expect("acquired");
        next.signal(Signal::TERM);
        assert_eq!(next.ended().code, Some(0));
    }
    let past = json(&on(&url, &["history", "job", "-o", "json"]));
    let told: Vec<_> = past
        .as_array()
        .expect("an array")
        .iter()
        .map(|one| (one["id"].as_str(), one["ended"].as_str()))
        .collect();
    let released = Some("released");
    assert_eq!(told, [(Some("a"), None), (Some("b"), released), (Some("c"), released)], "{past}");
    assert_eq!(server.keys("bellwether").await, ["cluster.history.job"]);
    let old = on(&format!("{url}&bucket=past"), &["history", "job"]);
    assert_eq!(old.status.code(), Some(64), "{old:?}");
    assert!(String::from_utf8_lossy(&old.stderr).contains("notes=NAME"), "{old:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_leader_is_shown_and_cannot_be_asked() {
    let server = Server::start(Version::Current).await;
    server.bucket(BUCKET, json!({})).await;
    let lease = br#"{"node_id":"go-1","epoch":7,"expires_at":"2024-01-15T10:30:00Z","acquired_at":"2024-01-15T10:29:50Z"}"#;
    server.put(BUCKET, "lease", Some(lease)).await;
    let before = server.last_sequence(BUCKET).await;
    let url = cluster(&server);
    let shown = json(&on(&url, &["status", "job", "-o", "json"]));
    assert_eq!((shown["holder"].as_str(), shown["epoch"].as_u64()), (Some("go-1"), Some(7)), "{shown}");
    let asked = on(&url, &["step-down", "job"]);
    assert!(String::from_utf8_lossy(&asked.stderr).contains("cannot be asked"), "{asked:?}");
    let bad = on(&url, &["--id", "host.example", "acquire", "job"]);
    assert_eq!(bad.status.code(), Some(64), "{bad:?}");
    assert_eq!(server.last_sequence(BUCKET).await, before, "nobody has written");
}

fn stderr(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn candidates_answer_questions_about_their_health() {
    let server = Server::start(Version::Current).await;
    let url = cluster(&server);
    let nobody = on(&url, &["nats", "health", "job"]);
    assert_eq!(nobody.status.code(), Some(1), "{}", stderr(&nobody));
    let mut first = candidate(&url, "a", &[]);
    first.expect("acquired");
    let mut second = candidate(&url, "b", &[]);
    second.joined();
    // It answers from when it has a connection, which nobody announces.
    let asked = |node: Option<&'static str>| {
        let url = url.clone();
        async move {
            let arguments = [&["nats", "health", "job", "-o", "json"][..], node.as_slice()].concat();
            let output = on(&url, &arguments);
            if output.status.success() { Ok(json(&output)) } else { Err(stderr(&output)) }
        }
    };
    let leader = until(|| asked(None)).await;
    assert_eq!((leader["node"].as_str(), leader["role"].as_str()), (Some("a"), Some("PRIMARY")), "{leader}");
    let follower = until(|| asked(Some("b"))).await;
    assert_eq!(
        (follower["role"].as_str(), follower["leader"].as_str()),
        (Some("PASSIVE"), Some("a")),
        "{follower}"
    );
    // As a node of go-cluster asks, and as one answers.
    let client = server.admin().await;
    let told = client.request("cluster.job.health.b", "".into()).await.expect("an answer");
    let told: Value = serde_json::from_slice(&told.payload).expect("JSON");
    assert_eq!((told["nodeId"].as_str(), told["role"].as_str()), (Some("b"), Some("PASSIVE")), "{told}");
    let mut questions = client.subscribe("cluster.job.health.go").await.expect("it may");
    client.flush().await.expect("the server listens");
    let answering = tokio::spawn(async move {
        let reply = questions.next().await.and_then(|question| question.reply).expect("a question");
        let answer =
            r#"{"nodeId":"go","role":"PASSIVE","leader":"a","uptimeMs":61000,"timestamp":0,"custom":null}"#;
        client.publish(reply, answer.into()).await.expect("the server listens");
        client.flush().await.expect("the server listens");
    });
    let theirs = on(&url, &["nats", "health", "job", "go"]);
    assert_eq!(theirs.status.code(), Some(0), "{}", stderr(&theirs));
    assert!(String::from_utf8_lossy(&theirs.stdout).contains("1m1s"), "{theirs:?}");
    answering.await.expect("it was asked");
    // Whoever has left answers no more.
    second.signal(Signal::TERM);
    assert_eq!(second.ended().code, Some(0));
    let gone = on(&url, &["nats", "health", "job", "b"]);
    assert_eq!(gone.status.code(), Some(69), "{}", stderr(&gone));
    let elsewhere = on(&server.url(), &["nats", "health", "job", "b"]);
    assert_eq!(elsewhere.status.code(), Some(64), "{}", stderr(&elsewhere));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_candidate_that_may_not_answer_says_so_and_leads_all_the_same() {
    let config = r#"authorization { users = [
        { user: all, password: x },
        { user: mute, password: x, permissions: { subscribe: { deny: "cluster.>" } } },
    ] }
    no_auth_user: all"#;
    let server = Server::start_with(Version::Current, config).await;
    let url = format!("nats://mute:x@127.0.0.1:{}?profile=cluster&create=yes", server.port());
    // The log in the place of stdout, read as it comes.
    let mut command = std::process::Command::new("sh");
    command
        .args(["-c", r#"exec "$0" --id a run job 2>&1"#])
        .arg(bellwether())
        .env("BELLWETHER_BACKEND", &url);
    let mut leader = OutputLines::run(command);
    leader.until(|line| line.contains("may not subscribe to cluster.job.health.a"));
    let leads = || async {
        let shown = on(&url, &["status", "job"]);
        if shown.status.success() { Ok(()) } else { Err("nobody leads") }
    };
    until(leads).await;
}
