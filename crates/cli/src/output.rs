//! What people and machines read.

use std::io::{self, ErrorKind, Write, stdout};
use std::os::fd::AsFd;
use std::time::Duration;

use bellwether::ElectionName;
use bellwether::{Paused, Seen, Wall};
use tokio::io::Interest;
use tokio::net::unix::pipe;
use unicode_width::UnicodeWidthStr;

use crate::exit::{Exit, Failure};

/// Prints a line on stdout. False when nobody reads it any more: then there is nothing left to do, and nothing to complain of.
///
/// # Errors
/// It is lost in another way: a full disk.
pub(crate) fn line(text: &str) -> Result<bool, Failure> {
    write(format!("{text}\n").as_bytes())
}

/// As [`line`], for several.
pub(crate) fn lines(all: &[String]) -> Result<bool, Failure> {
    let text: String = all.iter().map(|line| format!("{line}\n")).collect();
    write(text.as_bytes())
}

/// As [`line`], for what has its own line ends.
pub(crate) fn write(bytes: &[u8]) -> Result<bool, Failure> {
    match stdout().lock().write_all(bytes).and_then(|()| stdout().flush()) {
        Ok(()) => Ok(true),
        Err(error) => lost(&error).map_or(Ok(false), Err),
    }
}

/// The failure that an error of stdout is; `None` when only the reader has gone.
pub(crate) fn lost(error: &io::Error) -> Option<Failure> {
    let sentence = || format!("the output could not be written: {error}");
    (error.kind() != ErrorKind::BrokenPipe).then(|| Failure::new(Exit::Output, sentence()))
}

/// Waits until nobody reads stdout any more; for ever where that cannot be told, as of a file.
pub(crate) async fn unread() {
    let copy = stdout().as_fd().try_clone_to_owned();
    // Nothing is written to it here, so it may block.
    if let Ok(pipe) = copy.and_then(pipe::Sender::from_owned_fd_unchecked)
        && pipe.ready(Interest::ERROR).await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

/// Rows under a heading, each column as wide as its widest cell: in columns of a terminal, of which CJK characters and emoji take two.
pub(crate) fn table(heading: &[&str], rows: &[Vec<String>]) -> Vec<String> {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].width());
        cells.chain([heading[column].width()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heading.len()).map(width).collect();
    let print = |cells: Vec<&str>| {
        let pad = |(cell, width): (&&str, &usize)| format!("{cell}{}", " ".repeat(width - cell.width()));
        let padded: Vec<String> = cells.iter().zip(&widths).map(pad).collect();
        padded.join("  ").trim_end().to_owned()
    };
    let mut lines = vec![print(heading.to_vec())];
    lines.extend(rows.iter().map(|row| print(row.iter().map(String::as_str).collect())));
    lines
}

/// A record as a row.
pub(crate) const RECORD_HEADING: [&str; 6] = ["ELECTION", "LEADER", "EPOCH", "SINCE", "TTL", "LIFE"];

/// A record as a row under [`RECORD_HEADING`].
pub(crate) fn record_row(on: &ElectionName, seen: &Seen) -> Vec<String> {
    let dash = || "-".to_owned();
    vec![
        on.to_string(),
        seen.holder.as_ref().map_or_else(dash, |holder| holder.id.to_string()),
        seen.epoch.map_or_else(dash, |epoch| epoch.to_string()),
        seen.acquired.filter(|_| seen.holder.is_some()).map_or_else(dash, short),
        seen.ttl.map_or_else(dash, span),
        match seen.paused {
            Some(_) => format!("{}, paused", seen.proof.as_str()),
            None => seen.proof.as_str().to_owned(),
        },
    ]
}

/// That the election is paused, for how much longer, and by whom.
pub(crate) fn paused(paused: &Paused) -> String {
    let by = paused.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    let whole = Duration::from_secs(paused.left.as_secs());
    format!("paused for another {}{by}", span(if whole.is_zero() { paused.left } else { whole }))
}

/// A duration as people write it, without more digits than anybody reads.
pub(crate) fn span(duration: Duration) -> String {
    let step = if duration >= Duration::from_secs(1) { 1_000_000 } else { 1_000 };
    let nanos = duration.as_nanos() / step * step;
    bellwether::duration::print(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
}

fn short(at: Wall) -> String {
    let text = at.to_string();
    format!("{}Z", text.split('.').next().unwrap_or(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_after_characters_that_take_two_places_or_none() {
        let rows = [["選挙", "1"], ["demo\u{1F411}", "2"], ["e\u{301}", "3"], ["plain", "4"]];
        let rows: Vec<Vec<String>> = rows.iter().map(|row| row.map(str::to_owned).to_vec()).collect();
        let lines = table(&["ELECTION", "EPOCH"], &rows);
        for line in &lines {
            let column = line.rfind("  ").expect("two columns") + 2;
            assert_eq!(line[..column].width(), 10, "{line}");
        }
        assert_eq!(lines[1], "選挙      1");
    }
}
