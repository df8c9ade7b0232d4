//! Only the edges read the environment: `cli`, `agent`, and constructors called `from_env`.
//!
//! A library that looks at variables behind its caller's back behaves differently in a test, in a service and
//! in a shell. Tests, build scripts and this program may look.

use super::{Findings, Project};
use crate::source::{code, is_word, line, without_bodies, words};
use crate::tree::File;

const ALLOWED: &[&str] = &["crates/cli/", "crates/agent/", "xtask/"];
const READERS: &[&str] = &["var", "var_os", "vars", "vars_os", "home_dir"];

pub(super) fn check(project: &Project) -> Findings {
    let failures = project.tree.rust().filter(|file| !may_read(file)).flat_map(|file| {
        let reads = reads(&file.text).into_iter();
        reads.map(|line| format!("{}:{line}: reads the environment; take it as an argument", file.path))
    });
    Findings { failures: failures.collect(), notes: Vec::new() }
}

fn may_read(file: &File) -> bool {
    ALLOWED.iter().any(|dir| file.path.starts_with(dir)) || file.path.ends_with("build.rs") || file.is_test()
}

/// The lines that read a variable.
fn reads(text: &str) -> Vec<usize> {
    let code = without_bodies(&without_bodies(&code(text), "#[cfg(test)]"), "fn from_env");
    words(&code, "env").filter(|at| reads_at(&code[at + "env".len()..])).map(|at| line(&code, at)).collect()
}

/// Whether `env` goes on as `::var` or as an import of it, `::{…, var}`.
fn reads_at(rest: &str) -> bool {
    let Some(path) = rest.trim_start().strip_prefix("::") else { return false };
    let path = path.trim_start();
    let list = path.strip_prefix('{').and_then(|list| list.split_once('}'));
    let (names, all) = list.map_or((path, false), |(list, _)| (list, true));
    let mut names = names.split(|c| !is_word(c)).filter(|name| !name.is_empty());
    let reader = |name: &str| READERS.contains(&name);
    if all { names.any(reader) } else { names.next().is_some_and(reader) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_a_variable_is_found_however_it_is_written() {
        let text =
            "use std::env;\nfn f() { env::var(\"A\"); }\nuse std::env::{args, var_os};\nstd::env::vars();";
        assert_eq!(reads(text), [2, 3, 4]);
    }

    #[test]
    fn other_uses_and_the_places_that_may_are_left_alone() {
        let text = "fn a() { std::env::args(); env!(\"A\"); std::env::temp_dir(); } // env::var\n\
                    impl X { pub fn from_env() -> X { std::env::var(\"A\") } }\n\
                    #[cfg(test)]\nmod tests { fn t() { std::env::var(\"A\"); } }";
        assert_eq!(reads(text), Vec::<usize>::new());
    }
}
