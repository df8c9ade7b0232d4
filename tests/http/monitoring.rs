//! What `deploy/` has for Prometheus and Grafana, judged by promtool and by what a running candidate serves.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use bellwether_tests::run_to_end;
use serde_json::Value;

use super::{leader, temporary};

fn deploy(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy").join(file)
}

/// Where `cargo xtask` finds or puts it.
fn promtool() -> Command {
    if let Some(named) = std::env::var_os("BELLWETHER_TEST_PROMTOOL") {
        return Command::new(named);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").filter(|dir| !dir.is_empty()).map(PathBuf::from).or(home);
    let places =
        std::env::split_paths(&path).chain(cache.map(|cache| cache.join("bellwether/prometheus/usr/bin")));
    let found = places.map(|dir| dir.join("promtool")).find(|program| program.is_file());
    Command::new(found.expect("no promtool: run `cargo xtask test`, which sees to it"))
}

#[track_caller]
fn approves(output: &Output) {
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
        let mut promtool = promtool();
        promtool.args(arguments).current_dir(deploy("prometheus"));
        approves(&run_to_end(promtool));
    }
}

#[test]
fn a_running_candidate_serves_what_promtool_approves_of_and_what_rules_and_dashboard_ask_for() {
    let directory = temporary();
    let (_candidate, place) = leader(directory.path(), "a", &["--ttl", "30s"]);
    let metrics = place.get("/metrics").body;
    let mut child = promtool()
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
    let text = std::fs::read_to_string(deploy("grafana/bellwether.json")).expect("a file of this project");
    let dashboard: Value = serde_json::from_str(&text).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let mut rules = "groups:\n  - name: panels\n    rules:\n".to_owned();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().expect("targets"));
    for (number, target) in targets.enumerate() {
        let asked = target["expr"]
            .as_str()
            .expect("an expression")
            .replace("$__rate_interval", "1m")
            .replace("$role", ".*");
        writeln!(rules, "      - record: panel:{number}\n        expr: {}", Value::from(asked))
            .expect("a string");
    }
    let file = directory.path().join("panels.yaml");
    std::fs::write(&file, rules).expect("our own directory");
    let mut promtool = promtool();
    promtool.args(["check", "rules"]).arg(&file);
    approves(&run_to_end(promtool));
}
