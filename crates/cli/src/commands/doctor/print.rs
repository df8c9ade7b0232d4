//! What was found, for people and for machines.

use std::io::{IsTerminal, stdout};

use bellwether::backend::{Finding, Grade};
use serde_json::{Value, json};

use super::DoctorReport;
use super::measure::Latency;
use crate::args::{Format, Global};
use crate::exit::Failure;
use crate::output;

/// A line a finding, or one object.
pub(super) fn print(global: &Global, report: &DoctorReport) -> Result<(), Failure> {
    if global.output == Format::Json {
        output::line(&object(report).to_string())?;
        return Ok(());
    }
    let terminal = stdout().is_terminal();
    let widest = report.findings.iter().map(|finding| finding.what.len()).max().unwrap_or(0);
    let line = |finding: &Finding| {
        let mark = mark(finding.grade, terminal);
        format!("{mark} {:<widest$}  {}", finding.what, finding.sentence)
    };
    output::lines(&report.findings.iter().map(line).collect::<Vec<String>>())?;
    Ok(())
}

fn mark(grade: Grade, terminal: bool) -> &'static str {
    match (grade, terminal) {
        (Grade::Good, true) => "\x1b[32m✓\x1b[0m",
        (Grade::Warning, true) => "\x1b[33m!\x1b[0m",
        (Grade::Bad(_), true) => "\x1b[31m✗\x1b[0m",
        (Grade::Good, false) => "ok  ",
        (Grade::Warning, false) => "warn",
        (Grade::Bad(_), false) => "bad ",
    }
}

fn object(report: &DoctorReport) -> Value {
    let bad = |finding: &Finding| matches!(finding.grade, Grade::Bad(_));
    json!({
        "ok": !report.findings.iter().any(bad),
        "backend": report.backend,
        "findings": report.findings.iter().map(finding).collect::<Vec<Value>>(),
        "read_latency": report.reads.as_ref().map(latency),
        "renew_latency": report.renewals.as_ref().map(latency),
    })
}

fn finding(finding: &Finding) -> Value {
    let kind = match finding.grade {
        Grade::Bad(kind) => Some(kind.as_str()),
        Grade::Good | Grade::Warning => None,
    };
    json!({
        "what": finding.what,
        "verdict": finding.grade.as_str(),
        "kind": kind,
        "sentence": finding.sentence,
    })
}

fn latency(latency: &Latency) -> Value {
    let ms = |time: std::time::Duration| time.as_secs_f64() * 1_000.0;
    json!({ "p50_ms": ms(latency.p50), "p99_ms": ms(latency.p99), "calls": latency.calls })
}
