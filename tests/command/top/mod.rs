//! `bellwether top`: a live screen on a terminal that is put back as it was, plain tables elsewhere.

mod terminal;

use std::path::Path;
use std::process::Command;

use bellwether_tests::{Candidate, OutputLines, bellwether, until_blocking};
use rustix::process::Signal;
use serde_json::Value;
use terminal::Terminal;

use crate::temporary;

fn top(directory: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(bellwether());
    command.arg("--backend").arg(format!("file:{}", directory.display())).arg("top").args(more);
    command
}

fn leader(directory: &Path, election: &str, id: &str) -> Candidate {
    let mut candidate = Candidate::on_file(directory, election, id, &["--ttl", "10s"]);
    candidate.expect("acquired");
    candidate
}

#[test]
fn the_screen_shows_who_leads_and_follows_when_that_changes() {
    let directory = temporary();
    let mut first = leader(directory.path(), "job", "alice");
    let mut second = Candidate::on_file(directory.path(), "job", "bob", &["--ttl", "10s"]);
    second.joined();
    let mut terminal = Terminal::run(top(directory.path(), &[]));
    let drawn = terminal.wait_for("alice");
    assert!(drawn.starts_with("\x1b[?1049h"), "the alternate screen: {drawn:?}");
    assert!(drawn.contains("ELECTION") && drawn.contains("job") && drawn.contains("alive"), "{drawn:?}");
    first.signal(Signal::TERM);
    terminal.wait_for("bob");
    let _late = leader(directory.path(), "later", "carol");
    terminal.wait_for("carol");
    terminal.press("q");
    assert_eq!(terminal.ended(), Some(0));
    terminal.is_as_before();
}

#[test]
fn signals_leave_and_the_screen_is_put_back() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let directory = temporary();
        let mut terminal = Terminal::run(top(directory.path(), &[]));
        terminal.wait_for("no elections here yet");
        terminal.signal(signal);
        assert_eq!(terminal.ended(), Some(0), "{signal:?}");
        terminal.is_as_before();
    }
}

#[test]
fn another_size_of_the_window_is_drawn_at_once() {
    let directory = temporary();
    let all: Vec<Candidate> =
        (0..6).map(|n| leader(directory.path(), &format!("job-{n}"), &format!("id-{n}"))).collect();
    let mut terminal = Terminal::run(top(directory.path(), &["--interval", "1h"]));
    terminal.wait_for("id-5");
    terminal.resize(6, 30);
    let small = terminal.wait_for("… and");
    let longest = small.split("\x1b[H").last().expect("a frame").lines().map(visible).max();
    assert!(longest <= Some(30), "{small:?}");
    terminal.press("q");
    assert_eq!(terminal.ended(), Some(0));
    drop(all);
}

/// Characters that take room.
fn visible(line: &str) -> usize {
    let mut count = 0;
    let mut escape = false;
    for c in line.chars().filter(|c| *c != '\r') {
        match (escape, c) {
            (false, '\x1b') => escape = true,
            (false, _) => count += 1,
            (true, c) => escape = !c.is_ascii_alphabetic(),
        }
    }
    count
}

#[test]
fn a_store_that_cannot_be_used_is_said_without_touching_the_screen() {
    let directory = temporary();
    let place = directory.path().join("elections");
    std::fs::write(&place, "my notes").expect("a file");
    let mut terminal = Terminal::run(top(&place, &[]));
    let said = terminal.wait_for("move it away");
    assert_eq!(terminal.ended(), Some(78));
    assert!(!said.contains("\x1b[?1049h"), "{said:?}");
}

/// The next line with this in it; every line until then is plain.
fn plain_with(piped: &mut OutputLines, part: &str) -> String {
    piped.until(|line| {
        assert!(!line.contains('\x1b'), "plain: {line:?}");
        line.contains(part)
    })
}

#[test]
fn where_there_is_no_terminal_tables_are_printed_plain_when_something_changes() {
    let directory = temporary();
    let mut first = leader(directory.path(), "job", "alice");
    let mut second = Candidate::on_file(directory.path(), "job", "bob", &["--ttl", "10s"]);
    second.joined();
    let mut piped = OutputLines::run(top(directory.path(), &["job"]));
    assert!(piped.line().starts_with("ELECTION"));
    let row = piped.line();
    assert!(row.starts_with("job") && row.contains("alice") && row.ends_with("alive"), "{row}");
    first.signal(Signal::TERM);
    let row = plain_with(&mut piped, "bob");
    assert!(row.starts_with("job") && row.ends_with("alive"), "{row}");
}

#[test]
fn machines_get_one_object_a_refresh() {
    let directory = temporary();
    let mut first = leader(directory.path(), "job", "alice");
    let mut piped = OutputLines::run(top(directory.path(), &["-o", "json", "--interval", "100ms"]));
    let mut next = || -> Value { serde_json::from_str(&piped.line()).expect("JSON") };
    let (one, two) = (next(), next());
    assert!(one["boot_ns"].as_u64() < two["boot_ns"].as_u64() && one["error"].is_null(), "{one}");
    let election = &one["elections"][0];
    assert_eq!((election["holder"].as_str(), election["life"].as_str()), (Some("alice"), Some("alive")));
    assert_eq!((election["epoch"].as_u64(), election["ttl_ms"].as_u64()), (Some(1), Some(10_000)));
    let mut shows = |what: &str, wanted: fn(&Value) -> bool| {
        until_blocking(|| wanted(&next()["elections"][0][what]).then_some(()).ok_or(format!("{what} stays")));
    };
    shows("renewal_seen_ms_ago", Value::is_u64);
    first.signal(Signal::TERM);
    shows("holder", Value::is_null);
}

#[test]
fn a_stopped_leader_is_shown_as_silent() {
    let directory = temporary();
    let mut leader = Candidate::on_file(directory.path(), "job", "alice", &["--ttl", "1s"]);
    leader.expect("acquired");
    let mut piped = OutputLines::run(top(directory.path(), &[]));
    plain_with(&mut piped, "alice");
    leader.signal(Signal::STOP);
    let row = plain_with(&mut piped, "silent");
    assert!(row.contains("alice"), "{row}");
    leader.signal(Signal::CONT);
}

#[test]
fn looking_changes_nothing() {
    let directory = temporary();
    let missing = directory.path().join("missing");
    let mut piped = OutputLines::run(top(&missing, &["--interval", "50ms"]));
    for _ in 0..4 {
        plain_with(&mut piped, "no elections here yet");
    }
    assert!(!missing.exists());
}
