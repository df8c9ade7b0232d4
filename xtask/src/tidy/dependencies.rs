//! Dependencies point one way.
//!
//! ```text
//! core ← backend ← backends/*
//! core, backend, deadman ← election ← vip ← supervise ← cli
//! election ← agent ← cli
//! core, deadman, audit, fence ← torture ← cli
//! core, deadman ← cluster ← backends/raft, bellwether, cli
//! core, backend, backends/* ← fence ← bellwether
//! ```
//!
//! What decides must not reach what does: `core` has no dependency at all, not even for its tests, and a
//! backend never sees the election that drives it. Dev-dependencies are free elsewhere: a test may look at a
//! crate from above.

use super::{Findings, Project};
use crate::metadata::{DependencyKind, Package, Workspace};

/// What a package may use of ours.
enum May {
    Use(&'static [&'static str]),
    UseAnything,
}

/// Stands for every package under `backends/`.
const BACKENDS: &str = "backends/*";
const CORE: &str = "bellwether-core";

/// Where a crate under `crates/` stands. A new one gets a row before it gets a dependency.
const LAYERS: &[(&str, May)] = &[
    (CORE, May::Use(&[])),
    ("bellwether-backend", May::Use(&[CORE])),
    ("bellwether-deadman", May::Use(&[CORE])),
    // It knows event lines, and nothing of who wrote them.
    ("bellwether-audit", May::Use(&[CORE])),
    // It knows the command from outside, and stores by their URLs only.
    ("bellwether-torture", May::Use(&[CORE, "bellwether-audit", "bellwether-deadman", "bellwether-fence"])),
    ("bellwether-cluster", May::Use(&[CORE, "bellwether-deadman"])),
    ("bellwether-election", May::Use(&[CORE, "bellwether-backend", "bellwether-deadman"])),
    // A store of its own nodes, and so the one backend that knows clusters. The engine is a feature which it leaves off.
    ("bellwether-raft", May::Use(&[CORE, "bellwether-backend", "bellwether-cluster", "bellwether-deadman"])),
    // Its compare-and-set is that of the stores. It is handed an epoch, and knows nothing of whoever got it.
    ("bellwether-fence", May::Use(&[CORE, "bellwether-backend", BACKENDS])),
    ("bellwether-vip", May::Use(ELECTION_AND_BELOW)),
    // Its guard holds the address of a leader.
    (
        "bellwether-supervise",
        May::Use(&[
            CORE,
            "bellwether-backend",
            "bellwether-deadman",
            "bellwether-election",
            "bellwether-vip",
        ]),
    ),
    ("bellwether-agent", May::Use(ELECTION_AND_BELOW)),
    (
        "bellwether",
        May::Use(&[
            CORE,
            "bellwether-backend",
            "bellwether-cluster",
            "bellwether-deadman",
            "bellwether-election",
            "bellwether-fence",
            BACKENDS,
        ]),
    ),
    ("bellwether-cli", May::UseAnything),
    // Compiled first, and has to work when nothing else builds.
    ("xtask", May::Use(&[])),
];

const ELECTION_AND_BELOW: &[&str] =
    &[CORE, "bellwether-backend", "bellwether-deadman", "bellwether-election"];
const A_BACKEND: &[&str] = &[CORE, "bellwether-backend", "bellwether-deadman"];

pub(super) fn check(project: &Project) -> Findings {
    Findings { failures: failures(&project.workspace), notes: Vec::new() }
}

fn failures(workspace: &Workspace) -> Vec<String> {
    workspace.packages.iter().flat_map(|package| package_failures(workspace, package)).collect()
}

fn package_failures(workspace: &Workspace, package: &Package) -> Vec<String> {
    let name = &package.name;
    if name == CORE {
        let any = package.dependencies.iter();
        return any
            .map(|used| format!("{name} uses {}; it uses nothing, so that it stays pure", used.name))
            .collect();
    }
    let allowed = match place(package) {
        Some(May::UseAnything) => return Vec::new(),
        Some(May::Use(allowed)) => allowed,
        None => return vec![format!("{name} has no place in the layers: add it to {}", file!())],
    };
    let of_ours = |used: &str| workspace.packages.iter().find(|package| package.name == used);
    let mut failures = Vec::new();
    for used in package.dependencies.iter().filter(|used| used.kind != DependencyKind::Dev) {
        let Some(ours) = of_ours(&used.name) else { continue };
        let by_group = is_backend(ours) && allowed.contains(&BACKENDS);
        if !by_group && !allowed.contains(&used.name.as_str()) {
            failures.push(format!("{name} uses {}; it may use {}", used.name, list(allowed)));
        }
    }
    failures
}

fn place(package: &Package) -> Option<&'static May> {
    if let Some((_, may)) = LAYERS.iter().find(|(name, _)| *name == package.name) {
        return Some(may);
    }
    if is_backend(package) {
        return Some(&May::Use(A_BACKEND));
    }
    // Simulator, tests, benchmarks, examples: nothing depends on them, so they may look at everything.
    (!package.dir.starts_with("crates/")).then_some(&May::UseAnything)
}

fn is_backend(package: &Package) -> bool {
    package.dir.starts_with("backends/")
}

fn list(allowed: &[&str]) -> String {
    if allowed.is_empty() { "nothing of ours".to_owned() } else { allowed.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Dependency;
    use std::path::PathBuf;

    fn package(dir: &str, name: &str, uses: &[(&str, DependencyKind)]) -> Package {
        let dependency = |&(name, kind): &(&str, DependencyKind)| Dependency { name: name.to_owned(), kind };
        let dependencies = uses.iter().map(dependency).collect();
        Package { dependencies, ..Package::empty(dir, name) }
    }

    /// The failures after adding `package` to a house that is in order.
    fn with(added: Package) -> Vec<String> {
        use DependencyKind::Normal;
        let mut packages = vec![
            package("crates/core", "bellwether-core", &[]),
            package("crates/backend", "bellwether-backend", &[("bellwether-core", Normal)]),
            package("crates/deadman", "bellwether-deadman", &[("bellwether-core", Normal), ("libc", Normal)]),
            package("crates/election", "bellwether-election", &[("bellwether-backend", Normal)]),
            package("backends/file", "bellwether-file", &[("bellwether-deadman", Normal)]),
            package("sim", "bellwether-sim", &[("bellwether-backend", Normal)]),
        ];
        packages.retain(|package| package.name != added.name);
        packages.push(added);
        failures(&Workspace { root: PathBuf::new(), packages })
    }

    #[test]
    fn a_house_in_order_passes() {
        use DependencyKind::Normal;
        let uses = [("bellwether-election", Normal), ("bellwether-file", Normal), ("bellwether-sim", Normal)];
        assert_eq!(with(package("crates/cli", "bellwether-cli", &uses)), Vec::<String>::new());
        assert_eq!(with(package("crates/bellwether", "bellwether", &uses[..2])), Vec::<String>::new());
    }

    #[test]
    fn core_uses_nothing_not_even_for_tests() {
        for kind in [DependencyKind::Normal, DependencyKind::Build, DependencyKind::Dev] {
            let failures = with(package("crates/core", "bellwether-core", &[("serde", kind)]));
            assert_eq!(failures, ["bellwether-core uses serde; it uses nothing, so that it stays pure"]);
        }
    }

    #[test]
    fn a_backend_never_uses_the_election_except_in_its_tests() {
        let uses = |kind| package("backends/nats", "bellwether-nats", &[("bellwether-election", kind)]);
        assert_eq!(with(uses(DependencyKind::Normal)).len(), 1);
        assert_eq!(with(uses(DependencyKind::Build)).len(), 1);
        assert_eq!(with(uses(DependencyKind::Dev)), Vec::<String>::new());
    }

    #[test]
    fn nothing_below_looks_up() {
        use DependencyKind::Normal;
        let upwards = [("bellwether-file", Normal)];
        for (dir, name) in [
            ("crates/backend", "bellwether-backend"),
            ("crates/election", "bellwether-election"),
            ("crates/supervise", "bellwether-supervise"),
            ("xtask", "xtask"),
        ] {
            assert_eq!(with(package(dir, name, &upwards)).len(), 1, "{name}");
        }
    }

    #[test]
    fn a_new_crate_needs_a_place() {
        let failures = with(package("crates/moon", "bellwether-moon", &[]));
        assert!(failures[0].contains("bellwether-moon has no place"), "{failures:?}");
    }
}
