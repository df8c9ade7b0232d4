//! One run of benchmarks, or several on one machine with the same versions: where, with what, and all rows. The tables, the page and the
//! plot are made of this and of nothing else.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::row::{Figures, Row, Said};
use crate::Problem;

/// What the last run came to, from the root of the project.
const LAST: &str = "target/bench/RUN.json";

pub(crate) struct Run {
    /// What measured it, one after the other.
    pub(crate) commands: Vec<String>,
    /// The machine and the versions, in their order.
    pub(crate) facts: Vec<(String, String)>,
    pub(crate) benchmarks: Vec<Benchmark>,
    /// What measures the rest: the arguments of `cargo xtask bench`.
    pub(crate) left_out: Vec<String>,
}

pub(crate) struct Benchmark {
    /// With its measures, where it was not all of them.
    pub(crate) name: String,
    /// As they came. Read by [`Benchmark::rows`].
    lines: Vec<Value>,
    rows: Vec<Row>,
}

impl Benchmark {
    /// Of lines of JSON.
    pub(crate) fn read(name: &str, text: &str) -> Result<Benchmark, Problem> {
        let lines = text.lines().map(|line| {
            serde_json::from_str(line)
                .map_err(|error| format!("a row of {name} is no JSON ({error}): {line}"))
        });
        Benchmark::of(name, lines.collect::<Result<_, _>>()?)
    }

    fn of(name: &str, lines: Vec<Value>) -> Result<Benchmark, Problem> {
        let rows = lines.iter().map(Row::parse).collect::<Result<_, _>>()?;
        Ok(Benchmark { name: name.to_owned(), lines, rows })
    }

    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }
}

impl Run {
    pub(crate) fn parse(text: &str) -> Result<Run, Problem> {
        let json: Value = serde_json::from_str(text).map_err(|error| format!("not a run: {error}"))?;
        let list = |field: &str| json[field].as_array().ok_or_else(|| format!("a run has no `{field}`"));
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let benchmark = |value: &Value| {
            let lines = value["rows"].as_array().cloned().unwrap_or_default();
            Benchmark::of(&text(&value["name"]), lines)
        };
        Ok(Run {
            commands: list("commands")?.iter().map(text).collect(),
            facts: list("facts")?.iter().map(|fact| (text(&fact[0]), text(&fact[1]))).collect(),
            benchmarks: list("benchmarks")?.iter().map(benchmark).collect::<Result<_, _>>()?,
            left_out: list("left_out")?.iter().map(text).collect(),
        })
    }

    /// One row a line, so that two runs can be compared by `diff`.
    pub(crate) fn to_json(&self) -> String {
        let benchmark = |benchmark: &Benchmark| {
            let rows: Vec<String> = benchmark.lines.iter().map(|row| format!("      {row}")).collect();
            format!("    {{ \"name\": {}, \"rows\": [\n{}\n    ] }}", json!(benchmark.name), rows.join(",\n"))
        };
        let facts: Vec<String> = self.facts.iter().map(|fact| format!("    {}", json!(fact))).collect();
        let benchmarks: Vec<String> = self.benchmarks.iter().map(benchmark).collect();
        format!(
            "{{\n  \"commands\": {},\n  \"facts\": [\n{}\n  ],\n  \"benchmarks\": [\n{}\n  ],\n  \"left_out\": {}\n}}\n",
            json!(self.commands),
            facts.join(",\n"),
            benchmarks.join(",\n"),
            json!(self.left_out)
        )
    }

    /// This one with what another measured later: benchmarks of the same name are replaced. Figures of two machines, or of two versions,
    /// are no one page.
    pub(crate) fn with(mut self, later: Run) -> Result<Run, Problem> {
        for (name, value) in later.facts {
            match self.facts.iter().find(|(known, _)| *known == name) {
                Some((_, known)) if *known != value => {
                    return Err(format!(
                        "the last run had {name} {known}, and this one {value}: leave out `--add`"
                    ));
                }
                Some(_) => {}
                None => self.facts.push((name, value)),
            }
        }
        self.commands.retain(|command| !later.commands.contains(command));
        self.commands.extend(later.commands);
        self.benchmarks.retain(|known| later.benchmarks.iter().all(|benchmark| benchmark.name != known.name));
        self.benchmarks.extend(later.benchmarks);
        self.left_out.retain(|name| later.left_out.contains(name));
        Ok(self)
    }

    /// The last run that was made here.
    pub(crate) fn last(root: &Path) -> Result<Run, Problem> {
        let path = Run::place(root);
        let text = std::fs::read_to_string(&path);
        let text =
            text.map_err(|error| format!("there is no last run ({error}): run `cargo xtask bench`"))?;
        Run::parse(&text)
    }

    /// Keeps it as the last one.
    pub(crate) fn keep(&self, root: &Path) -> Result<PathBuf, Problem> {
        let path = Run::place(root);
        std::fs::create_dir_all(path.parent().unwrap_or(root))
            .and_then(|()| std::fs::write(&path, self.to_json()))
            .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        Ok(path)
    }

    fn place(root: &Path) -> PathBuf {
        root.join(LAST)
    }

    /// The rows with numbers that are compared with something, with what each is of.
    pub(crate) fn compared(&self) -> impl Iterator<Item = (&Row, &Figures)> {
        self.benchmarks.iter().flat_map(|benchmark| benchmark.rows()).filter_map(|row| match &row.said {
            Said::Figures(figures) => Some((row, figures)),
            Said::Text(_) => None,
        })
    }

    /// The stores of [`Run::compared`], each once, in the order of their first row.
    pub(crate) fn stores(&self) -> Vec<&str> {
        let mut stores: Vec<&str> = Vec::new();
        for (_, figures) in self.compared() {
            if !stores.contains(&figures.store.as_str()) {
                stores.push(&figures.store);
            }
        }
        stores
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// One store with a peer that is behind and one that is ahead, a plain row, and one benchmark that was left out.
    pub(in crate::bench) fn example() -> Run {
        let handover = json!({
            "what": "handover", "store": "postgres", "unit": "s", "better": "less", "ours": 0.002, "set": "ttl 15 s", "raw": 0.0015,
            "peer": "another v1, its defaults", "theirs": 10.0, "ratio": 5000.0, "bound": null, "axis": null,
            "count": null, "cause": "", "note": "it waits for a lease | always",
        });
        let mut asked = handover.clone();
        for (field, value) in [
            ("what", json!("requests")),
            ("unit", json!("/s")),
            ("ours", json!(4.0)),
            ("raw", Value::Null),
            ("theirs", json!(1.0)),
            ("ratio", json!(0.25)),
            ("axis", json!("followers")),
            ("count", json!(1)),
            ("cause", json!("it asks less often")),
        ] {
            asked[field] = value;
        }
        let mut ten = asked.clone();
        ten["count"] = json!(10);
        ten["theirs"] = json!(8.0);
        ten["ratio"] = json!(2.0);
        let plain = json!({ "what": "renewals, p99", "said": "3.10ms", "note": "at most 10ms: ok" });
        let rows = [handover, asked, ten, plain].map(|row| row.to_string()).join("\n");
        Run {
            commands: vec!["cargo xtask bench postgres".to_owned()],
            facts: vec![("cores".to_owned(), "2".to_owned()), ("kernel".to_owned(), "6.1".to_owned())],
            benchmarks: vec![Benchmark::read("postgres", &rows).unwrap()],
            left_out: vec!["raft".to_owned()],
        }
    }

    #[test]
    fn a_run_is_read_as_it_was_written() {
        let run = example();
        let again = Run::parse(&run.to_json()).unwrap();
        assert_eq!(again.to_json(), run.to_json());
        assert_eq!((again.commands, again.facts, again.left_out), (run.commands, run.facts, run.left_out));
        assert_eq!(again.benchmarks[0].rows(), run.benchmarks[0].rows());
        assert_eq!(again.benchmarks[0].rows().len(), 4);
    }

    #[test]
    fn only_rows_with_numbers_are_compared() {
        let run = example();
        assert_eq!(run.compared().count(), 3);
        assert_eq!(run.stores(), ["postgres"]);
    }

    #[test]
    fn a_later_run_replaces_what_it_measured_again_and_adds_the_rest() {
        let mut later = example();
        later.commands = vec!["cargo xtask bench raft".to_owned()];
        later.benchmarks[0].name = "raft".to_owned();
        later.facts.push(("etcd".to_owned(), "3.5".to_owned()));
        later.left_out = vec!["postgres".to_owned()];
        let both = example().with(later).unwrap().with(example()).unwrap();
        assert_eq!(both.commands, ["cargo xtask bench raft", "cargo xtask bench postgres"]);
        let names: Vec<&str> = both.benchmarks.iter().map(|benchmark| benchmark.name.as_str()).collect();
        assert_eq!(names, ["raft", "postgres"]);
        assert_eq!(both.facts.last().map(|(name, _)| name.as_str()), Some("etcd"));
        assert_eq!(both.left_out, Vec::<String>::new());
    }

    #[test]
    fn runs_of_two_machines_are_no_one_run() {
        let mut later = example();
        later.facts[0].1 = "64".to_owned();
        let problem = example().with(later).err().unwrap();
        assert!(problem.starts_with("the last run had cores 2, and this one 64"), "{problem}");
    }

    #[test]
    fn a_row_that_is_no_json_is_shown() {
        let problem = Benchmark::read("nats", "{}\nnot json").err().unwrap();
        assert!(problem.contains("nats") && problem.ends_with("not json"), "{problem}");
    }
}
