//! `cargo xtask bench`: the benchmarks, all or those named, one after the other; what all of them measured as one run; and the page that
//! is made of a run.
//!
//! ```text
//! cargo bench ──▶ rows ──▶ target/bench/RUN.json ──▶ table
//!                                │ --write
//!                                └──▶ docs/performance.json ──▶ docs/performance.md, docs/performance.svg
//! ```
//!
//! `cargo xtask tidy` asks whether the page is that of its figures, and measures nothing for that.

mod machine;
mod page;
mod plot;
mod row;
mod run;
mod table;

use std::path::Path;

use crate::metadata::{Package, Workspace};
use crate::suggest::did_you_mean;
use crate::tools::{
    APISERVER, CLIENT_GO, ETCD, ETCD_CLIENT, ETCD_ELECTION, HASHICORP_RAFT, KUBE_LEADER_ELECTION, KUBERT,
    NATS, NATS_LEADER_ELECTION, PGLOCK, POSTGRES, RIVER, Tool,
};
use crate::{Problem, Verdict, process};
use run::{Benchmark, Run};

const PACKAGE: &str = "bellwether-benches";
/// As `benches/src/rows.rs` knows it.
const ROWS: &str = "BELLWETHER_BENCH_ROWS";
/// The figures of the page, from the root of the project.
pub(crate) const FIGURES: &str = "docs/performance.json";
const COMMAND: &str = "cargo xtask bench";

/// Benchmarks that start servers of their own, and what they need for that.
const NEEDS: &[(&str, &[&Tool])] = &[
    ("postgres", &[&POSTGRES, &PGLOCK, &RIVER]),
    ("nats", &[&NATS, &NATS_LEADER_ELECTION]),
    ("kubernetes", &[&ETCD, &APISERVER, &CLIENT_GO, &KUBE_LEADER_ELECTION, &KUBERT]),
    ("raft", &[&ETCD, &ETCD_CLIENT, &ETCD_ELECTION, &HASHICORP_RAFT]),
];

/// What was asked for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    names: Vec<String>,
    write: bool,
    last: bool,
    add: bool,
    /// For the benchmarks themselves: measures to take alone.
    measures: Vec<String>,
}

pub(crate) fn run(args: &[String]) -> Result<Verdict, Problem> {
    let asked = Asked::parse(args)?;
    let workspace = Workspace::load()?;
    let (run, verdict) =
        if asked.last { (Run::last(&workspace.root)?, Verdict::Good) } else { measure(&workspace, &asked)? };
    print!("{}", table::table(&run));
    match verdict {
        Verdict::Good if asked.write => write(&workspace.root, &run)?,
        Verdict::Bad if asked.write => process::say("a benchmark failed, so the page stays as it is"),
        _ => {}
    }
    Ok(verdict)
}

/// The files that are made of these figures, from the root of the project, with what has to be in them.
pub(crate) fn made_of(figures: &str) -> Result<[(&'static str, String); 2], Problem> {
    let run = Run::parse(figures)?;
    Ok([("docs/performance.md", page::page(&run)), ("docs/performance.svg", plot::plot(&run))])
}

fn write(root: &Path, run: &Run) -> Result<(), Problem> {
    let figures = run.to_json();
    let made = made_of(&figures)?;
    for (path, text) in [(FIGURES, figures)].into_iter().chain(made) {
        std::fs::write(root.join(path), text).map_err(|error| format!("cannot write {path}: {error}"))?;
        process::say(&format!("{path} written"));
    }
    Ok(())
}

/// Runs one benchmark after the other. One that fails does not stop the others.
fn measure(workspace: &Workspace, asked: &Asked) -> Result<(Run, Verdict), Problem> {
    let known = benchmarks(workspace.package(PACKAGE)?);
    check(&known, &asked.names)?;
    let is_asked = |name: &&str| asked.names.is_empty() || asked.names.iter().any(|named| named == name);
    let chosen: Vec<&str> = known.iter().copied().filter(is_asked).collect();
    // Read first: that there is none should not come out after an hour.
    let earlier = if asked.add { Some(Run::last(&workspace.root)?) } else { None };
    let tools: Vec<&Tool> = needs(&chosen).collect();
    for tool in &tools {
        tool.provide()?;
    }
    let (mut verdict, mut done) = (Verdict::Good, Vec::new());
    for name in &chosen {
        process::say(&format!("benchmark {name}"));
        let (benchmark, good) = bench(&workspace.root, name, &asked.measures)?;
        done.push(benchmark);
        if !good {
            verdict = Verdict::Bad;
        }
    }
    // With some of its measures, a benchmark is not done.
    let is_left = |name: &&str| !chosen.contains(name) || !asked.measures.is_empty();
    let run = Run {
        commands: vec![asked.command()],
        facts: machine::facts(workspace, &tools),
        benchmarks: done,
        left_out: known.iter().copied().filter(is_left).map(str::to_owned).collect(),
    };
    let run = match earlier {
        Some(earlier) => earlier.with(run)?,
        None => run,
    };
    let kept = run.keep(&workspace.root)?;
    process::say(&format!("\nall rows: {}", kept.display()));
    Ok((run, verdict))
}

/// Runs one; what it measured, and whether it succeeded.
fn bench(root: &Path, name: &str, measures: &[String]) -> Result<(Benchmark, bool), Problem> {
    let rows = root.join("target/bench").join(format!("{name}.rows"));
    let cannot = |error: std::io::Error| format!("cannot write {}: {error}", rows.display());
    std::fs::create_dir_all(root.join("target/bench")).map_err(cannot)?;
    std::fs::write(&rows, "").map_err(cannot)?;
    let mut cargo = process::cargo(root);
    cargo.args(["bench", "--package", PACKAGE, "--bench", name, "--"]).args(measures).env(ROWS, &rows);
    let good = process::run(&mut cargo)?.success();
    let text = std::fs::read_to_string(&rows).map_err(|error| format!("no rows of {name}: {error}"))?;
    let name = [&[name.to_owned()], measures].concat().join(" ");
    Ok((Benchmark::read(&name, &text)?, good))
}

/// What these benchmarks need, each tool once.
fn needs(names: &[&str]) -> impl Iterator<Item = &'static Tool> {
    NEEDS.iter().filter(move |(name, _)| names.contains(name)).flat_map(|(_, tools)| tools.iter().copied())
}

fn benchmarks(package: &Package) -> Vec<&str> {
    let benches = package.targets.iter().filter(|target| target.kind == "bench");
    benches.map(|target| target.name.as_str()).collect()
}

fn check(known: &[&str], names: &[String]) -> Result<(), Problem> {
    match names.iter().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(name) => {
            let hint = did_you_mean(name, known.iter().copied());
            Err(format!("there is no benchmark `{name}`{hint}; there are: {}", known.join(", ")))
        }
    }
}

impl Asked {
    fn parse(args: &[String]) -> Result<Asked, Problem> {
        let mut asked = Asked::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--write" => asked.write = true,
                "--last" => asked.last = true,
                "--add" => asked.add = true,
                "--" => asked.measures = args.by_ref().cloned().collect(),
                flag if flag.starts_with('-') => {
                    let hint = did_you_mean(flag, ["--write", "--last", "--add"]);
                    return Err(format!("`bench` does not take `{flag}`{hint}"));
                }
                name => asked.names.push(name.to_owned()),
            }
        }
        if asked.last && (asked.add || !asked.names.is_empty() || !asked.measures.is_empty()) {
            return Err("`--last` measures nothing, so it takes no benchmark and no `--add`".to_owned());
        }
        if !asked.measures.is_empty() && asked.names.len() != 1 {
            return Err("measures after `--` are those of one benchmark: name it".to_owned());
        }
        Ok(asked)
    }

    /// What measures the same again.
    fn command(&self) -> String {
        let mut words = vec![COMMAND];
        words.extend(self.names.iter().map(String::as_str));
        if !self.measures.is_empty() {
            words.push("--");
            words.extend(self.measures.iter().map(String::as_str));
        }
        words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Target;

    fn asked(args: &[&str]) -> Result<Asked, Problem> {
        Asked::parse(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_benchmark_gets_its_servers_and_no_others() {
        let names = |chosen: &[&str]| needs(chosen).map(|tool| tool.name).collect::<Vec<_>>();
        assert_eq!(names(&["is_leader", "nats"]), ["NATS", "NATS-Leader-Election"]);
        assert_eq!(
            names(&["kubernetes"]),
            ["etcd", "kube-apiserver", "client-go", "kube-leader-election", "kubert"]
        );
        assert_eq!(names(&["raft"]), ["etcd", "etcd's client", "etcd's election", "hashicorp/raft"]);
        assert_eq!(names(&["is_leader"]), Vec::<&str>::new());
    }

    #[test]
    fn a_benchmark_that_is_not_there_is_refused_by_name() {
        let target = |name: &str, kind: &str| Target { name: name.into(), kind: kind.into(), tested: false };
        let targets = vec![target("is_leader", "bench"), target("report", "bin")];
        let package = Package { targets, ..Package::empty("benches", PACKAGE) };
        let known = benchmarks(&package);
        assert_eq!(check(&known, &["is_leader".into()]), Ok(()));
        let problem = check(&known, &["is_laeder".into()]).unwrap_err();
        assert!(problem.contains("did you mean `is_leader`"), "{problem}");
        assert!(check(&known, &["report".into()]).is_err());
    }

    #[test]
    fn the_command_of_a_run_measures_the_same_again() {
        assert_eq!(asked(&["--write"]).unwrap().command(), "cargo xtask bench");
        let one = asked(&["postgres", "--write", "--", "acquire", "beside"]).unwrap();
        assert_eq!(one.command(), "cargo xtask bench postgres -- acquire beside");
        assert!(one.write);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert!(asked(&["--wirte"]).unwrap_err().contains("did you mean `--write`"));
        assert!(asked(&["nats", "--last"]).unwrap_err().contains("measures nothing"));
        assert!(asked(&["--last", "--add"]).unwrap_err().contains("measures nothing"));
        assert!(asked(&["nats", "raft", "--", "writes"]).unwrap_err().contains("of one benchmark"));
        assert!(asked(&["--", "writes"]).is_err());
    }
}
