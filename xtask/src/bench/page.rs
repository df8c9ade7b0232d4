//! `docs/performance.md`, made of one run. Ratios come first: the figures themselves are those of one machine.

use super::plot;
use super::row::{Figures, Row, Said, significant};
use super::run::{Benchmark, Run};

/// Where the plot is, from the page.
pub(super) const PLOT: &str = "performance.svg";

pub(crate) fn page(run: &Run) -> String {
    let mut page = head(run);
    for store in run.stores() {
        page += &beside(run, store);
    }
    if plot::has_points(run) {
        page += &format!("\n## How cost grows\n\n![cost over followers and elections]({PLOT})\n");
    }
    let printed: String = run.benchmarks.iter().map(printed).collect();
    if !printed.is_empty() {
        page += "\n## Other figures\n\nEach benchmark prints these lines, with what was asked for.\n";
    }
    page + &printed + &left_out(run)
}

fn head(run: &Run) -> String {
    let facts: String =
        run.facts.iter().map(|(name, value)| format!("| {name} | {} |\n", cell(value))).collect();
    let commands: String = run.commands.iter().map(|command| format!("- `{command}`\n")).collect();
    format!(
        "# Performance\n\n\
         `cargo xtask bench --write` makes this page; edits are lost. All of it was measured on one machine, by\n\n{commands}\n\
         Read the ratios. Raw, ours and the other make of a row ran on the same servers, in the same minutes; another machine has other\n\
         times. Raw is the least that the store takes for it: its own operations, with nothing around them. The figures are in\n\
         [performance.json](performance.json).\n\n\
         | machine and versions | |\n|---|---|\n{facts}",
    )
}

/// The comparisons on one store, rows with another make first. What is to know of many rows is said once, below.
fn beside(run: &Run, store: &str) -> String {
    let all: Vec<_> = run.compared().filter(|(_, figures)| figures.store == store).collect();
    let (with, without): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, figures)| figures.peer.is_some());
    let mut text = format!("\n## {}\n\n", title(store));
    text += "| better by | what | ours | other make | theirs | raw | ours to raw | to know |\n|---|---|---|---|---|---|---|---|\n";
    let mut notes: Vec<String> = Vec::new();
    for (row, figures) in with.into_iter().chain(without) {
        let known = to_know(row, figures).iter().map(|known| number(known, &mut notes)).collect::<Vec<_>>();
        text += &compared(row, figures, &known.join(", "));
    }
    if !notes.is_empty() {
        text += "\n";
    }
    for (number, note) in notes.iter().zip(1..).map(|(note, number)| (number, note)) {
        text += &format!("{number}. {note}\n");
    }
    text
}

/// The number of this note in the list, which it joins if it is new.
fn number(note: &str, notes: &mut Vec<String>) -> String {
    let known = notes.iter().position(|known| known == note);
    let at = known.unwrap_or_else(|| {
        notes.push(note.to_owned());
        notes.len() - 1
    });
    format!("({})", at + 1)
}

fn compared(row: &Row, figures: &Figures, known: &str) -> String {
    let unit = figures.unit;
    let none = String::new;
    let peer = figures.peer.as_ref();
    let raw = figures.raw;
    let cells = [
        peer.map_or_else(none, |peer| standing(peer.ratio)),
        place(row, figures),
        ours(figures),
        peer.map_or_else(none, |peer| peer.name.clone()),
        peer.map_or_else(none, |peer| unit.text(peer.theirs)),
        raw.map_or_else(none, |raw| unit.text(raw)),
        raw.map_or_else(none, |raw| significant(figures.ours / raw)),
        known.to_owned(),
    ];
    format!("| {} |\n", cells.map(|text| cell(&text)).join(" | "))
}

/// With how it was set.
pub(super) fn ours(figures: &Figures) -> String {
    let text = figures.unit.text(figures.ours);
    if figures.set.is_empty() { text } else { format!("{text} ({})", figures.set) }
}

/// How ours stands beside the other make.
pub(super) fn standing(ratio: f64) -> String {
    if ratio.is_infinite() {
        "ours takes none".to_owned()
    } else if ratio >= 1.0 {
        format!("{} times", significant(ratio))
    } else {
        format!("**behind**: {} times", significant(ratio))
    }
}

/// What was measured, and where on an axis.
pub(super) fn place(row: &Row, figures: &Figures) -> String {
    match &figures.at {
        None => row.what.clone(),
        Some(at) if at.count == 1 => format!("{}, 1 {}", row.what, at.axis.trim_end_matches('s')),
        Some(at) => format!("{}, {} {}", row.what, at.count, at.axis),
    }
}

/// The bound, why ours is behind where it is, and what the benchmark adds.
pub(super) fn to_know(row: &Row, figures: &Figures) -> Vec<String> {
    let mut said = Vec::new();
    if let (Some(bound), Some(kept)) = (figures.bound, figures.is_kept()) {
        let which = if figures.more_is_better { "at least" } else { "at most" };
        let verdict = if kept { "ok" } else { "**missed**" };
        said.push(format!("Asked for: {which} {}: {verdict}.", figures.unit.text(bound)));
    }
    if figures.peer.as_ref().is_some_and(|peer| peer.ratio < 1.0) {
        let cause = if figures.cause.is_empty() { "it is not known why" } else { &figures.cause };
        said.push(format!("Ours is behind: {cause}."));
    }
    if let Some((ours, theirs)) = figures.medians {
        said.push(format!("Medians: of {ours} of ours and {theirs} of theirs."));
    }
    if !row.note.is_empty() {
        said.push(sentence(&row.note));
    }
    said
}

fn sentence(note: &str) -> String {
    let mut letters = note.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str().trim_end_matches('.'))
}

/// What a benchmark printed besides its comparisons.
fn printed(benchmark: &Benchmark) -> String {
    let lines: Vec<String> = benchmark
        .rows()
        .iter()
        .filter_map(|row| match &row.said {
            Said::Text(said) => {
                Some(format!("| {} | {} | {} |\n", cell(&row.what), cell(said), cell(&row.note)))
            }
            Said::Figures(_) => None,
        })
        .collect();
    if lines.is_empty() {
        return String::new();
    }
    format!("\n### {}\n\n| what | figure | |\n|---|---|---|\n{}", benchmark.name, lines.concat())
}

fn left_out(run: &Run) -> String {
    if run.left_out.is_empty() {
        return String::new();
    }
    let commands: String =
        run.left_out.iter().map(|name| format!("- `cargo xtask bench {name}`\n")).collect();
    format!(
        "\n## Not in this run\n\nThese print the rest, and `cargo xtask bench --write` measures everything for this page:\n\n{commands}"
    )
}

fn title(store: &str) -> &str {
    match store {
        "postgres" => "PostgreSQL",
        "nats" => "NATS",
        "kubernetes" => "Kubernetes",
        "raft" => "Raft",
        other => other,
    }
}

/// Text that ends no cell of a table before its time.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::super::run::tests::example;
    use super::*;

    #[test]
    fn a_row_begins_with_its_ratio_and_names_both_makes() {
        let page = page(&example());
        let row = "| 5000 times | handover | 2.00 ms (ttl 15 s) | another v1, its defaults | 10.0 s | 1.50 ms | 1.33 | (1) |";
        assert!(page.contains(row), "{page}");
    }

    #[test]
    fn what_many_rows_have_to_say_is_said_once() {
        let page = page(&example());
        assert_eq!(page.matches("It waits for a lease | always.").count(), 1, "{page}");
        assert!(page.contains("\n1. It waits for a lease | always.\n2. Ours is behind: "), "{page}");
    }

    #[test]
    fn where_ours_is_behind_the_row_says_so_with_the_cause() {
        let run = example();
        let behind = "| **behind**: 0.250 times | requests, 1 follower | 4.00 /s (ttl 15 s) | another v1, its defaults | 1.00 /s |  |  | (2), (1) |";
        assert!(page(&run).contains(behind), "{}", page(&run));
        assert!(page(&run).contains("2. Ours is behind: it asks less often.\n"), "{}", page(&run));
        let text = run.to_json().replace("it asks less often", "");
        let unknown = page(&Run::parse(&text).unwrap());
        assert!(unknown.contains("2. Ours is behind: it is not known why.\n"), "{unknown}");
    }

    #[test]
    fn lines_without_numbers_and_benchmarks_without_a_run_are_listed() {
        let page = page(&example());
        assert!(page.contains("### postgres\n\n| what | figure | |\n|---|---|---|\n| renewals, p99 | 3.10ms | at most 10ms: ok |\n"), "{page}");
        assert!(page.ends_with("- `cargo xtask bench raft`\n"), "{page}");
        assert!(page.contains(&format!("]({PLOT})")));
    }

    #[test]
    fn a_row_of_medians_says_of_how_many() {
        let text = example().to_json().replace("\"axis\":null", "\"axis\":null,\"medians\":[7,3]");
        let page = page(&Run::parse(&text).unwrap());
        assert!(page.contains("1. Medians: of 7 of ours and 3 of theirs.\n"), "{page}");
    }

    #[test]
    fn a_missed_bound_is_said_aloud() {
        let text = example().to_json().replace("\"bound\":null", "\"bound\":0.001");
        let page = page(&Run::parse(&text).unwrap());
        assert!(page.contains("1. Asked for: at most 1.00 ms: **missed**.\n"), "{page}");
    }
}
