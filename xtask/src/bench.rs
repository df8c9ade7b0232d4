//! `cargo xtask bench`: the benchmarks, all or those named.

use crate::metadata::{Package, Workspace};
use crate::suggest::did_you_mean;
use crate::{Problem, Verdict, process};

const PACKAGE: &str = "bellwether-benches";

pub(crate) fn run(names: &[String]) -> Result<Verdict, Problem> {
    let workspace = Workspace::load()?;
    check(workspace.package(PACKAGE)?, names)?;
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
