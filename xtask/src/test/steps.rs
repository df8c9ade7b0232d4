//! The steps of `cargo xtask test`, in one table and in the order in which they run: quick ones first.
//!
//! A row with a package says that the package has to be there: taking it out of the workspace is a failure,
//! not fewer tests. A package without a row is tested too, under its own name.
//!
//! Steps that need the API server of Kubernetes come last, since it may still be in the making.
//!
//! Each step has a budget: the time that it may take on two cores when everything is built. The budgets sum up to
//! [`BUDGET`], so a step that outgrows its own takes time from the others, and the summary shows which one did.

use crate::metadata::Workspace;
use crate::postgres::majors;
use crate::sim;
use crate::tools::{
    APISERVER, CHROMIUM, CLIENT_GO, CLIPPY, DNSMASQ, ETCD, GO, HELM, IPROUTE, NATS, NODE, NPM, OLD_NATS,
    PGBOUNCER, POSTGRES, PROMETHEUS, PROMTOOL, PYTHON, RUSTFMT, SYSTEMD_ANALYZE, Tool,
};
use std::time::Duration;

/// What all steps together may take on two cores when everything is built: nobody waits longer for an answer.
pub(super) const BUDGET: Duration = Duration::from_secs(30 * 60);

#[derive(Clone, Debug)]
pub(super) struct Step {
    /// What `--only` calls it; rows of one name are chosen together.
    pub(super) name: String,
    pub(super) what: String,
    pub(super) needs: &'static [&'static Tool],
    pub(super) budget: Duration,
    pub(super) action: Action,
}

impl Step {
    /// Whether it needs what takes minutes to build.
    pub(super) fn needs_apiserver(&self) -> bool {
        self.needs.iter().any(|tool| tool.name == APISERVER.name)
    }
}

#[derive(Clone, Debug)]
pub(super) enum Action {
    /// The rules of the house, in this process.
    Tidy,
    /// Every feature alone, and all together.
    Features,
    /// Every test program, built once; part of any choice that runs one.
    Build,
    /// The test programs of one package, but for [`APART`].
    Tests { package: String },
    /// These test programs.
    Programs { programs: &'static [Program] },
    /// These test programs, each of a package, on a PostgreSQL server of that major.
    OnMajor { major: u32, programs: &'static [Program] },
    /// Every planted bug, in a copy of the project.
    Bugs,
    /// One run of cargo.
    Cargo {
        package: Option<&'static str>,
        args: &'static [&'static str],
        env: &'static [(&'static str, &'static str)],
        /// Whether it prints `test result:` lines that are to be summed; else it counts as one.
        counted: bool,
    },
}

/// A test program: the package, its target, and the tests of it that run, all where none is named.
pub(super) type Program = (&'static str, &'static str, &'static [&'static str]);

pub(super) const BUILD: &str = "build";
const BUILD_WHAT: &str = "every test program, once";
const POSTGRES_STEP: &str = "postgres";
const NATS_STEP: &str = "nats";
const KUBERNETES_STEP: &str = "kubernetes";
const CLUSTER_STEP: &str = "cluster";
const FENCE_STEP: &str = "fence";
const FACADE_STEP: &str = "bellwether";
const VIP_STEP: &str = "vip";
const SCENARIOS_STEP: &str = "tests";
const POSTGRES_TOOLS: &[&Tool] = &[&POSTGRES, &PGBOUNCER, &IPROUTE];
const NATS_TOOLS: &[&Tool] = &[&NATS, &OLD_NATS, &IPROUTE];
const KUBERNETES_TOOLS: &[&Tool] = &[&ETCD, &APISERVER, &CLIENT_GO, &IPROUTE];
const DEPLOY_TOOLS: &[&Tool] = &[&ETCD, &APISERVER, &CLIENT_GO, &HELM, &IPROUTE];
const ALL_SERVERS: &[&Tool] = &[&POSTGRES, &PGBOUNCER, &NATS, &OLD_NATS, &DNSMASQ, &IPROUTE];
const SCENARIO_TOOLS: &[&Tool] = &[
    &POSTGRES,
    &PGBOUNCER,
    &NATS,
    &OLD_NATS,
    &DNSMASQ,
    &IPROUTE,
    &PROMTOOL,
    &PROMETHEUS,
    &SYSTEMD_ANALYZE,
    &PYTHON,
    &CHROMIUM,
    &GO,
    &NODE,
    &NPM,
];

/// What needs the API server, in packages whose other tests do not: these have a step of their own.
pub(super) const APART: &[Program] = &[
    ("bellwether-tests", "kubernetes", &[]),
    ("bellwether", "kubernetes", &[]),
    ("bellwether-cluster", "kubernetes", &[]),
    ("bellwether-fence", "kubernetes", &[]),
];

/// What the tests run on besides the installed server, which is Debian's and older: the newest.
const FURTHER_MAJOR: u32 = *majors::SUPPORTED.end();

/// What depends most on the server, its functions, its settings and when it frees locks, in little more than a minute.
const SOME_PROGRAMS: &[Program] = &[
    (
        "bellwether-postgres",
        "postgres",
        &[
            "conformance::a_server_conforms",
            "reach::a_role_that_may_not",
            "reach::an_old_primary",
            "reach::the_server_s_own_words",
            "sessions::",
            "takeover::a_terminated",
            "takeover::the_crash",
            "takeover::a_killed",
            "takeover::after_a_promotion",
        ],
    ),
    ("bellwether-tests", "postgres", &["connecting::the_doctor"]),
];

/// All tests of the same modules, epochs, tables, and every row of the table of states.
const MORE_PROGRAMS: &[Program] = &[
    (
        "bellwether-postgres",
        "postgres",
        &["conformance::", "reach::", "sessions::", "takeover::", "epochs::", "tables::", "transitions::"],
    ),
    ("bellwether-tests", "postgres", &["connecting::"]),
];

/// The packages that make up the project: the name of the step, the package, what it is, and its budget in seconds.
const PACKAGES: &[(&str, &str, &str, u64)] = &[
    ("core", "bellwether-core", "the election as pure logic", 5),
    ("backend", "bellwether-backend", "what a backend must do, and the one in memory", 20),
    ("deadman", "bellwether-deadman", "boot-time clock and timer, kernel deadline, processes", 5),
    ("file", "bellwether-file", "elections in a directory", 20),
    (POSTGRES_STEP, "bellwether-postgres", "elections on PostgreSQL servers", 300),
    (NATS_STEP, "bellwether-nats", "elections on NATS servers, a current and an old one", 155),
    (KUBERNETES_STEP, "bellwether-kubernetes", "elections on a real API server of Kubernetes", 60),
    (CLUSTER_STEP, "bellwether-cluster", "forming Raft clusters: decisions, storage, connections, nodes", 75),
    ("raft", "bellwether-raft", "elections on Raft clusters", 30),
    (FENCE_STEP, "bellwether-fence", "writes that are refused once a later epoch has written", 10),
    ("election", "bellwether-election", "the election running", 35),
    (VIP_STEP, "bellwether-vip", "virtual addresses on real interfaces, in network namespaces", 5),
    ("agent", "bellwether-agent", "a candidate over HTTP", 5),
    ("supervise", "bellwether-supervise", "a command that lives as long as a leadership", 45),
    (FACADE_STEP, "bellwether", "the crate that users add; every example runs and does what it says", 15),
    ("cli", "bellwether-cli", "the command", 5),
    ("fuzz", "bellwether-fuzz", "every parser of foreign bytes, on its corpus", 10),
    ("sim", sim::PACKAGE, "the simulator's own tests", 10),
    ("xtask", "xtask", "what runs these steps", 5),
    (SCENARIOS_STEP, "bellwether-tests", "the command on real processes and servers", 430),
];

const FORMAT: Action =
    Action::Cargo { package: None, args: &["fmt", "--all", "--check"], env: &[], counted: false };

const LINT: Action = Action::Cargo {
    package: None,
    args: &["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"],
    env: &[],
    counted: false,
};

const DOCTESTS: Action = Action::Cargo {
    package: None,
    args: &["test", "--doc", "--workspace", "--all-features", "--no-fail-fast"],
    env: &[],
    counted: true,
};

const DOCS: Action = Action::Cargo {
    package: None,
    args: &["doc", "--workspace", "--lib", "--no-deps", "--all-features"],
    env: &[("RUSTDOCFLAGS", "-D warnings")],
    counted: false,
};

const SEEDS: Action = Action::Cargo {
    package: Some(sim::PACKAGE),
    args: &["run", "--package", sim::PACKAGE, "--bin", sim::PACKAGE, "--", "--seeds", "500"],
    env: &[],
    counted: false,
};

/// Every step for this workspace.
pub(super) fn all(workspace: &Workspace) -> Vec<Step> {
    let mut steps = vec![
        step("format", "rustfmt has nothing to change", &[&RUSTFMT], 10, FORMAT),
        step("tidy", "the rules of the house", &[], 10, Action::Tidy),
        step("lint", "clippy has nothing to say", &[&CLIPPY], 45, LINT),
        step("features", "every feature builds alone, and all together", &[], 45, Action::Features),
        step(BUILD, BUILD_WHAT, &[], 120, Action::Build),
    ];
    for (name, package, what, budget) in PACKAGES {
        let needs: &[&Tool] = match *name {
            POSTGRES_STEP => POSTGRES_TOOLS,
            NATS_STEP => NATS_TOOLS,
            KUBERNETES_STEP => KUBERNETES_TOOLS,
            FACADE_STEP => ALL_SERVERS,
            SCENARIOS_STEP => SCENARIO_TOOLS,
            CLUSTER_STEP => &[&DNSMASQ],
            FENCE_STEP => &[&NATS, &OLD_NATS],
            VIP_STEP => &[&IPROUTE],
            _ => &[],
        };
        steps.push(step(name, what, needs, *budget, Action::Tests { package: (*package).to_owned() }));
        if *name == POSTGRES_STEP {
            steps.push(on_major(FURTHER_MAJOR, 55, SOME_PROGRAMS));
        }
        if *name == KUBERNETES_STEP {
            let what = "manifests, chart, example, peers, fenced objects, silent leaders and client-go beside ours, on a real API server";
            steps.push(step(name, what, DEPLOY_TOOLS, 85, Action::Programs { programs: APART }));
        }
    }
    for package in &workspace.packages {
        if PACKAGES.iter().all(|(_, listed, _, _)| *listed != package.name) {
            let name = package.name.strip_prefix("bellwether-").unwrap_or(&package.name);
            let what = format!("tests of {}", package.name);
            // What the tests of backends share starts servers too.
            let (needs, budget): (&[&Tool], u64) = match name {
                "support" => (KUBERNETES_TOOLS, 25),
                _ => (&[], 10),
            };
            steps.push(step(name, &what, needs, budget, Action::Tests { package: package.name.clone() }));
        }
    }
    steps.extend([
        step("doctests", "the code in the documentation", &[], 30, DOCTESTS),
        step("docs", "the documentation builds without a warning", &[], 25, DOCS),
        step("sim", "500 seeds without a violation", &[], 50, SEEDS),
        step("sim", "every planted bug is caught", &[], 80, Action::Bugs),
    ]);
    steps.sort_by_key(Step::needs_apiserver);
    steps
}

/// The steps of `--postgres`: the same programs on each of these majors.
pub(super) fn on_majors(majors: &[u32]) -> Vec<Step> {
    let build = step(BUILD, BUILD_WHAT, &[], 180, Action::Build);
    let each = majors.iter().map(|major| on_major(*major, 300, MORE_PROGRAMS));
    std::iter::once(build).chain(each).collect()
}

fn on_major(major: u32, budget: u64, programs: &'static [Program]) -> Step {
    let what = format!("conformance, doctor, takeovers and more on PostgreSQL {major}");
    step(&format!("postgres-{major}"), &what, POSTGRES_TOOLS, budget, Action::OnMajor { major, programs })
}

fn step(
    name: &str,
    what: &str,
    needs: &'static [&'static Tool],
    budget_seconds: u64,
    action: Action,
) -> Step {
    let budget = Duration::from_secs(budget_seconds);
    Step { name: name.to_owned(), what: what.to_owned(), needs, budget, action }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Package;
    use std::path::PathBuf;

    #[test]
    fn a_package_without_a_row_is_tested_under_its_own_name() {
        let package = |name: &str| Package::empty("", name);
        let packages = vec![package("bellwether-core"), package("bellwether-moon")];
        let steps = all(&Workspace { root: PathBuf::new(), packages });
        let named = |name: &str| steps.iter().filter(|step| step.name == name).count();
        assert_eq!((named("core"), named("moon")), (1, 1));
        assert_eq!(named("election"), 1, "a row stays when its package is gone");
    }

    #[test]
    fn what_needs_the_api_server_comes_last() {
        let packages = vec![Package::empty("", "bellwether-support")];
        let steps = all(&Workspace { root: PathBuf::new(), packages });
        let last: Vec<&str> = steps.iter().rev().take(3).map(|step| step.name.as_str()).collect();
        assert_eq!(last, ["support", "kubernetes", "kubernetes"]);
        assert_eq!(steps.iter().filter(|step| step.needs_apiserver()).count(), last.len());
    }

    #[test]
    fn the_budgets_of_all_steps_fit_into_the_whole() {
        let steps = all(&Workspace { root: PathBuf::new(), packages: Vec::new() });
        let sum: Duration = steps.iter().map(|step| step.budget).sum();
        assert!(sum <= BUDGET, "{sum:?}");
    }
}
