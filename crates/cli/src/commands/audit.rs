//! `bellwether audit`: the verdict on recorded event lines.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Write};
use std::path::Path;

use bellwether_audit::{Audit, Gap, Judgement, Verdict, svg, timeline};
use serde_json::{Value, json};

use crate::args::{Audit as Flags, Format, Global};
use crate::exit::{Exit, Failure};
use crate::output::{self, span};

/// Violations and doubts that are shown one by one; the others are counted.
const SHOWN_MAX: usize = 20;

/// Reads the files and prints the verdict.
pub(crate) fn audit(global: &Global, flags: &Flags) -> Result<Exit, Failure> {
    let mut audit = Audit::new();
    for file in &flags.files {
        let unread = |error: io::Error| {
            Failure::new(Exit::Usage, format!("cannot read event lines from {}: {error}", file.display()))
        };
        if file.as_os_str() == "-" {
            audit.read(io::stdin().lock()).map_err(unread)?;
        } else {
            audit.read(BufReader::new(File::open(file).map_err(unread)?)).map_err(unread)?;
        }
    }
    let verdict = audit.verdict();
    if let Some(file) = &flags.svg {
        draw(&verdict, file)?;
    }
    match global.output {
        Format::Json => output::line(&verdict_json(&verdict).to_string())?,
        Format::Table => output::lines(&said(&verdict))?,
    };
    Ok(if verdict.judgement() == Judgement::Clean { Exit::Clean } else { Exit::None })
}

fn draw(verdict: &Verdict, file: &Path) -> Result<(), Failure> {
    let unwritten = |error: io::Error| {
        let what_to_do = match error.kind() {
            io::ErrorKind::AlreadyExists => "; give another name, or remove it",
            _ => "",
        };
        let sentence = format!("cannot draw into {}: {error}{what_to_do}", file.display());
        Failure::new(Exit::Usage, sentence)
    };
    let mut picture = OpenOptions::new().write(true).create_new(true).open(file).map_err(unwritten)?;
    picture.write_all(svg(verdict).as_bytes()).map_err(unwritten)
}

/// The verdict for people: the word first, then what is wrong, then the figures, then who led when.
fn said(verdict: &Verdict) -> Vec<String> {
    let figures = &verdict.figures;
    let mut lines = vec![headline(verdict)];
    let complaints = verdict.violations.iter().map(|violation| format!("VIOLATION {violation}"));
    let doubts = verdict.doubts.iter().map(|doubt| format!("UNKNOWN {doubt}"));
    let all: Vec<String> = complaints.chain(doubts).collect();
    lines.extend(all.iter().take(SHOWN_MAX).cloned());
    if all.len() > SHOWN_MAX {
        lines.push(format!("and {} more; -o json has them all", all.len() - SHOWN_MAX));
    }
    lines.push(format!(
        "{} event lines of {} candidates in {} elections, {} leaderships; {} other lines skipped",
        figures.lines, figures.candidates, figures.elections, figures.leaderships, figures.skipped
    ));
    if figures.boots.len() > 1 {
        lines.push(format!(
            "lines of {} machines or boots: between them, only epochs were compared",
            figures.boots.len()
        ));
    }
    for (what, gap) in [("handovers", figures.gaps.handovers()), ("failovers", figures.gaps.failovers())] {
        if let Some(gap) = gap {
            let Gap { count, median, p99, max } = gap;
            let (median, p99, max) = (span(median), span(p99), span(max));
            lines.push(format!("nobody led at {count} {what}: median {median}, p99 {p99}, longest {max}"));
        }
    }
    lines.extend(timeline(verdict));
    lines
}

fn headline(verdict: &Verdict) -> String {
    match verdict.judgement() {
        Judgement::Clean => "clean: nobody led beside another, and epochs rose".to_owned(),
        Judgement::Violated => format!("VIOLATED: {} broken promises", verdict.violations.len()),
        Judgement::Unknown if verdict.leaderships.is_empty() => {
            "unknown: these lines tell of no leadership".to_owned()
        }
        Judgement::Unknown => format!("unknown: the lines do not tell, in {} places", verdict.doubts.len()),
    }
}

fn verdict_json(verdict: &Verdict) -> Value {
    let figures = &verdict.figures;
    let gap = |gap: Option<Gap>| match gap {
        Some(Gap { count, median, p99, max }) => json!({
            "count": count,
            "median_ms": median.as_secs_f64() * 1e3,
            "p99_ms": p99.as_secs_f64() * 1e3,
            "max_ms": max.as_secs_f64() * 1e3,
        }),
        None => Value::Null,
    };
    let found = |kind: &str, election: &str, sentence: String| json!({ "kind": kind, "election": election, "sentence": sentence });
    json!({
        "verdict": verdict.judgement().as_str(),
        "violations": verdict.violations.iter().map(|one| found(one.kind(), one.election(), one.to_string())).collect::<Vec<_>>(),
        "unknown": verdict.doubts.iter().map(|one| found(one.kind(), one.election(), one.to_string())).collect::<Vec<_>>(),
        "lines": figures.lines,
        "skipped": figures.skipped,
        "elections": figures.elections,
        "candidates": figures.candidates,
        "leaderships": figures.leaderships,
        "boots": figures.boots.len(),
        "handovers": gap(figures.gaps.handovers()),
        "failovers": gap(figures.gaps.failovers()),
    })
}
