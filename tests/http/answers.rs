//! Every endpoint that can be read, of a leader and of a follower, on a port and on a Unix socket.

use bellwether_tests::http::HttpPlace;
use bellwether_tests::{json, on};

use super::{follower, leader, served_at, temporary, until_status};

#[test]
fn leader_answers_load_balancers_and_says_for_how_long() {
    let directory = temporary();
    let (mut first, of_first) = leader(directory.path(), "a", &["--ttl", "30s"]);
    let (_second, of_second) = follower(directory.path(), "b", &["--ttl", "30s"]);
    let leads = of_first.get("/leader");
    assert_eq!(leads.status, 200, "{leads:?}");
    assert!(leads.head.contains("cache-control: no-store"), "{leads:?}");
    let body = leads.json();
    assert_eq!((body["election"].as_str(), body["leader"].as_str()), (Some("job"), Some("a")));
    assert_eq!(body["epoch"].as_u64(), first.heard("acquired").epoch());
    let valid = body["valid_ms"].as_u64().expect("a number");
    assert!(valid > 0 && valid <= 27_000, "at most the ttl without its margin: {valid}");
    let follows = of_second.get("/leader");
    assert_eq!(follows.status, 503);
    assert_eq!(
        (follows.json()["leader"].as_str(), follows.json()["valid_ms"].as_u64()),
        (Some("a"), Some(0))
    );
    for (place, status) in [(&of_first, 200), (&of_second, 503)] {
        let head = place.request("HEAD", "/leader", &[], "");
        assert_eq!((head.status, head.body.as_str()), (status, ""), "{head:?}");
    }
}

#[test]
fn health_is_not_leadership() {
    let directory = temporary();
    let (_first, of_first) = leader(directory.path(), "a", &["--ttl", "30s"]);
    let (_second, of_second) = follower(directory.path(), "b", &["--ttl", "30s"]);
    for place in [&of_first, &of_second] {
        assert_eq!((place.get("/livez").status, place.get("/readyz").status), (200, 200));
    }
    assert_eq!(of_second.get("/readyz").json()["connection"].as_str(), Some("connected"));
    // A store that cannot be reached: alive, and not ready.
    let place = HttpPlace::free_port();
    let mut command =
        bellwether_tests::command("raft://127.0.0.1:1", &["run", "job", "--http", &place.flag()]);
    let mut lonely = command
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("it starts");
    until_status(&place, "/livez", 200);
    let ready = place.get("/readyz");
    assert_eq!((ready.status, ready.json()["ready"].as_bool()), (503, Some(false)), "{ready:?}");
    lonely.kill().expect("our own child");
    lonely.wait().expect("our own child");
}

#[test]
fn the_root_is_a_page_for_browsers_and_the_leader_s_name_for_everybody_else() {
    let directory = temporary();
    let (_leader, place) = leader(directory.path(), "<a>", &["--ttl", "30s"]);
    let plain = place.get("/");
    assert_eq!((plain.status, plain.json()["name"].as_str()), (200, Some("<a>")));
    let page = place.request("GET", "/", &["accept: text/html,*/*;q=0.8"], "");
    assert!(page.head.contains("content-type: text/html"), "{page:?}");
    assert!(page.body.starts_with("<!doctype html>") && !page.body.contains("<a>"), "{page:?}");
    let style = place.get("/dashboard/style.css");
    assert!(style.status == 200 && style.head.contains("content-type: text/css"), "{style:?}");
    assert_eq!(place.get("/dashboard/page.htm").status, 404);
}

#[test]
fn a_candidate_says_how_it_stands_and_the_elections_of_the_store_are_listed_by_name() {
    let directory = temporary();
    let (_first, of_first) = leader(directory.path(), "a", &["--ttl", "30s", "--renew", "50ms"]);
    let (_second, of_second) = follower(directory.path(), "b", &["--ttl", "30s"]);
    let store = directory.path().join("store");
    let mut other = bellwether_tests::Candidate::on_file(&store, "another", "a", &["--ttl", "30s"]);
    other.expect("acquired");
    let follows = of_second.get("/candidate");
    assert_eq!((follows.status, follows.json()["state"].as_str()), (200, Some("follower")));
    let renewals = bellwether_tests::until_blocking(|| {
        let renewals = of_first.get("/candidate").json()["renewals"].clone();
        if renewals.as_array().is_some_and(|all| all.len() > 1) { Ok(renewals) } else { Err("no renewals") }
    });
    assert_eq!(renewals[0]["status"].as_str(), Some("success"), "{renewals}");
    assert!(renewals[0]["ago_ms"].as_u64() >= renewals[1]["ago_ms"].as_u64(), "oldest first: {renewals}");
    let listed = of_second.get("/elections").json();
    let names = [&listed["elections"][0]["election"], &listed["elections"][1]["election"]];
    assert_eq!((listed["count"].as_u64(), names), (Some(2), [&"another".into(), &"job".into()]));
    assert_eq!(listed["elections"][1]["holder"].as_str(), Some("a"));
    assert_eq!(of_second.get("/status").json()["store"]["lists"].as_bool(), Some(true));
}

#[test]
fn status_and_history_are_what_the_commands_print() {
    let directory = temporary();
    let (mut first, place) = leader(directory.path(), "a", &["--ttl", "30s", "--priority", "3"]);
    let epoch = first.heard("acquired").epoch();
    let url = format!("file:{}", directory.path().join("store").display());
    let printed = json(&on(&url, &["status", "job", "-o", "json"]));
    let served = place.get("/status").json();
    for (field, value) in printed.as_object().expect("an object") {
        // It may have renewed in between; and an observer knows less of who lives.
        if !["renewed", "proof"].contains(&field.as_str()) {
            assert_eq!(&served[field], value, "{field}");
        }
    }
    let candidate = &served["candidate"];
    assert_eq!((candidate["state"].as_str(), candidate["is_leader"].as_bool()), (Some("leader"), Some(true)));
    assert_eq!((candidate["epoch"].as_u64(), candidate["connection"].as_str()), (epoch, Some("connected")));
    // History is written after the promotion.
    let past = bellwether_tests::until_blocking(|| {
        let past = place.get("/history").json();
        if past[0]["epoch"].as_u64() == epoch { Ok(past) } else { Err(format!("no epoch in {past}")) }
    });
    assert_eq!(past, json(&on(&url, &["history", "job", "-o", "json"])));
}

#[test]
fn metrics_are_those_of_the_table() {
    let directory = temporary();
    let place = HttpPlace::free_port();
    let mut candidate = served_at(directory.path(), "a", &place, &["--ttl", "2s", "--renew", "100ms"]);
    candidate.expect("acquired");
    let metrics = bellwether_tests::until_blocking(|| {
        let metrics = place.get("/metrics");
        if metrics.body.contains("election_heartbeat_duration_seconds_count") {
            Ok(metrics)
        } else {
            Err("no renewal")
        }
    });
    assert!(metrics.head.contains("content-type: text/plain; version=0.0.4"), "{metrics:?}");
    let asked = place.request(
        "GET",
        "/metrics",
        &["accept: application/openmetrics-text;version=1.0.0,*/*;q=0.1"],
        "",
    );
    assert!(asked.head.contains("content-type: application/openmetrics-text"), "{asked:?}");
    assert!(
        asked.body.ends_with("# EOF\n") && asked.body.contains("# TYPE election_transitions counter\n"),
        "{asked:?}"
    );
    let labels = r#"{role="job",instance_id="a",bucket="file""#;
    for sample in [
        format!("election_is_leader{labels}}} 1"),
        format!("election_connection_status{labels}}} 1"),
        format!("election_transitions_total{labels},from_state=\"acquiring\",to_state=\"leader\"}} 1"),
        format!("election_acquire_attempts_total{labels},status=\"success\"}} 1"),
        format!("election_token_validation_failures_total{labels}}} 0"),
        format!(
            "election_heartbeat_duration_seconds_bucket{{le=\"0.001\",{},status=\"success\"}}",
            &labels[1..]
        ),
        format!(
            "election_heartbeat_duration_seconds_bucket{{le=\"0.512\",{},status=\"success\"}}",
            &labels[1..]
        ),
        format!("election_epoch{labels}}}"),
        format!("election_deadline_seconds{labels}}}"),
    ] {
        assert!(metrics.body.contains(&sample), "{sample} is not in {}", metrics.body);
    }
    assert!(!metrics.body.contains("le=\"1.024\""), "ten buckets");
    for name in ["election_failures_total", "election_leader_duration_seconds", "election_losses_total"] {
        assert!(metrics.body.contains(&format!("# TYPE {name} ")), "{name}");
    }
}

#[test]
fn what_is_not_there_is_answered_with_what_is() {
    let directory = temporary();
    let (_leader, place) = leader(directory.path(), "a", &["--ttl", "30s"]);
    let missing = place.get("/metric");
    assert_eq!(missing.status, 404);
    assert!(missing.json()["error"].as_str().is_some_and(|said| said.contains("/metrics")), "{missing:?}");
    assert_eq!(place.request("POST", "/leader", &[], "").status, 405);
    assert_eq!(place.get("/step-down").status, 405);
    assert_eq!(place.request("GET", "/leader", &[&format!("x: {}", "y".repeat(20_000))], "").status, 431);
    let mut rubbish = place.connect();
    rubbish.write_all(b"\0\0\0\r\n\r\n").expect("it listens");
    assert_eq!(bellwether_tests::http::answer(&mut *rubbish).status, 400);
}
