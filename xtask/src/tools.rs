//! What is used from the machine, beyond the toolchain that compiled this.
//!
//! A step that needs one of these gets it provided where that is possible, and else fails with the tool's name and
//! [`Tool::advice`].

use crate::{apt, chromium, fuzz, kubernetes, nats, postgres, process, prometheus};

#[derive(Debug)]
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    probe: Probe,
    pub(crate) used_for: &'static str,
    /// What to do when it is missing.
    advice: &'static str,
    /// Installs it.
    install: Option<fn() -> Result<(), String>>,
}

#[derive(Debug)]
enum Probe {
    /// A command that prints a version if the tool is there.
    Command(&'static [&'static str]),
    /// Says what is there, if anything.
    Place(fn() -> Option<String>),
}

pub(crate) const RUSTFMT: Tool = Tool {
    name: "rustfmt",
    probe: Probe::Command(&["cargo", "fmt", "--version"]),
    used_for: "the format of the code",
    advice: "run `rustup component add rustfmt`, or install the package of that name",
    install: None,
};

pub(crate) const CLIPPY: Tool = Tool {
    name: "clippy",
    probe: Probe::Command(&["cargo", "clippy", "--version"]),
    used_for: "lints",
    advice: "run `rustup component add clippy`, or install the package of that name",
    install: None,
};

pub(crate) const POSTGRES: Tool = Tool {
    name: "PostgreSQL",
    probe: Probe::Place(postgres::version),
    used_for: "the tests of backends/postgres, which start a server of their own",
    advice: "install the server's package (Debian: postgresql), or name its programs' directory in \
             BELLWETHER_TEST_POSTGRES",
    install: Some(postgres::install),
};

pub(crate) const NATS: Tool = Tool {
    name: "NATS",
    probe: Probe::Place(nats::version),
    used_for: "the tests of backends/nats, which start servers of their own",
    advice: "put nats-server on the PATH, or name the program in BELLWETHER_TEST_NATS",
    install: Some(nats::install),
};

pub(crate) const OLD_NATS: Tool = Tool {
    name: "NATS 2.9",
    probe: Probe::Place(nats::old_version),
    used_for: "the same tests on the version that Debian ships",
    advice: "take nats-server out of Debian's package and name the program in BELLWETHER_TEST_NATS_OLD",
    install: Some(nats::install_old),
};

pub(crate) const PGBOUNCER: Tool = Tool {
    name: "pgbouncer",
    probe: Probe::Place(pgbouncer),
    used_for: "the tests of backends/postgres with a pooler in between",
    advice: "install the package of that name",
    install: Some(|| apt::install("pgbouncer")),
};

pub(crate) const DNSMASQ: Tool = Tool {
    name: "dnsmasq",
    probe: Probe::Place(dnsmasq),
    used_for: "the tests of crates/cluster that find peers by DNS",
    advice: "install the package dnsmasq-base, or put dnsmasq on the PATH",
    install: Some(|| apt::install("dnsmasq-base")),
};

pub(crate) const PYTHON: Tool = Tool {
    name: "Python",
    probe: Probe::Command(&["python3", "--version"]),
    used_for: "the tests of clients/python, and those that stop single threads or forbid system calls",
    advice: "put python3 (3.9 or later) on the PATH, or install the package of that name",
    install: Some(|| apt::install("python3")),
};

pub(crate) const GO: Tool = Tool {
    name: "Go",
    probe: Probe::Command(&["go", "version"]),
    used_for: "the tests of clients/go",
    advice: "put go (1.21 or later) on the PATH (https://go.dev/dl), or install Debian's package golang",
    install: Some(|| apt::install("golang")),
};

pub(crate) const NODE: Tool = Tool {
    name: "Node",
    probe: Probe::Command(&["node", "--version"]),
    used_for: "the tests of clients/typescript",
    advice: "put node (18 or later) on the PATH, or install Debian's package nodejs",
    install: Some(|| apt::install("nodejs")),
};

pub(crate) const NPM: Tool = Tool {
    name: "npm",
    probe: Probe::Command(&["npm", "--version"]),
    used_for: "fetching the compiler of clients/typescript",
    advice: "put npm on the PATH, or install the package of that name",
    install: Some(|| apt::install("npm")),
};

pub(crate) const ETCD: Tool = Tool {
    name: "etcd",
    probe: Probe::Place(kubernetes::etcd_version),
    used_for: "the API servers that tests start keep their objects in it",
    advice: "put etcd on the PATH, or name a directory with it and kube-apiserver in KUBEBUILDER_ASSETS",
    install: Some(kubernetes::install_etcd),
};

pub(crate) const APISERVER: Tool = Tool {
    name: "kube-apiserver",
    probe: Probe::Place(kubernetes::apiserver_version),
    used_for: "the tests of Kubernetes, which start API servers of their own",
    advice: "`cargo xtask env --install` builds it once, which needs Go 1.26 or later (https://go.dev/dl) and some ten \
             minutes; or name a directory with it and etcd in KUBEBUILDER_ASSETS",
    install: Some(kubernetes::install_apiserver),
};

pub(crate) const CLIENT_GO: Tool = Tool {
    name: "client-go",
    probe: Probe::Place(kubernetes::client_go_version),
    used_for: "candidates of another make, in elections that Go and Rust share",
    advice: "`cargo xtask env --install` builds them, which needs Go 1.26 or later (https://go.dev/dl)",
    install: Some(kubernetes::install_client_go),
};

pub(crate) const ETCD_CLIENT: Tool = Tool {
    name: "etcd's client",
    probe: Probe::Place(kubernetes::etcd_client_version),
    used_for: "the benchmark of Raft, which measures etcd beside it",
    advice: "`cargo xtask env --install` builds it, which needs Go 1.26 or later (https://go.dev/dl)",
    install: Some(kubernetes::install_etcd_client),
};

pub(crate) const PGLOCK: Tool = Tool {
    name: "pglock",
    probe: Probe::Place(kubernetes::pglock_version),
    used_for: "the benchmark of PostgreSQL, which measures it beside ours",
    advice: "`cargo xtask env --install` builds it, which needs Go 1.26 or later (https://go.dev/dl)",
    install: Some(kubernetes::install_pglock),
};

pub(crate) const RIVER: Tool = Tool {
    name: "River",
    probe: Probe::Place(kubernetes::river_version),
    used_for: "the benchmark of PostgreSQL, which measures its leadership beside ours",
    advice: "`cargo xtask env --install` builds it, which needs Go 1.26 or later (https://go.dev/dl)",
    install: Some(kubernetes::install_river),
};

pub(crate) const NATS_LEADER_ELECTION: Tool = Tool {
    name: "NATS-Leader-Election",
    probe: Probe::Place(kubernetes::nats_leader_election_version),
    used_for: "the benchmark of NATS, which measures it beside ours",
    advice: "`cargo xtask env --install` builds it, which needs Go 1.26 or later (https://go.dev/dl)",
    install: Some(kubernetes::install_nats_leader_election),
};

pub(crate) const ETCD_ELECTION: Tool = Tool {
    name: "etcd's election",
    probe: Probe::Place(kubernetes::etcd_election_version),
    used_for: "the benchmark of Raft, which measures elections of etcd's client library beside ours",
    advice: "`cargo xtask env --install` builds it, which needs Go 1.26 or later (https://go.dev/dl)",
    install: Some(kubernetes::install_etcd_election),
};

pub(crate) const HASHICORP_RAFT: Tool = Tool {
    name: "hashicorp/raft",
    probe: Probe::Place(kubernetes::hashicorp_raft_version),
    used_for: "the benchmark of Raft, which measures it beside ours",
    advice: "`cargo xtask env --install` builds it, which needs Go 1.26 or later (https://go.dev/dl)",
    install: Some(kubernetes::install_hashicorp_raft),
};

pub(crate) const KUBE_LEADER_ELECTION: Tool = Tool {
    name: "kube-leader-election",
    probe: Probe::Place(kubernetes::kube_leader_election_version),
    used_for: "the benchmark of Kubernetes, which measures it beside ours",
    advice: "`cargo xtask env --install` builds it",
    install: Some(kubernetes::install_kube_leader_election),
};

pub(crate) const KUBERT: Tool = Tool {
    name: "kubert",
    probe: Probe::Place(kubernetes::kubert_version),
    used_for: "the benchmark of Kubernetes, which measures it beside ours",
    advice: "`cargo xtask env --install` builds it",
    install: Some(kubernetes::install_kubert),
};

pub(crate) const HELM: Tool = Tool {
    name: "Helm",
    probe: Probe::Place(kubernetes::helm_version),
    used_for: "the tests of the chart in deploy/kubernetes",
    advice: "`cargo xtask env --install` builds it, which needs Go 1.26 or later (https://go.dev/dl)",
    install: Some(kubernetes::install_helm),
};

pub(crate) const IPROUTE: Tool = Tool {
    name: "iproute2",
    probe: Probe::Command(&["ip", "-V"]),
    used_for: "tests that cut a leader off in network namespaces, as root",
    advice: "install the package of that name",
    install: Some(|| apt::install("iproute2")),
};

pub(crate) const PROMTOOL: Tool = Tool {
    name: "promtool",
    probe: Probe::Place(prometheus::promtool_version),
    used_for: "the tests of metrics and of deploy/prometheus",
    advice: "take promtool out of Debian's package prometheus, and name the program in BELLWETHER_TEST_PROMTOOL",
    install: Some(prometheus::install),
};

pub(crate) const PROMETHEUS: Tool = Tool {
    name: "Prometheus",
    probe: Probe::Place(prometheus::server_version),
    used_for: "the test that has it scrape candidates, judge the alert rules and answer the dashboard",
    advice: "take prometheus out of Debian's package, and name the program in BELLWETHER_TEST_PROMETHEUS",
    install: Some(prometheus::install),
};

pub(crate) const SYSTEMD_ANALYZE: Tool = Tool {
    name: "systemd-analyze",
    probe: Probe::Command(&["systemd-analyze", "--version"]),
    used_for: "the tests of deploy/systemd, which need no running systemd",
    advice: "install the package systemd",
    install: Some(|| apt::install("systemd")),
};

pub(crate) const CHROMIUM: Tool = Tool {
    name: "Chromium",
    probe: Probe::Place(chromium::version),
    used_for: "the tests of the dashboard, which look at it in a browser",
    advice: "install the package chromium-headless-shell, or name the program in BELLWETHER_TEST_CHROMIUM",
    install: Some(chromium::install),
};

pub(crate) const CARGO_FUZZ: Tool = Tool {
    name: "cargo-fuzz",
    probe: Probe::Command(&["cargo", "fuzz", "--version"]),
    used_for: "`cargo xtask fuzz`",
    advice: "run `cargo install cargo-fuzz --locked`",
    install: Some(fuzz::install),
};

pub(crate) const CXX: Tool = Tool {
    name: "C++",
    probe: Probe::Command(&["c++", "--version"]),
    used_for: "`cargo xtask fuzz`, which builds libFuzzer",
    advice: "install a C++ compiler (Debian: g++)",
    install: Some(|| apt::install("g++")),
};

/// On the `PATH`, or where Debian puts it, which is on no ordinary user's.
fn pgbouncer() -> Option<String> {
    ["pgbouncer", "/usr/sbin/pgbouncer"].iter().find_map(|program| process::version(&[program, "--version"]))
}

/// In the same places.
fn dnsmasq() -> Option<String> {
    ["dnsmasq", "/usr/sbin/dnsmasq"].iter().find_map(|program| process::version(&[program, "--version"]))
}

/// All of them, for `cargo xtask env`. Servers that tests run against join this list with their backends.
pub(crate) const ALL: &[&Tool] = &[
    &RUSTFMT,
    &CLIPPY,
    &POSTGRES,
    &PGBOUNCER,
    &NATS,
    &OLD_NATS,
    &DNSMASQ,
    &ETCD,
    &APISERVER,
    &CLIENT_GO,
    &ETCD_CLIENT,
    &PGLOCK,
    &RIVER,
    &NATS_LEADER_ELECTION,
    &ETCD_ELECTION,
    &HASHICORP_RAFT,
    &KUBE_LEADER_ELECTION,
    &KUBERT,
    &HELM,
    &IPROUTE,
    &PROMTOOL,
    &PROMETHEUS,
    &SYSTEMD_ANALYZE,
    &PYTHON,
    &CHROMIUM,
    &GO,
    &NODE,
    &NPM,
    &CARGO_FUZZ,
    &CXX,
];

impl Tool {
    /// What it says of its version, or a sentence that says what to do.
    pub(crate) fn find(&self) -> Result<String, String> {
        let found = match self.probe {
            Probe::Command(command) => process::version(command),
            Probe::Place(look) => look(),
        };
        found.ok_or_else(|| format!("{} is missing: {}", self.name, self.advice))
    }

    /// As [`Tool::find`], after installing it if it is missing and that can be done from here.
    pub(crate) fn provide(&self) -> Result<String, String> {
        let (Err(missing), Some(install)) = (self.find(), self.install) else { return self.find() };
        process::say(&format!("{} is not here yet: installing it", self.name));
        install().map_err(|problem| format!("{missing} ({problem})"))?;
        let version = self.find()?;
        process::say(&format!("installed: {version}"));
        Ok(version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABSENT: Tool = Tool {
        name: "abacus",
        probe: Probe::Command(&["there-is-no-such-program", "--version"]),
        used_for: "counting",
        advice: "carve one",
        install: None,
    };

    #[test]
    fn what_is_missing_is_named_with_what_to_do() {
        assert_eq!(ABSENT.find().unwrap_err(), "abacus is missing: carve one");
        assert_eq!(ABSENT.provide().unwrap_err(), "abacus is missing: carve one");
    }

    #[test]
    fn what_cannot_be_installed_is_named_too_with_the_reason() {
        let absent = Tool { install: Some(|| Err("no wood".to_owned())), ..ABSENT };
        assert_eq!(absent.provide().unwrap_err(), "abacus is missing: carve one (no wood)");
    }
}
