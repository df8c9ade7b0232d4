//! `cargo xtask prove`: what the tests show in small, at full length and optimised.

use crate::metadata::Workspace;
use crate::suggest::did_you_mean;
use crate::tools::{
    APISERVER, CLIENT_GO, ETCD, GO, IPROUTE, NATS, NODE, NPM, OLD_NATS, POSTGRES, PYTHON, Tool,
};
use crate::{Problem, Verdict, process};

const PACKAGE: &str = "bellwether-tests";
const PROGRAM: &str = "bellwether-prove";

/// What can be proved, and what that needs; the program has the same words.
const PROOFS: &[(&str, &[&Tool])] = &[
    ("run", &[]),
    ("postgres", &[&POSTGRES, &IPROUTE]),
    ("nats", &[&NATS, &OLD_NATS, &IPROUTE]),
    ("kubernetes", &[&ETCD, &APISERVER, &CLIENT_GO, &IPROUTE]),
    ("raft", &[&IPROUTE]),
    ("clients", &[&PYTHON, &GO, &NODE, &NPM]),
];

pub(crate) fn run(args: &[String]) -> Result<Verdict, Problem> {
    let needs = check(args)?;
    let workspace = Workspace::load()?;
    workspace.package(PACKAGE)?;
    for tool in needs {
        tool.provide()?;
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

/// What the proof that is asked for needs.
fn check(args: &[String]) -> Result<&'static [&'static Tool], Problem> {
    let names = || PROOFS.iter().map(|(name, _)| *name);
    let list = names().collect::<Vec<_>>().join(", ");
    let asked = args.first().ok_or_else(|| format!("say what to prove: {list}"))?;
    let found = PROOFS.iter().find(|(name, _)| name == asked);
    found.map(|(_, needs)| *needs).ok_or_else(|| {
        let hint = did_you_mean(asked, names());
        format!("there is no proof `{asked}`{hint}; there are: {list}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_that_is_not_there_is_refused_by_name() {
        assert!(check(&["run".to_owned(), "--rounds".to_owned()]).is_ok_and(<[_]>::is_empty));
        assert_eq!(check(&["postgres".to_owned()]).map(<[_]>::len), Ok(2));
        assert_eq!(check(&["kubernetes".to_owned()]).map(<[_]>::len), Ok(4));
        assert_eq!(check(&["raft".to_owned()]).map(<[_]>::len), Ok(1));
        assert_eq!(check(&["clients".to_owned()]).map(<[_]>::len), Ok(4));
        assert!(check(&[]).unwrap_err().contains("run"));
        assert!(check(&["urn".to_owned()]).unwrap_err().contains("did you mean `run`"));
    }
}
