//! Answers that arrive late: they count from before their request, and what has run out they do not bring back.

use std::path::Path;
use std::time::Duration;

use bellwether_tests::clients::{Language, address, judged};
use bellwether_tests::{Candidate, EventLine};
use rustix::process::Signal;

use super::proxy::{Proxy, Then};
use super::{agent, client};

/// So long that a client on a busy machine still believes when the late answer comes.
const TTL: &[&str] = &["--ttl", "4s"];

/// More than the margin, a tenth of the ttl: a client that counts from the arrival works on for the rest of it beside the next one.
const LATE: Duration = Duration::from_millis(1_200);

/// A client that works, behind a proxy; and its agent.
fn behind_a_proxy(
    language: Language,
    directory: &Path,
    more: &[(&str, &str)],
) -> (Candidate, Proxy, Candidate) {
    let (near, here) = (directory.join("near"), address(directory, "a"));
    let agent = agent(directory, "a", &here, TTL);
    let proxy = Proxy::start(&near, &directory.join("a"));
    let mut client = client(language, &format!("unix:{}", near.display()), more);
    client.expect("acquired");
    (agent, proxy, client)
}

/// The last answer to a client comes late, and then nothing more gets through in either direction.
fn holds_no_longer(language: Language) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let directory = directory.path();
    let (_first, proxy, mut cut_off) = behind_a_proxy(language, directory, &[]);
    let there = address(directory, "b");
    let mut second = agent(directory, "b", &there, TTL);
    let mut next = client(language, &there, &[]);
    second.joined();
    proxy.hold_next_answer(Then::Cut);
    cut_off.drain();
    let before = cut_off.said.last().and_then(deadline);
    std::thread::sleep(LATE);
    proxy.pass_on();
    next.expect("acquired");
    let ended = cut_off.heard("released");
    assert!(deadline(&ended) > before, "the late answer was not heard in time: {before:?}, {ended}");
    next.drain();
    let figures = judged(&[&cut_off, &next]);
    assert_eq!(figures.leaderships, 2, "{figures:?}");
    assert!(figures.complaints().is_empty(), "{:#?}", figures.complaints());
}

/// An answer comes when everything before it has run out and the work stops; it would hold, but for that.
fn brings_nothing_back(language: Language) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let told = [("WITNESS_STOPS", "told")];
    let (_agent, proxy, mut client) = behind_a_proxy(language, directory.path(), &told);
    proxy.hold_next_answer(Then::Open);
    client.expect("stopping");
    proxy.pass_on();
    proxy.until_asked_again();
    client.signal(Signal::HUP);
    let ended = client.expect("released");
    assert_eq!(ended.text("holds"), Some("no"), "a leadership that was over holds again: {ended}");
}

fn deadline(line: &EventLine) -> Option<bellwether_core::Boot> {
    line.instant("deadline_boot_ns")
}

#[test]
fn in_python_a_late_answer_holds_no_longer() {
    holds_no_longer(Language::Python);
}

#[test]
fn in_go_a_late_answer_holds_no_longer() {
    holds_no_longer(Language::Go);
}

#[test]
fn in_typescript_a_late_answer_holds_no_longer() {
    holds_no_longer(Language::TypeScript);
}

#[test]
fn in_python_a_late_answer_brings_nothing_back() {
    brings_nothing_back(Language::Python);
}

#[test]
fn in_go_a_late_answer_brings_nothing_back() {
    brings_nothing_back(Language::Go);
}

#[test]
fn in_typescript_a_late_answer_brings_nothing_back() {
    brings_nothing_back(Language::TypeScript);
}
