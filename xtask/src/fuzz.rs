//! `cargo xtask fuzz`: looks for inputs that break a promise of a parser, by libFuzzer.
//!
//! cargo-fuzz drives it, with the toolchain of everything else: sanitizers would need a nightly compiler, and look for what unsafe code does, of
//! which the parsers have none. Overflows and debug assertions are checked.
//!
//! `fuzz/corpus` is where each target begins. What it finds on the way is kept in `target/fuzz/corpus`, where the next run goes on; an
//! input that breaks a promise is kept in `fuzz/artifacts`.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::metadata::Workspace;
use crate::process::{self, Stopwatch, say};
use crate::suggest::did_you_mean;
use crate::terminal::{on_stdout, span};
use crate::tools::{CARGO_FUZZ, CXX};
use crate::{Problem, Verdict};

const PACKAGE: &str = "bellwether-fuzz";
const FOLDER: &str = "fuzz";
/// Where it builds, and keeps what it found.
const OUTPUT: &str = "target/fuzz";
/// Half a minute for each target, or a little less.
const MINUTES: u64 = 20;
/// More than any input that has to be read, and little enough to be changed in every place.
const INPUT_MAX_BYTES: u32 = 8 * 1024;
/// In seconds, and in MiB: what takes more for one such input hangs, or hoards.
const LIMITS: (u32, u32) = (5, 1_024);
/// Whole programs would be optimised once more for each target, and crates by one thread.
const BUILD: [(&str, &str); 2] =
    [("CARGO_PROFILE_RELEASE_LTO", "off"), ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")];

#[derive(Debug, PartialEq, Eq)]
struct Request {
    minutes: u64,
    /// All where none is named.
    targets: Vec<String>,
}

pub(crate) fn run(args: &[String]) -> Result<Verdict, Problem> {
    let workspace = Workspace::load()?;
    let package = workspace.package(PACKAGE)?;
    let all: Vec<&str> = package
        .targets
        .iter()
        .filter(|target| target.kind == "bin")
        .map(|target| target.name.as_str())
        .collect();
    let Request { minutes, targets } = parse(args, &all)?;
    for tool in [&CARGO_FUZZ, &CXX] {
        tool.provide()?;
    }
    let named: Vec<&str> = targets.iter().map(String::as_str).collect();
    let chosen = if named.is_empty() { &all } else { &named };
    let builds: Vec<Option<&str>> =
        if named.is_empty() { vec![None] } else { named.iter().copied().map(Some).collect() };
    for target in builds {
        if !process::run(&mut cargo_fuzz(&workspace.root, "build", target))?.success() {
            return Ok(Verdict::Bad);
        }
    }
    let seconds = (minutes * 60 / chosen.len() as u64).max(1);
    say(&format!("{} targets, {seconds} s each", chosen.len()));
    let mut broken = Vec::new();
    for (number, target) in (1..).zip(chosen) {
        say(&format!("-- {number} of {}: {target}", chosen.len()));
        if fuzz(&workspace.root, target, seconds)? == Verdict::Bad {
            broken.push(*target);
        }
    }
    if broken.is_empty() {
        say("no promise was broken");
        return Ok(Verdict::Good);
    }
    say(&format!(
        "{} of {} targets broke a promise: {}. Mend the parser, and keep the input: move it from {FOLDER}/artifacts to {FOLDER}/corpus under \
         a name that says what it is",
        broken.len(),
        chosen.len(),
        broken.join(", ")
    ));
    Ok(Verdict::Bad)
}

fn parse(args: &[String], all: &[&str]) -> Result<Request, Problem> {
    let mut request = Request { minutes: MINUTES, targets: Vec::new() };
    let mut args = args.iter().map(String::as_str);
    while let Some(arg) = args.next() {
        if arg == "--minutes" {
            let number = args.next().and_then(|text| text.parse().ok()).filter(|minutes| *minutes > 0);
            request.minutes = number.ok_or("--minutes needs a number, as in `--minutes 20`")?;
        } else if all.contains(&arg) {
            request.targets.push(arg.to_owned());
        } else {
            let hint = did_you_mean(arg, all.iter().copied().chain(["--minutes"]));
            return Err(format!("there is no target `{arg}`{hint}; there are {}", all.join(", ")));
        }
    }
    Ok(request)
}

fn cargo_fuzz(root: &Path, what: &str, target: Option<&str>) -> Command {
    let mut cargo = process::cargo(root);
    cargo.envs(BUILD).args(["fuzz", what, "--sanitizer", "none", "--codegen-units", "16"]);
    cargo.args(["--fuzz-dir", FOLDER, "--target-dir", OUTPUT]).args(target);
    cargo
}

/// Fuzzes one target for as long, and shows what came of it.
fn fuzz(root: &Path, target: &str, seconds: u64) -> Result<Verdict, Problem> {
    let kept = root.join(OUTPUT).join("corpus").join(target);
    fs::create_dir_all(&kept).map_err(|error| format!("cannot make {}: {error}", kept.display()))?;
    let (timeout, memory) = LIMITS;
    let mut cargo = cargo_fuzz(root, "run", Some(target));
    // The first folder is where libFuzzer writes.
    cargo.arg(&kept).arg(root.join(FOLDER).join("corpus").join(target)).arg("--");
    cargo.arg(format!("-max_total_time={seconds}")).arg(format!("-max_len={INPUT_MAX_BYTES}"));
    cargo.arg(format!("-timeout={timeout}")).arg(format!("-rss_limit_mb={memory}"));
    cargo.arg("-print_final_stats=1");
    let watch = Stopwatch::start();
    let mut told = Told::default();
    let status = process::listen_to_errors(&mut cargo, |line| told.hear(line))?;
    let Told { executions, coverage, said } = told;
    let paint = on_stdout();
    let word = if status.success() { paint.good("ok    ") } else { paint.bad("FAILED") };
    if !status.success() {
        said.iter().for_each(|line| say(line));
    }
    let took = span(watch.took());
    say(&format!("{word} {target:24} {executions:>12} executions {coverage:>7} edges {took:>10}"));
    Ok(if status.success() { Verdict::Good } else { Verdict::Bad })
}

/// What libFuzzer says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    executions: u64,
    coverage: u64,
    /// All that is no progress and no figure: why it ended.
    said: Vec<String>,
}

impl Told {
    fn hear(&mut self, line: &str) {
        if let Some(figure) = line.strip_prefix("stat::") {
            if let Some(count) = figure.strip_prefix("number_of_executed_units:") {
                self.executions = count.trim().parse().unwrap_or(self.executions);
            }
        } else if line.starts_with('#') {
            let mut words = line.split_whitespace();
            let number = words.next().and_then(|word| word.trim_start_matches('#').parse().ok());
            // Where it ends by a crash, there are no figures.
            self.executions = number.unwrap_or(self.executions);
            let coverage = words.skip_while(|word| *word != "cov:").nth(1);
            self.coverage = coverage.and_then(|word| word.parse().ok()).unwrap_or(self.coverage);
        } else if !line.starts_with("INFO:") {
            self.said.push(line.to_owned());
        }
    }
}

/// Installs cargo-fuzz for this user.
pub(crate) fn install() -> Result<(), String> {
    let mut install = process::cargo(Path::new("/"));
    match process::run(install.args(["install", "cargo-fuzz", "--locked"]))?.success() {
        true => Ok(()),
        false => Err("`cargo install cargo-fuzz --locked` failed".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Request, Problem> {
        parse(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>(), &["arp", "record"])
    }

    #[test]
    fn targets_are_chosen_by_name_and_others_are_refused_with_the_nearest() {
        assert_eq!(of(""), Ok(Request { minutes: MINUTES, targets: Vec::new() }));
        assert_eq!(of("record --minutes 3"), Ok(Request { minutes: 3, targets: vec!["record".to_owned()] }));
        assert!(of("recrod").unwrap_err().contains("did you mean `record`"));
        assert!(of("--minute 3").unwrap_err().contains("did you mean `--minutes`"));
        assert!(of("--minutes").unwrap_err().contains("needs a number"));
        assert!(of("--minutes 0").unwrap_err().contains("needs a number"));
    }

    #[test]
    fn figures_are_taken_from_what_the_fuzzer_says_and_the_rest_is_kept() {
        let mut told = Told::default();
        for line in [
            "INFO: Seed: 7",
            "#1024\tNEW    cov: 41 ft: 50 corp: 3/30b",
            "thread panicked",
            "#2048\tpulse  cov: 43 ft: 50",
            "stat::number_of_executed_units: 4096",
        ] {
            told.hear(line);
        }
        let said = vec!["thread panicked".to_owned()];
        assert_eq!(told, Told { executions: 4_096, coverage: 43, said });
    }
}
