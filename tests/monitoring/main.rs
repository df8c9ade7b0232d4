//! What `deploy/` has for Prometheus, Grafana and containers: judged by promtool, by a real Prometheus that scrapes real candidates, and by
//! what is in the project.

mod checked;
mod containers;
mod scraped;

use std::path::{Path, PathBuf};
use std::process::Command;

use bellwether_tests::http::HttpPlace;
use bellwether_tests::until_blocking;
use serde_json::Value;

fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// A file or directory of `deploy/`.
fn deploy(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy").join(file)
}

/// `prometheus` or `promtool`, where `cargo xtask` finds or puts it.
fn program(name: &str) -> Command {
    if let Some(named) = std::env::var_os(format!("BELLWETHER_TEST_{}", name.to_uppercase())) {
        return Command::new(named);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").filter(|dir| !dir.is_empty()).map(PathBuf::from).or(home);
    let places =
        std::env::split_paths(&path).chain(cache.map(|cache| cache.join("bellwether/prometheus/usr/bin")));
    let found = places.map(|dir| dir.join(name)).find(|program| program.is_file());
    Command::new(found.unwrap_or_else(|| panic!("no {name}: run `cargo xtask test`, which sees to it")))
}

/// Waits until it answers with this status.
fn until_status(place: &HttpPlace, path: &str, wanted: u16) {
    until_blocking(|| match place.get(path).status {
        status if status == wanted => Ok(()),
        status => Err(format!("{path} answers {status}")),
    });
}

/// A query of the Grafana dashboard.
struct DashboardQuery {
    panel: String,
    expression: String,
}

/// All of them, as Grafana asks for all elections with this `$__rate_interval`.
fn dashboard_queries(rate_interval: &str) -> Vec<DashboardQuery> {
    let text = std::fs::read_to_string(deploy("grafana/bellwether.json")).expect("a file of this project");
    let dashboard: Value = serde_json::from_str(&text).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().flat_map(|panel| {
        let targets = panel["targets"].as_array().expect("targets").iter();
        targets.map(move |target| (panel["title"].as_str().unwrap_or_default(), target))
    });
    let query = |(panel, target): (&str, &Value)| {
        let expression = target["expr"].as_str().expect("an expression");
        let expression = expression.replace("$__rate_interval", rate_interval).replace("$role", ".*");
        assert!(!expression.contains('$'), "{expression} has a variable that only Grafana knows");
        DashboardQuery { panel: panel.to_owned(), expression }
    };
    targets.map(query).collect()
}
