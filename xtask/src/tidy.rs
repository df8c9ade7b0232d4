//! `cargo xtask tidy`: the rules of the house, one file a rule.
//!
//! Every rule is a function from the project's files to what is wrong with them. None builds anything, so the
//! answer comes at once; the exception is a generated table, which is whatever its producer prints.

mod decisions;
mod dependencies;
mod documents;
mod environment;
mod fuzzing;
mod generated;
mod leftovers;
mod lints;
mod paths;
mod performance;
mod sizes;
mod unsafe_code;

use crate::metadata::Workspace;
use crate::process::say;
use crate::suggest::did_you_mean;
use crate::terminal::on_stdout;
use crate::tree::Tree;
use crate::{Problem, Verdict, bugs};

/// What the rules look at.
struct Project {
    workspace: Workspace,
    tree: Tree,
}

/// What a rule found.
#[derive(Debug, Default)]
struct Findings {
    failures: Vec<String>,
    /// Worth a line, not a failure.
    notes: Vec<String>,
}

struct Rule {
    name: &'static str,
    check: fn(&Project) -> Findings,
}

const RULES: &[Rule] = &[
    Rule { name: "dependencies point one way", check: dependencies::check },
    Rule { name: "only deadman is unsafe", check: unsafe_code::check },
    Rule { name: "lints are the workspace's", check: lints::check },
    Rule { name: "only the edges read the environment", check: environment::check },
    Rule { name: "fuzzing changes nothing", check: fuzzing::check },
    Rule { name: "files are small", check: sizes::check },
    Rule { name: "every planted bug has its place", check: planted },
    Rule { name: "nothing is left half-done", check: leftovers::check },
    Rule { name: "no path of anybody's machine", check: paths::check },
    Rule { name: "documents name what exists", check: documents::check },
    Rule { name: "decisions have status, date and index", check: decisions::check },
];

fn planted(project: &Project) -> Findings {
    Findings { failures: bugs::misplaced(&project.tree), notes: Vec::new() }
}

pub(crate) fn run(args: &[String]) -> Result<Verdict, Problem> {
    match args {
        [] => check(false),
        [arg] if arg == "--write" => check(true),
        [arg, ..] => Err(format!("`tidy` does not take `{arg}`{}", did_you_mean(arg, ["--write"]))),
    }
}

/// Checks every rule; with `write`, brings generated tables up to date first.
pub(crate) fn check(write: bool) -> Result<Verdict, Problem> {
    let workspace = Workspace::load()?;
    let tree = Tree::load(&workspace.root)?;
    let project = Project { workspace, tree };
    let mut verdict = Verdict::Good;
    for Rule { name, check } in RULES {
        report(name, check(&project), &mut verdict);
    }
    report("generated tables are current", generated::check(&project, write), &mut verdict);
    report("the page of figures is made of its figures", performance::check(&project, write), &mut verdict);
    Ok(verdict)
}

fn report(name: &str, findings: Findings, verdict: &mut Verdict) {
    let paint = on_stdout();
    if findings.failures.is_empty() {
        say(&format!("{} {name}", paint.good("ok    ")));
    } else {
        *verdict = Verdict::Bad;
        say(&format!("{} {name}", paint.bad("FAILED")));
    }
    for failure in findings.failures {
        say(&format!("       {failure}"));
    }
    for note in findings.notes {
        say(&paint.faint(&format!("       {note}")));
    }
}
