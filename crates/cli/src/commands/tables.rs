//! Tables for the documents, printed from what the code does, so that they cannot drift.

use bellwether::{ErrorKind, Event, Reason, Scheme, SecretIn, What};
use bellwether_supervise::{Containment, KILL_SEQUENCE, KillStep};
use clap::CommandFactory;

use crate::args::{Args, Table};
#[cfg(all(feature = "http", feature = "node"))]
use crate::commands::node::{NODE_METRICS, NodeMetric};
use crate::exit::{Exit, Failure};
use crate::output;

/// Prints one table as Markdown.
pub(crate) fn tables(table: Table) -> Result<Exit, Failure> {
    let lines = match table {
        Table::ExitCodes => exit_codes(),
        Table::Reasons => reasons(),
        Table::ErrorKinds => error_kinds(),
        Table::RunFlags => flags_of("run"),
        #[cfg(feature = "node")]
        Table::NodeFlags => flags_of("node"),
        #[cfg(feature = "torture")]
        Table::TortureFlags => flags_of("torture"),
        #[cfg(feature = "torture")]
        Table::Faults => faults(),
        Table::Events => events(),
        Table::Schemes => schemes(),
        Table::KillSequence => kill_sequence(),
        #[cfg(feature = "http")]
        Table::Metrics => metrics(),
        #[cfg(all(feature = "http", feature = "node"))]
        Table::NodeMetrics => node_metrics(),
    };
    output::lines(&lines)?;
    Ok(Exit::Clean)
}

fn exit_codes() -> Vec<String> {
    let rows = Exit::table().into_iter().map(|(code, meaning)| format!("| {code} | {meaning} |"));
    markdown(&["code", "meaning"], rows)
}

fn reasons() -> Vec<String> {
    let row = |reason: &Reason| format!("| `{}` | {} |", reason.as_str(), reason.meaning());
    markdown(&["reason", "meaning"], Reason::ALL.iter().map(row))
}

fn error_kinds() -> Vec<String> {
    let row = |kind: &ErrorKind| {
        let again = if kind.is_retryable() { "yes" } else { "no" };
        format!("| `{}` | {} | {again} |", kind.as_str(), kind.meaning())
    };
    markdown(&["kind", "meaning", "tried again"], ErrorKind::ALL.iter().map(row))
}

fn flags_of(subcommand: &str) -> Vec<String> {
    let command = Args::command();
    let one = command.find_subcommand(subcommand).expect("it is there");
    let row = |argument: &clap::Arg| {
        let name = match (argument.get_short(), argument.get_long()) {
            (Some(short), Some(long)) => format!("-{short}, --{long}"),
            (Some(short), None) => format!("-{short}"),
            (None, long) => format!("--{}", long?),
        };
        let default = argument.get_default_values().first().and_then(|value| value.to_str()).unwrap_or("");
        let default = if default == "false" { "" } else { default };
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default().replace('|', "\\|");
        Some(format!("| `{name}` | {default} | {help} |"))
    };
    let flags = one.get_arguments().filter(|argument| !argument.is_positional());
    markdown(&["flag", "default", "meaning"], flags.filter_map(row))
}

#[cfg(feature = "torture")]
fn faults() -> Vec<String> {
    let row = |kind: &bellwether_torture::Kind| format!("| `{kind}` | {} |", kind.meaning());
    markdown(&["fault", "what happens"], bellwether_torture::Kind::ALL.iter().map(row))
}

/// Every event with the fields that it has beside those of all.
fn events() -> Vec<String> {
    let row = |what: &What| {
        let fields: Vec<String> = Event::own_fields(what).iter().map(|name| format!("`{name}`")).collect();
        let fields = if fields.is_empty() { "–".to_owned() } else { fields.join(", ") };
        format!("| `{}` | {fields} | {} |", what.as_str(), what.meaning())
    };
    markdown(&["event", "fields", "meaning"], What::examples().iter().map(row))
}

fn schemes() -> Vec<String> {
    let row = |scheme: &Scheme| {
        let names: Vec<String> = scheme.names.iter().map(|name| format!("`{name}:`")).collect();
        let secret = match scheme.secret {
            SecretIn::Nowhere => "–",
            SecretIn::Password => "a password",
            _ => "a password or a token",
        };
        let feature = scheme.feature.map_or("–".to_owned(), |name| format!("`{name}`"));
        let names = names.join(", ");
        format!("| {names} | `{}` | {} | {feature} | {secret} |", scheme.example, scheme.place)
    };
    let columns = ["scheme", "URL", "elections are held in", "feature", "may hold a secret"];
    markdown(&columns, Scheme::all().iter().map(row))
}

fn kill_sequence() -> Vec<String> {
    let row = |step: &KillStep| {
        let before = match (step.before.as_millis(), step.plus_grace) {
            (0, _) => "deadline".to_owned(),
            (ms, false) => format!("deadline − {ms} ms"),
            (ms, true) => format!("deadline − {ms} ms − grace"),
        };
        let namespace = match step.containment {
            None => "with or without",
            Some(Containment::Namespace) => "with",
            Some(Containment::Sweep) => "without",
        };
        format!("| {before} | {namespace} | {} | {} | {} |", step.actor, step.action, step.reason)
    };
    let columns = ["when", "PID namespace", "who", "does what", "because"];
    markdown(&columns, KILL_SEQUENCE.iter().map(row))
}

#[cfg(feature = "http")]
fn metrics() -> Vec<String> {
    let row = |metric: &bellwether::MetricRow| {
        let labels: Vec<String> = metric.labels.iter().map(|name| format!("`{name}`")).collect();
        let labels = if labels.is_empty() { "–".to_owned() } else { labels.join(", ") };
        format!("| `{}` | {} | {labels} | {} |", metric.name, metric.kind_str(), metric.meaning)
    };
    markdown(&["metric", "kind", "further labels", "meaning"], bellwether::Metrics::table().iter().map(row))
}

#[cfg(all(feature = "http", feature = "node"))]
fn node_metrics() -> Vec<String> {
    let row = |metric: &NodeMetric| {
        let label = metric.label.map_or("–".to_owned(), |name| format!("`{name}`"));
        format!("| `{}` | {} | {label} | {} |", metric.name, metric.kind, metric.meaning)
    };
    markdown(&["metric", "kind", "further label", "meaning"], NODE_METRICS.iter().map(row))
}

fn markdown(columns: &[&str], rows: impl Iterator<Item = String>) -> Vec<String> {
    let heading = [format!("| {} |", columns.join(" | ")), format!("|{}", "---|".repeat(columns.len()))];
    heading.into_iter().chain(rows).collect()
}
