//! Which steps to run, from the command line.

use super::steps::{Action, BUILD, Step};
use crate::Problem;
use crate::postgres::majors::SUPPORTED;
use crate::suggest::did_you_mean;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Selection {
    /// Names after `--only`; `None` means everything.
    only: Option<Vec<String>>,
    /// The majors after `--postgres`, instead of the usual steps.
    pub(super) postgres: Option<Vec<u32>>,
    pub(super) list: bool,
}

impl Selection {
    pub(super) fn parse(args: &[String]) -> Result<Selection, Problem> {
        let mut selection = Selection::default();
        let mut args = args.iter().map(String::as_str);
        while let Some(arg) = args.next() {
            let names = match arg.split_once('=') {
                Some(("--only", names)) => names,
                _ if arg == "--only" => args.next().unwrap_or_default(),
                Some(("--postgres", named)) => {
                    selection.postgres = Some(majors(named)?);
                    continue;
                }
                _ if arg == "--postgres" => {
                    selection.postgres = Some(majors(args.next().unwrap_or_default())?);
                    continue;
                }
                _ if arg == "--list" => {
                    selection.list = true;
                    continue;
                }
                _ => {
                    let hint = did_you_mean(arg, ["--only", "--postgres", "--list"]);
                    return Err(format!("`test` does not take `{arg}`{hint}"));
                }
            };
            let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
            selection.only.get_or_insert_default().extend(names.map(str::to_owned));
        }
        match &selection.only {
            Some(only) if only.is_empty() => {
                Err("say which steps: `--only core,tidy`; `cargo xtask test --list` has the names".to_owned())
            }
            _ => Ok(selection),
        }
    }

    /// The steps that run, in their order, and the names of those that do not.
    pub(super) fn split<'a>(&self, steps: &'a [Step]) -> Result<(Vec<&'a Step>, Vec<&'a str>), Problem> {
        let Some(only) = &self.only else {
            return Ok((steps.iter().collect(), Vec::new()));
        };
        if let Some(name) = only.iter().find(|name| steps.iter().all(|step| step.name != **name)) {
            let hint = did_you_mean(name, steps.iter().map(|step| step.name.as_str()));
            return Err(format!("there is no step `{name}`{hint}; `cargo xtask test --list` has the names"));
        }
        let named = |step: &Step| only.contains(&step.name);
        let runs = |step: &Step| matches!(step.action, Action::Tests { .. } | Action::OnMajor { .. });
        let builds = steps.iter().any(|step| named(step) && runs(step));
        let (chosen, rest): (Vec<_>, Vec<_>) =
            steps.iter().partition(|step| named(step) || (builds && step.name == BUILD));
        let mut left_out: Vec<&str> = Vec::new();
        for step in rest {
            if !left_out.contains(&step.name.as_str()) {
                left_out.push(&step.name);
            }
        }
        Ok((chosen, left_out))
    }
}

/// `14,16` or `14-18`.
fn majors(text: &str) -> Result<Vec<u32>, Problem> {
    let (first, last) = (SUPPORTED.start(), SUPPORTED.end());
    let supported = |major: &u32| SUPPORTED.contains(major);
    let bad = || {
        format!(
            "say on which majors, from {first} to {last}: `--postgres {first},{last}` or `{first}-{last}`"
        )
    };
    let mut all = Vec::new();
    for part in text.split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse().ok().filter(supported).ok_or_else(bad);
        all.extend(number(from)?..=number(to)?);
    }
    if all.is_empty() { Err(bad()) } else { Ok(all) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Workspace;
    use crate::test::steps;
    use std::path::PathBuf;

    fn parse(args: &[&str]) -> Result<Selection, Problem> {
        Selection::parse(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>())
    }

    fn table() -> Vec<Step> {
        steps::all(&Workspace { root: PathBuf::new(), packages: Vec::new() })
    }

    #[test]
    fn without_only_everything_runs() {
        let steps = table();
        let (chosen, left_out) = parse(&[]).unwrap().split(&steps).unwrap();
        assert_eq!(chosen.len(), steps.len());
        assert!(left_out.is_empty());
    }

    #[test]
    fn only_runs_what_it_names_and_tells_the_rest() {
        let steps = table();
        let (chosen, left_out) = parse(&["--only", "tidy,sim"]).unwrap().split(&steps).unwrap();
        let names: Vec<_> = chosen.iter().map(|step| step.name.as_str()).collect();
        assert_eq!(names, ["tidy", "build", "sim", "sim", "sim"]);
        assert!(left_out.contains(&"core") && !left_out.contains(&"sim") && !left_out.contains(&"build"));
    }

    #[test]
    fn steps_without_test_programs_build_none() {
        let steps = table();
        let (chosen, left_out) = parse(&["--only=tidy"]).unwrap().split(&steps).unwrap();
        assert_eq!(chosen.len(), 1);
        assert!(left_out.contains(&"build"));
        assert_eq!(left_out.iter().filter(|name| **name == "sim").count(), 1, "each name once");
    }

    #[test]
    fn majors_are_named_one_by_one_or_from_to() {
        let named = |text| parse(&["--postgres", text]).map(|selection| selection.postgres.unwrap());
        assert_eq!(named("14-16,18").unwrap(), [14, 15, 16, 18]);
        assert_eq!(parse(&["--postgres=15"]).unwrap().postgres, Some(vec![15]));
        for wrong in ["", "13", "14-99", "new", "18-14"] {
            assert!(named(wrong).unwrap_err().contains("from 14 to"), "{wrong}");
        }
    }

    #[test]
    fn wrong_words_are_refused_with_the_right_ones() {
        assert!(parse(&["--onyl"]).unwrap_err().contains("did you mean `--only`"));
        assert!(parse(&["--only"]).unwrap_err().contains("--list"));
        let problem = parse(&["--only", "cor"]).unwrap().split(&table()).unwrap_err();
        assert!(problem.contains("did you mean `core`"), "{problem}");
    }
}
