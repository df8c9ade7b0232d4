//! A real Prometheus that scrapes real candidates, through an outage of their store and a failover: alerts fire when they should, and every
//! panel of the dashboard has data.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Child, Stdio};

use bellwether_support::servers::nats::{Server, Version};
use bellwether_tests::http::HttpPlace;
use bellwether_tests::{Candidate, OutputLines, bellwether, until_blocking};
use rustix::process::Signal;
use serde_json::Value;

use crate::{dashboard_queries, deploy, program, temporary};

/// The rules as they are, but for how long a situation lasts: nobody waits for minutes here.
fn impatient_rules() -> String {
    let rules = std::fs::read_to_string(deploy("prometheus/alerts.yaml")).expect("a file of this project");
    let mut changed = 0;
    let lines = rules.lines().map(|line| {
        let indented = line.len() - line.trim_start().len();
        if line.trim_start().starts_with("for:") {
            changed += 1;
            return format!("{:indented$}for: 1s", "");
        }
        changed += line.matches("[5m]").count();
        line.replace("[5m]", "[15s]")
    });
    let rules: Vec<String> = lines.collect();
    assert_eq!(changed, 6, "four spans and two windows are shortened");
    rules.join("\n")
}

/// A server with its data in a directory. Killed when dropped.
struct Prometheus {
    child: Child,
    place: HttpPlace,
}

impl Prometheus {
    /// One that scrapes these.
    fn start(directory: &Path, targets: &[HttpPlace]) -> Prometheus {
        let place = HttpPlace::free_port();
        std::fs::write(directory.join("alerts.yaml"), impatient_rules()).expect("our own directory");
        let targets: Vec<String> = targets.iter().map(HttpPlace::flag).collect();
        let configuration = format!(
            "global: {{scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms}}\nrule_files: [alerts.yaml]\n\
             scrape_configs:\n  - job_name: bellwether\n    static_configs:\n      - targets: {}\n",
            Value::from(targets)
        );
        std::fs::write(directory.join("prometheus.yml"), configuration).expect("our own directory");
        let mut prometheus = program("prometheus");
        prometheus.arg("--config.file").arg(directory.join("prometheus.yml"));
        prometheus.arg("--storage.tsdb.path").arg(directory.join("data"));
        prometheus.args(["--web.listen-address", &place.flag(), "--log.level", "error"]);
        let child = prometheus.stdin(Stdio::null()).spawn().expect("prometheus starts");
        let server = Prometheus { child, place };
        until_blocking(|| match server.place.get("/-/ready").status {
            200 => Ok(()),
            other => Err(format!("Prometheus answers {other}")),
        });
        server
    }

    /// `data` of an answer of the API.
    #[track_caller]
    fn api(&self, path: &str) -> Value {
        let answer = self.place.get(&format!("/api/v1/{path}"));
        let mut json = answer.json();
        assert_eq!(json["status"], "success", "{path}: {json}");
        json["data"].take()
    }

    /// The samples that an expression has now.
    #[track_caller]
    fn query(&self, expression: &str) -> Vec<Value> {
        let data = self.api(&format!("query?query={}", escaped(expression)));
        data["result"].as_array().expect("a vector").clone()
    }

    /// The rules, by their names.
    fn rules(&self) -> Vec<Value> {
        let data = self.api("rules");
        let groups = data["groups"].as_array().expect("groups").iter();
        groups.flat_map(|group| group["rules"].as_array().expect("rules").clone()).collect()
    }

    /// The names of the alerts that fire.
    fn firing(&self) -> Vec<String> {
        let data = self.api("alerts");
        let alerts = data["alerts"].as_array().expect("alerts").iter().filter(|one| one["state"] == "firing");
        let mut names: Vec<String> =
            alerts.filter_map(|alert| Some(alert["labels"]["alertname"].as_str()?.to_owned())).collect();
        names.sort();
        names.dedup();
        names
    }

    #[track_caller]
    fn until_firing(&self, wanted: &[&str]) {
        until_blocking(|| {
            let firing = self.firing();
            if firing == wanted { Ok(()) } else { Err(format!("{firing:?} fire, and not {wanted:?}")) }
        });
    }

    #[track_caller]
    fn until_true(&self, expression: &str) {
        until_blocking(|| match self.query(expression).len() {
            0 => Err(format!("{expression} has no result")),
            _ => Ok(()),
        });
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// For a URL.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.' => escaped.push(byte.into()),
            _ => write!(escaped, "%{byte:02X}").expect("a string"),
        }
    }
    escaped
}

fn candidate(url: &str, id: &str, place: &HttpPlace) -> Candidate {
    let mut command = std::process::Command::new(bellwether());
    command.args(["--backend", url, "--id", id, "run", "job", "--events", "--ttl", "2s"]);
    command.args(["--http", &place.flag()]);
    Candidate::start(command)
}

/// One that is a cluster by itself.
fn node(directory: &Path, place: &HttpPlace) -> OutputLines {
    let mut command = std::process::Command::new(bellwether());
    command.args(["node", "-o", "json", "--name", "a-0", "--expect", "1", "--bind", "127.0.0.1:0"]);
    command.args(["--http", &place.flag()]).arg("--data-dir").arg(directory.join("node"));
    let mut node = OutputLines::run(command);
    node.until(|line| line.contains("\"ready\""));
    node
}

#[tokio::test]
async fn alerts_fire_in_an_outage_and_end_with_it_and_every_panel_has_data() {
    let directory = temporary();
    let server = Server::start(Version::Current).await;
    let url = format!("{}?create=yes&ping=250ms", server.url());
    let places = [HttpPlace::free_port(), HttpPlace::free_port()];
    let mut a = candidate(&url, "a", &places[0]);
    a.expect("acquired");
    let mut b = candidate(&url, "b", &places[1]);
    b.joined();
    let node_place = HttpPlace::free_port();
    let _node = node(directory.path(), &node_place);
    let all = [&places[..], &[node_place]].concat();
    let prometheus = Prometheus::start(directory.path(), &all);

    prometheus.until_true("count(up == 1) == 3");
    prometheus.until_true("sum(election_is_leader) == 1");
    prometheus.until_true("rate(election_heartbeat_duration_seconds_count{status=\"success\"}[15s]) > 0");
    until_blocking(|| {
        let rules = prometheus.rules();
        assert_eq!(rules.len(), 7, "{rules:?}");
        match rules.iter().find(|rule| rule["health"] != "ok") {
            Some(other) => Err(format!("{other}")),
            None => Ok(()),
        }
    });
    // What rules compare with a bound is there. Those that count failures have nothing to count yet.
    for compared in [
        "max by (role, bucket) (election_is_leader)",
        "sum by (role, bucket) (increase(election_transitions_total{to_state=\"leader\"}[10m]))",
        "increase(election_token_validation_failures_total[10m])",
        "election_connection_status",
        "cluster_ready",
        "max by (node) (cluster_names_with_two_clusters)",
    ] {
        prometheus.until_true(compared);
        let text = std::fs::read_to_string(deploy("prometheus/alerts.yaml")).expect("a file of this project");
        assert!(text.contains(compared), "no rule asks for {compared}");
    }
    assert_eq!(prometheus.firing(), [""; 0], "nothing is wrong");

    // The store falls silent: nobody renews, nobody leads, and nobody could.
    server.stop();
    a.expect("lost");
    prometheus.until_firing(&["ElectionDisconnected", "ElectionRenewalsFailing", "ElectionWithoutLeader"]);
    server.resume();
    prometheus.until_true("sum(election_is_leader) == 1");
    prometheus.until_firing(&[]);

    // A handover, and the death of a leader, each to the other candidate.
    let (mut leader, mut other) = if places[0].get("/leader").status == 200 { (a, b) } else { (b, a) };
    let was_a = places[0].get("/leader").json()["leader"] == "a";
    leader.signal(Signal::TERM);
    assert_eq!(leader.ended().code, Some(0));
    other.expect("acquired");
    let (id, place) = if was_a { ("a", &places[0]) } else { ("b", &places[1]) };
    let mut again = candidate(&url, id, place);
    again.joined();
    // Seen twice: an increase needs two samples, and its process is about to end.
    prometheus.until_true("increase(election_handover_gap_seconds_count[1m])");
    other.signal(Signal::KILL);
    again.expect("acquired");
    prometheus.until_true("election_failover_gap_seconds_count > 0");

    for asked in dashboard_queries("15s") {
        until_blocking(|| match prometheus.query(&asked.expression).len() {
            0 => Err(format!("the panel {} has no data: {}", asked.panel, asked.expression)),
            _ => Ok(()),
        });
    }
}
