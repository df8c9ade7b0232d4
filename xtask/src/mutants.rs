//! `cargo xtask mutants`: breaks the judgement of the elections in small ways, one at a time, and asks the tests whether they notice.
//!
//! cargo-mutants does the breaking. This chooses the files (the core, the lease, observations, sessions) and compares what no test noticed with `mutants-accepted.txt`, where each entry gives its reason. A mutant
//! that is neither caught nor accepted fails the command.
//!
//! A mutant is shown to the quickest tests first ([`TESTS`]): one of the core to the tests of the core, and only if they miss it to those
//! of the backend. The simulator is not asked: it takes too long for each mutant and has bugs of its own to catch (`cargo xtask sim --bugs`).

use std::path::Path;
use std::process::Command;

use crate::metadata::Workspace;
use crate::{Problem, Verdict, process};

const FILES: [&str; 5] = [
    "crates/core/src/**/*.rs",
    "crates/backend/src/lease/**/*.rs",
    "crates/backend/src/observations.rs",
    "crates/backend/src/session_lease/known.rs",
    "crates/backend/src/takeover.rs",
];

/// What is printed for people is not judgement.
const LEFT_OUT: &str = "impl (fmt::)?(Debug|Display)";

/// Tests that are asked together.
struct Tests {
    package: &'static str,
    /// Only mutants under this path are shown to them.
    of: &'static str,
    targets: &'static str,
    skipped: &'static [&'static str],
    /// What a mutant takes, built and tested, on two cores with nothing else to do.
    seconds: f64,
}

/// In the order in which they are asked; each is shown what those before it did not catch.
const TESTS: [Tests; 2] = [
    Tests { package: "bellwether-core", of: "crates/core/", targets: "--lib", skipped: &[], seconds: 2.0 },
    Tests {
        package: "bellwether-backend",
        of: "crates/",
        targets: "--tests",
        // It asks whether the conformance suite notices what is broken in a store, and takes its time.
        skipped: &["every_mistake_is_reported_by_at_least_two_cases"],
        seconds: 5.0,
    },
];

impl Tests {
    /// For the tests themselves, after a `--`.
    fn args(&self) -> impl Iterator<Item = &'static str> {
        self.skipped.iter().flat_map(|name| ["--skip", name])
    }
}

/// Tests that take more seconds than this hang. Plenty, for a machine with much else to do.
const TIMEOUT: &str = "60";

const ACCEPTED: &str = "xtask/mutants-accepted.txt";

pub(crate) fn run(args: &[String]) -> Result<Verdict, Problem> {
    let workspace = Workspace::load()?;
    let accepted = std::fs::read_to_string(workspace.root.join(ACCEPTED))
        .map_err(|error| format!("cannot read {ACCEPTED}: {error}"))?;
    let accepted = parse_accepted(&accepted)?;
    install()?;
    let output = workspace.root.join("target/mutants");
    let mut left = list(&workspace.root, args)?;
    process::say(&expected(&left));
    let mut found = Found::default();
    for tests in &TESTS {
        let (shown, rest): (Vec<_>, Vec<_>) = left.into_iter().partition(|name| name.starts_with(tests.of));
        left = rest;
        if !shown.is_empty() {
            let dir = output.join(tests.package);
            test(&workspace.root, &dir, tests, &shown, args)?;
            left.extend(found.add(&dir.join("mutants.out"))?);
        }
    }
    Ok(report(&found, &left, &accepted))
}

fn install() -> Result<(), Problem> {
    if process::version(&["cargo-mutants", "mutants", "--version"]).is_none() {
        println!("cargo-mutants is missing: installing it for this user");
        let mut install = process::cargo(Path::new("/"));
        if !process::run(install.args(["install", "cargo-mutants", "--locked"]))?.success() {
            return Err("cannot install cargo-mutants; run `cargo install cargo-mutants --locked`".to_owned());
        }
    }
    Ok(())
}

/// The mutants that these arguments choose, as `path:line:column: what`.
fn list(root: &Path, args: &[String]) -> Result<Vec<String>, Problem> {
    let mut cargo = process::cargo(root);
    cargo.args(["mutants", "--list"]);
    choose(&mut cargo);
    if !args.iter().any(|arg| arg == "--file" || arg.starts_with("--file=")) {
        for glob in FILES {
            cargo.args(["--file", glob]);
        }
    }
    Ok(process::read(cargo.args(args))?.lines().map(str::to_owned).collect())
}

fn choose(cargo: &mut Command) {
    for tests in &TESTS {
        cargo.args(["--package", tests.package]);
    }
    cargo.args(["--exclude-re", LEFT_OUT]);
}

/// What most of them take: those that the first tests that see them catch.
fn expected(mutants: &[String]) -> String {
    let first = |name: &&String| TESTS.iter().find(|tests| name.starts_with(tests.of));
    let seconds: f64 = mutants.iter().filter_map(|name| first(&name)).map(|tests| tests.seconds).sum();
    let minutes = (seconds / 60.0).ceil();
    format!("{} mutants: about {minutes} min on two idle cores, longer if many are missed", mutants.len())
}

/// Asks the tests first about what is not broken: had they failed anyway, every mutant would count as caught.
fn test(root: &Path, dir: &Path, tests: &Tests, shown: &[String], args: &[String]) -> Result<(), Problem> {
    std::fs::create_dir_all(dir).map_err(|error| format!("cannot make {}: {error}", dir.display()))?;
    let mut cargo = process::cargo(root);
    cargo.args(["test", "--quiet", "--all-features", "--package", tests.package, tests.targets, "--"]);
    cargo.args(tests.args());
    if !process::run(&mut cargo)?.success() {
        return Err(format!(
            "the tests of {} fail before anything is broken: mend that first",
            tests.package
        ));
    }
    let mut cargo = process::cargo(root);
    // Most of the time goes into building: nothing is optimised or described for debuggers. Lints must not keep a mutant from being
    // built.
    cargo.env("CARGO_INCREMENTAL", "1").env("CARGO_PROFILE_DEV_DEBUG", "0");
    cargo.args(["mutants", "--all-features", "--cap-lints=true", "--no-shuffle"]);
    for optimised in &TESTS {
        cargo.arg(format!("--cargo-arg=--config=profile.dev.package.{}.opt-level=0", optimised.package));
    }
    // cargo-mutants would ask the tests of the mutants' own package, and go by what those take.
    cargo.args(["--baseline", "skip", "--timeout", TIMEOUT, "--test-package", tests.package]);
    cargo.arg(format!("--cargo-arg={}", tests.targets));
    choose(&mut cargo);
    for mutant in shown {
        cargo.arg("--re").arg(format!("^{}$", escaped(mutant)));
    }
    cargo.arg("--output").arg(dir).args(without_shard(args));
    cargo.args(["--", "--"]).args(tests.args());
    // 2 and 3 say that something was missed or hung, which is looked into later.
    let status = process::run(&mut cargo)?;
    if !matches!(status.code(), Some(0 | 2 | 3)) {
        return Err(format!("cargo-mutants could not do its work ({status})"));
    }
    Ok(())
}

/// What was found so far.
#[derive(Default)]
struct Found {
    caught: usize,
    hung: usize,
}

impl Found {
    /// Counts what one run of cargo-mutants found, and returns what it missed.
    fn add(&mut self, dir: &Path) -> Result<Vec<String>, Problem> {
        let lines = |name: &str| -> Result<Vec<String>, Problem> {
            let path = dir.join(name);
            let text = std::fs::read_to_string(&path)
                .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
            Ok(text.lines().map(str::to_owned).collect())
        };
        self.caught += lines("caught.txt")?.len();
        self.hung += lines("timeout.txt")?.len();
        lines("missed.txt")
    }
}

fn report(found: &Found, missed: &[String], accepted: &[String]) -> Verdict {
    let (known, new): (Vec<_>, Vec<_>) =
        missed.iter().partition(|line| accepted.contains(&without_place(line)));
    for mutant in &new {
        println!("not caught: {mutant}");
    }
    let Found { caught, hung } = found;
    let (known, left) = (known.len(), new.len());
    println!("{caught} caught, {hung} hung, {known} accepted, {left} neither caught nor accepted");
    if new.is_empty() { Verdict::Good } else { Verdict::Bad }
}

/// The arguments without `--shard`, which was heeded when the mutants were listed.
fn without_shard(args: &[String]) -> Vec<&String> {
    let mut args = args.iter();
    let mut kept = Vec::new();
    while let Some(arg) = args.next() {
        if arg == "--shard" {
            args.next();
        } else if !arg.starts_with("--shard=") {
            kept.push(arg);
        }
    }
    kept
}

/// As a regular expression that matches this text.
fn escaped(text: &str) -> String {
    text.chars().flat_map(|c| r"\.+*?()|[]{}^$".contains(c).then_some('\\').into_iter().chain([c])).collect()
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
        let mut found = Found::default();
        let missed = found.add(&dir).unwrap();
        std::fs::remove_dir_all(&dir).unwrap();
        assert_eq!((found.caught, found.hung), (2, 0));
        assert_eq!(report(&found, &missed, &["c.rs: d".to_owned()]), Verdict::Good);
        assert_eq!(report(&found, &missed, &[]), Verdict::Bad);
    }

    #[test]
    fn a_part_is_taken_once_and_other_arguments_reach_every_run() {
        let args = ["--shard", "1/4", "--jobs", "2", "--shard=2/4"].map(str::to_owned);
        assert_eq!(without_shard(&args), ["--jobs", "2"]);
    }

    #[test]
    fn a_mutant_is_chosen_by_its_name_alone() {
        assert_eq!(
            escaped("a.rs: replace f -> Option<T> with (0)"),
            r"a\.rs: replace f -> Option<T> with \(0\)"
        );
    }

    #[test]
    fn every_mutant_is_shown_to_some_tests() {
        assert!(FILES.iter().all(|glob| TESTS.iter().any(|tests| glob.starts_with(tests.of))));
    }
}
