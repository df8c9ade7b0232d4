//! The steps of `cargo xtask test`, in one table and in the order in which they run: quick ones first.
//!
//! A row with a package says that the package has to be there: taking it out of the workspace is a failure,
//! not fewer tests. A package without a row is tested too, under its own name.

use crate::metadata::Workspace;
use crate::sim;
use crate::tools::{CLIPPY, IPROUTE, NATS, OLD_NATS, PGBOUNCER, POSTGRES, RUSTFMT, Tool};

#[derive(Clone, Debug)]
pub(super) struct Step {
    /// What `--only` calls it; rows of one name are chosen together.
    pub(super) name: String,
    pub(super) what: String,
    pub(super) needs: &'static [&'static Tool],
    pub(super) action: Action,
}

#[derive(Clone, Debug)]
pub(super) enum Action {
    /// The rules of the house, in this process.
    Tidy,
    /// Every test program, built once; part of any choice that runs one.
    Build,
    /// The test programs of one package.
    Tests { package: String },
    /// One run of cargo.
    Cargo {
        package: Option<&'static str>,
        args: &'static [&'static str],
        env: &'static [(&'static str, &'static str)],
        /// Whether it prints `test result:` lines that are to be summed; else it counts as one.
        counted: bool,
    },
}

pub(super) const BUILD: &str = "build";
const POSTGRES_STEP: &str = "postgres";
const NATS_STEP: &str = "nats";
const EXAMPLES_STEP: &str = "examples";
const SCENARIOS_STEP: &str = "tests";
const POSTGRES_TOOLS: &[&Tool] = &[&POSTGRES, &PGBOUNCER, &IPROUTE];
const NATS_TOOLS: &[&Tool] = &[&NATS, &OLD_NATS, &IPROUTE];
const ALL_SERVERS: &[&Tool] = &[&POSTGRES, &PGBOUNCER, &NATS, &OLD_NATS, &IPROUTE];

/// The packages that make up the project, with the name of their step.
const PACKAGES: &[(&str, &str, &str)] = &[
    ("core", "bellwether-core", "the election as pure logic"),
    ("backend", "bellwether-backend", "what a backend must do, and the one in memory"),
    ("deadman", "bellwether-deadman", "the boot-time clock and its timer, the kernel's deadline, processes"),
    ("file", "bellwether-file", "elections in a directory"),
    (POSTGRES_STEP, "bellwether-postgres", "elections on a PostgreSQL server of the test's own"),
    (NATS_STEP, "bellwether-nats", "elections on NATS servers of the test's own, a current and an old one"),
    ("election", "bellwether-election", "the election running"),
    ("supervise", "bellwether-supervise", "a command that lives as long as a leadership"),
    ("bellwether", "bellwether", "the crate that users add"),
    ("cli", "bellwether-cli", "the command"),
    ("sim", sim::PACKAGE, "the simulator's own tests"),
    (EXAMPLES_STEP, "bellwether-examples", "every example runs and does what it says"),
    ("xtask", "xtask", "what runs these steps"),
    (SCENARIOS_STEP, "bellwether-tests", "the command as its users see it, on real processes and servers"),
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

const SEEDS: Action = simulator(&[
    "run",
    "--release",
    "--package",
    sim::PACKAGE,
    "--bin",
    sim::PACKAGE,
    "--",
    "--seeds",
    "500",
]);
const BUGS: Action =
    simulator(&["run", "--release", "--package", sim::PACKAGE, "--bin", sim::PACKAGE, "--", "--bugs"]);

const fn simulator(args: &'static [&'static str]) -> Action {
    Action::Cargo { package: Some(sim::PACKAGE), args, env: &[], counted: false }
}

/// Every step for this workspace.
pub(super) fn all(workspace: &Workspace) -> Vec<Step> {
    let mut steps = vec![
        step("format", "rustfmt has nothing to change", &[&RUSTFMT], FORMAT),
        step("tidy", "the rules of the house", &[], Action::Tidy),
        step("lint", "clippy has nothing to say", &[&CLIPPY], LINT),
        step(BUILD, "every test program, once", &[], Action::Build),
    ];
    for (name, package, what) in PACKAGES {
        let needs: &[&Tool] = match *name {
            POSTGRES_STEP => POSTGRES_TOOLS,
            NATS_STEP => NATS_TOOLS,
            SCENARIOS_STEP | EXAMPLES_STEP => ALL_SERVERS,
            _ => &[],
        };
        steps.push(step(name, what, needs, Action::Tests { package: (*package).to_owned() }));
    }
    for package in &workspace.packages {
        if PACKAGES.iter().all(|(_, listed, _)| *listed != package.name) {
            let name = package.name.strip_prefix("bellwether-").unwrap_or(&package.name);
            let what = format!("tests of {}", package.name);
            // The scenarios, and what the tests of backends share, start servers too.
            let needs: &[&Tool] = if ["tests", "support"].contains(&name) { POSTGRES_TOOLS } else { &[] };
            steps.push(step(name, &what, needs, Action::Tests { package: package.name.clone() }));
        }
    }
    steps.extend([
        step("doctests", "the code in the documentation", &[], DOCTESTS),
        step("docs", "the documentation builds without a warning", &[], DOCS),
        step("sim", "500 seeds without a violation, optimised", &[], SEEDS),
        step("sim", "every planted bug is caught", &[], BUGS),
    ]);
    steps
}

fn step(name: &str, what: &str, needs: &'static [&'static Tool], action: Action) -> Step {
    Step { name: name.to_owned(), what: what.to_owned(), needs, action }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Package;
    use std::path::PathBuf;

    #[test]
    fn a_package_without_a_row_is_tested_under_its_own_name() {
        let package = |name: &str| Package {
            name: name.to_owned(),
            version: "0.0.0".to_owned(),
            dir: String::new(),
            dependencies: Vec::new(),
            targets: Vec::new(),
        };
        let packages = vec![package("bellwether-core"), package("bellwether-moon")];
        let steps = all(&Workspace { root: PathBuf::new(), packages });
        let named = |name: &str| steps.iter().filter(|step| step.name == name).count();
        assert_eq!((named("core"), named("moon")), (1, 1));
        assert_eq!(named("election"), 1, "a row stays when its package is gone");
    }
}
