//! `cargo xtask mutants`: breaks the judgement of the elections in small ways, one at a time, and asks the tests whether they notice.
//!
//! cargo-mutants does the breaking. This chooses the files (the core, the lease, observations, sessions), leaves alone what is only there to
//! be broken, and compares what no test noticed with `mutants-accepted.txt`, where each entry gives its reason. A mutant
//! that is neither caught nor accepted fails the command. The tests of the core and of the backend are asked, not the simulator, which takes
//! too long for each mutant and has bugs of its own to catch (`cargo xtask sim --bugs`).

use std::path::Path;

use crate::metadata::Workspace;
use crate::{Problem, Verdict, process};

const FILES: [&str; 4] = [
    "crates/core/src/**/*.rs",
    "crates/backend/src/lease/**/*.rs",
    "crates/backend/src/observations.rs",
    "crates/backend/src/sessions.rs",
];

/// The planted bugs are for the simulator; what is printed for people is not judgement.
const LEFT_OUT: [&str; 2] = ["impl (Debug|Display)", "Planted"];

const ACCEPTED: &str = "xtask/mutants-accepted.txt";

pub(crate) fn run(args: &[String]) -> Result<Verdict, Problem> {
    let workspace = Workspace::load()?;
    let accepted = std::fs::read_to_string(workspace.root.join(ACCEPTED))
        .map_err(|error| format!("cannot read {ACCEPTED}: {error}"))?;
    let accepted = parse_accepted(&accepted)?;
    if process::version(&["cargo-mutants", "mutants", "--version"]).is_none() {
        println!("cargo-mutants is missing: installing it for this user");
        let mut install = process::cargo(Path::new("/"));
        if !process::run(install.args(["install", "cargo-mutants", "--locked"]))?.success() {
            return Err("cannot install cargo-mutants; run `cargo install cargo-mutants --locked`".to_owned());
        }
    }
    let mut cargo = process::cargo(&workspace.root);
    let output = workspace.root.join("target/mutants");
    std::fs::create_dir_all(&output).map_err(|error| format!("cannot make {}: {error}", output.display()))?;
    cargo.args(["mutants", "--all-features", "--no-shuffle", "--output"]).arg(&output);
    for package in ["bellwether-core", "bellwether-backend"] {
        cargo.args(["--package", package, "--test-package", package]);
    }
    // Counted from the tests of one package alone, the limit would be too short for those of both.
    cargo.args(["--timeout", "300"]);
    for pattern in LEFT_OUT {
        cargo.args(["--exclude-re", pattern]);
    }
    if !args.iter().any(|arg| arg == "--file" || arg.starts_with("--file=")) {
        for glob in FILES {
            cargo.args(["--file", glob]);
        }
    }
    // 2 and 3 say that something was missed or hung, which is looked into below.
    let status = process::run(cargo.args(args))?;
    if !matches!(status.code(), Some(0 | 2 | 3)) {
        return Err(format!("cargo-mutants could not do its work ({status})"));
    }
    report(&output.join("mutants.out"), &accepted)
}

fn report(dir: &Path, accepted: &[String]) -> Result<Verdict, Problem> {
    let lines = |name: &str| -> Result<Vec<String>, Problem> {
        let path = dir.join(name);
        let text = std::fs::read_to_string(&path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        Ok(text.lines().map(str::to_owned).collect())
    };
    let (caught, hung, missed) = (lines("caught.txt")?, lines("timeout.txt")?, lines("missed.txt")?);
    let (known, new): (Vec<_>, Vec<_>) =
        missed.iter().partition(|line| accepted.contains(&without_place(line)));
    for mutant in &new {
        println!("not caught: {mutant}");
    }
    println!(
        "{} caught, {} hung, {} accepted, {} neither caught nor accepted",
        caught.len(),
        hung.len(),
        known.len(),
        new.len()
    );
    Ok(if new.is_empty() { Verdict::Good } else { Verdict::Bad })
}

/// `path:line:column: what` becomes `path: what`, so that an entry outlives changes elsewhere in its file.
fn without_place(mutant: &str) -> String {
    let mut parts = mutant.splitn(4, ':');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(path), Some(_), Some(_), Some(what)) => format!("{path}:{what}"),
        _ => mutant.to_owned(),
    }
}

/// One mutant a line, under a comment that says why it is accepted.
fn parse_accepted(text: &str) -> Result<Vec<String>, Problem> {
    let (mut accepted, mut reason) = (Vec::new(), false);
    for line in text.lines().map(str::trim) {
        match line {
            "" => reason = false,
            _ if line.starts_with('#') => reason = true,
            _ if reason => accepted.push(line.to_owned()),
            _ => return Err(format!("{ACCEPTED}: say above `{line}`, after a `#`, why it is accepted")),
        }
    }
    Ok(accepted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_needs_a_reason_and_no_line_number() {
        let text = "# equal either way\ncrates/core/src/a.rs: replace < with <= in f\n";
        let accepted = parse_accepted(text).unwrap();
        assert_eq!(accepted, [without_place("crates/core/src/a.rs:7:12: replace < with <= in f")]);
        assert!(parse_accepted("# a reason\n\nsome mutant\n").unwrap_err().contains("why"));
    }

    #[test]
    fn only_what_is_neither_caught_nor_accepted_fails() {
        let dir = std::env::temp_dir().join(format!("xtask-mutants-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        for (name, text) in [("caught.txt", "a\nb\n"), ("timeout.txt", ""), ("missed.txt", "c.rs:1:2: d\n")] {
            std::fs::write(dir.join(name), text).unwrap();
        }
        assert_eq!(report(&dir, &["c.rs: d".to_owned()]), Ok(Verdict::Good));
        assert_eq!(report(&dir, &[]), Ok(Verdict::Bad));
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
