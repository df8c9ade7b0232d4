//! `cargo xtask formation`: the exploration of how clusters form, optimised and with larger bounds than in the tests.

use crate::metadata::Workspace;
use crate::suggest::did_you_mean;
use crate::{Problem, Verdict, process};

const PACKAGE: &str = "bellwether-cluster";
const PROGRAM: &str = "formation";

/// The options, and the variables by which the test program takes them.
const OPTIONS: &[(&str, &str)] =
    &[("--seed", "BELLWETHER_FORMATION_SEED"), ("--steps", "BELLWETHER_FORMATION_STEPS")];

pub(crate) fn run(args: &[String]) -> Result<Verdict, Problem> {
    let settings = settings(args)?;
    let workspace = Workspace::load()?;
    workspace.package(PACKAGE)?;
    let mut cargo = process::cargo(&workspace.root);
    // Without its engine: the rules of formation do not need it, and it takes minutes to optimise.
    cargo.args(["test", "--release", "--package", PACKAGE, "--no-default-features", "--test", PROGRAM]);
    // One after the other, so that each has the memory and the figures of one do not contain the others.
    cargo.args(["--", "--nocapture", "--test-threads=1"]);
    cargo.env("BELLWETHER_FORMATION_LONG", "1").envs(settings);
    Ok(if process::run(&mut cargo)?.success() { Verdict::Good } else { Verdict::Bad })
}

fn settings(args: &[String]) -> Result<Vec<(&'static str, String)>, Problem> {
    let mut settings = Vec::new();
    let mut args = args.iter();
    while let Some(option) = args.next() {
        let known = OPTIONS.iter().find(|(name, _)| name == option);
        let (name, variable) = known.ok_or_else(|| {
            let hint = did_you_mean(option, OPTIONS.iter().map(|(name, _)| *name));
            format!("there is no option `{option}`{hint}; `cargo xtask help formation` lists them")
        })?;
        let value = args.next().ok_or_else(|| format!("{name} needs a number"))?;
        value.parse::<u64>().map_err(|_| format!("{name} needs a number, and not `{value}`"))?;
        settings.push((*variable, value.clone()));
    }
    Ok(settings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_numbers_and_others_are_refused_by_name() {
        let of = |text: &str| settings(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(of(""), Ok(Vec::new()));
        assert_eq!(of("--seed 7"), Ok(vec![("BELLWETHER_FORMATION_SEED", "7".to_owned())]));
        assert!(of("--sed 7").unwrap_err().contains("did you mean `--seed`"));
        assert!(of("--steps").unwrap_err().contains("needs a number"));
        assert!(of("--steps many").unwrap_err().contains("`many`"));
    }
}
