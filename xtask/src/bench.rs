//! `cargo xtask bench`: the benchmarks, all or those named.

use crate::metadata::{Package, Workspace};
use crate::suggest::did_you_mean;
use crate::tools::{APISERVER, CLIENT_GO, ETCD, ETCD_CLIENT, NATS, POSTGRES, Tool};
use crate::{Problem, Verdict, process};

const PACKAGE: &str = "bellwether-benches";

/// Benchmarks that start servers of their own, and what they need for that.
const NEEDS: &[(&str, &[&Tool])] = &[
    ("postgres", &[&POSTGRES]),
    ("nats", &[&NATS]),
    ("kubernetes", &[&ETCD, &APISERVER, &CLIENT_GO]),
    ("raft", &[&ETCD, &ETCD_CLIENT]),
];

pub(crate) fn run(names: &[String]) -> Result<Verdict, Problem> {
    let workspace = Workspace::load()?;
    check(workspace.package(PACKAGE)?, names)?;
    for tool in needs(names) {
        tool.provide()?;
    }
    let mut cargo = process::cargo(&workspace.root);
    cargo.args(["bench", "--package", PACKAGE]);
    // Without names, the benchmarks only: `cargo bench` alone would also run the unit tests, and show nothing.
    if names.is_empty() {
        cargo.arg("--benches");
    }
    for name in names {
        cargo.args(["--bench", name]);
    }
    Ok(if process::run(&mut cargo)?.success() { Verdict::Good } else { Verdict::Bad })
}

/// What the benchmarks of these names need; without names, all of them.
fn needs(names: &[String]) -> impl Iterator<Item = &'static Tool> {
    let run = |name: &str| names.is_empty() || names.iter().any(|named| named == name);
    NEEDS.iter().filter(move |(name, _)| run(name)).flat_map(|(_, tools)| tools.iter().copied())
}

fn check(package: &Package, names: &[String]) -> Result<(), Problem> {
    let benches = || package.targets.iter().filter(|target| target.kind == "bench");
    let known: Vec<&str> = benches().map(|target| target.name.as_str()).collect();
    match names.iter().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => {
            let hint = did_you_mean(name, known.iter().copied());
            Err(format!("there is no benchmark `{name}`{hint}; there are: {}", known.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Target;

    #[test]
    fn a_benchmark_gets_its_servers_and_no_others() {
        let names = |asked: &[String]| needs(asked).map(|tool| tool.name).collect::<Vec<_>>();
        assert_eq!(names(&["is_leader".into(), "nats".into()]), ["NATS"]);
        assert_eq!(names(&["kubernetes".into()]), ["etcd", "kube-apiserver", "client-go"]);
        assert_eq!(names(&["raft".into()]), ["etcd", "etcd's client"]);
        assert_eq!(names(&[]).len(), 7);
    }

    #[test]
    fn a_benchmark_that_is_not_there_is_refused_by_name() {
        let target = |name: &str, kind: &str| Target { name: name.into(), kind: kind.into(), tested: false };
        let targets = vec![target("is_leader", "bench"), target("report", "bin")];
        let package = Package { targets, ..Package::empty("benches", PACKAGE) };
        assert_eq!(check(&package, &["is_leader".into()]), Ok(()));
        let problem = check(&package, &["is_laeder".into()]).unwrap_err();
        assert!(problem.contains("did you mean `is_leader`"), "{problem}");
        assert!(check(&package, &["report".into()]).is_err());
    }
}
