//! What `deploy/` has for Prometheus and Grafana, judged by promtool and by what a running candidate serves.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Output, Stdio};

use bellwether_tests::http::HttpPlace;
use bellwether_tests::{Candidate, run_to_end};

use crate::{deploy, program, temporary};

#[track_caller]
pub(crate) fn approves(output: &Output) {
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn the_alert_rules_fire_when_they_should_and_not_otherwise() {
    for arguments in [["check", "rules", "alerts.yaml"], ["test", "rules", "alerts_test.yaml"]] {
        let mut promtool = program("promtool");
        promtool.args(arguments).current_dir(deploy("prometheus"));
        approves(&run_to_end(promtool));
    }
}

#[test]
fn a_running_candidate_serves_what_promtool_approves_of_and_what_rules_and_dashboard_ask_for() {
    let directory = temporary();
    let place = HttpPlace::socket_in(directory.path());
    let more = ["--ttl", "30s", "--http", &place.flag()];
    let mut candidate = Candidate::on_file(&directory.path().join("store"), "job", "a", &more);
    candidate.expect("acquired");
    let metrics = place.get("/metrics").body;
    let mut child = program("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool starts");
    child.stdin.take().expect("a pipe").write_all(metrics.as_bytes()).expect("it reads");
    approves(&child.wait_with_output().expect("our own child"));
    let served: BTreeSet<&str> =
        metrics.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    for file in ["prometheus/alerts.yaml", "prometheus/alerts_test.yaml", "grafana/bellwether.json"] {
        let text = std::fs::read_to_string(deploy(file)).expect("a file of this project");
        for name in metric_names(&text) {
            let family = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|suffix| name.strip_suffix(suffix))
                .unwrap_or(&name);
            assert!(served.contains(family), "{file} asks for {name}, which nobody serves");
        }
    }
}

fn metric_names(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("election_")).map(str::to_owned).collect()
}

#[test]
fn every_panel_of_the_dashboard_asks_something_that_prometheus_understands() {
    let directory = temporary();
    let mut rules = "groups:\n  - name: panels\n    rules:\n".to_owned();
    for (number, asked) in crate::dashboard_queries("1m").into_iter().enumerate() {
        writeln!(
            rules,
            "      - record: panel:{number}\n        expr: {}",
            serde_json::Value::from(asked.expression)
        )
        .expect("a string");
    }
    let file = directory.path().join("panels.yaml");
    std::fs::write(&file, rules).expect("our own directory");
    let mut promtool = program("promtool");
    promtool.args(["check", "rules"]).arg(&file);
    approves(&run_to_end(promtool));
}
