//! An answer that arrives late holds no longer: it counts from before its request.

use std::time::Duration;

use bellwether_tests::EventLine;
use bellwether_tests::clients::{Language, address, judged};

use super::proxy::Proxy;
use super::{agent, client};

/// So long that a client on a busy machine still believes when the late answer comes.
const TTL: &[&str] = &["--ttl", "4s"];

/// More than the margin, a tenth of the ttl: a client that counts from the arrival works on for the rest of it beside the next one.
const LATE: Duration = Duration::from_millis(1_200);

/// The last answer to a client comes late, and then nothing more gets through in either direction.
fn holds_no_longer(language: Language) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let directory = directory.path();
    let (near, here, there) = (directory.join("near"), address(directory, "a"), address(directory, "b"));
    let _first = agent(directory, "a", &here, TTL);
    let proxy = Proxy::start(&near, &directory.join("a"));
    let mut cut_off = client(language, &format!("unix:{}", near.display()), &[]);
    cut_off.expect("acquired");
    let mut second = agent(directory, "b", &there, TTL);
    let mut next = client(language, &there, &[]);
    second.joined();
    proxy.delay_next_answer_and_cut(LATE);
    cut_off.drain();
    let before = cut_off.said.last().and_then(deadline);
    next.expect("acquired");
    let ended = cut_off.heard("released");
    assert!(deadline(&ended) > before, "the late answer was not heard in time: {before:?}, {ended}");
    next.drain();
    let figures = judged(&[&cut_off, &next]);
    assert_eq!(figures.leaderships, 2, "{figures:?}");
    assert!(figures.complaints().is_empty(), "{:#?}", figures.complaints());
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
