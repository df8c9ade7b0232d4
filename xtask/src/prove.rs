//! `cargo xtask prove`: what the tests show in small, at full length and optimised.

use crate::metadata::Workspace;
use crate::suggest::did_you_mean;
use crate::{Problem, Verdict, process, tools};

const PACKAGE: &str = "bellwether-tests";
const PROGRAM: &str = "bellwether-prove";

/// What can be proved; the program has the same words.
const PROOFS: &[&str] = &["run", "postgres"];

pub(crate) fn run(args: &[String]) -> Result<Verdict, Problem> {
    check(args)?;
    let workspace = Workspace::load()?;
    workspace.package(PACKAGE)?;
    if args.first().is_some_and(|proof| proof == "postgres") {
        for tool in [tools::POSTGRES, tools::IPROUTE] {
            tool.provide()?;
        }
    }
    // The program runs others of its package, which have to be there.
    let mut cargo = process::cargo(&workspace.root);
    if !process::run(cargo.args(["build", "--release", "--package", PACKAGE, "--bins"]))?.success() {
        return Ok(Verdict::Bad);
    }
    let mut cargo = process::cargo(&workspace.root);
    cargo.args(["run", "--release", "--package", PACKAGE, "--bin", PROGRAM, "--"]).args(args);
    Ok(if process::run(&mut cargo)?.success() { Verdict::Good } else { Verdict::Bad })
}

fn check(args: &[String]) -> Result<(), Problem> {
    let list = PROOFS.join(", ");
    match args.first() {
        None => Err(format!("say what to prove: {list}")),
        Some(proof) if PROOFS.contains(&proof.as_str()) => Ok(()),
        Some(other) => {
            let hint = did_you_mean(other, PROOFS.iter().copied());
            Err(format!("there is no proof `{other}`{hint}; there are: {list}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_that_is_not_there_is_refused_by_name() {
        assert_eq!(check(&["run".to_owned(), "--rounds".to_owned()]), Ok(()));
        assert_eq!(check(&["postgres".to_owned()]), Ok(()));
        assert!(check(&[]).unwrap_err().contains("run"));
        assert!(check(&["urn".to_owned()]).unwrap_err().contains("did you mean `run`"));
    }
}
