//! A leadership that is to end goes on until its work has ended, however long that takes.

use std::collections::BTreeSet;

use bellwether_tests::clients::{Language, address, working_since};
use bellwether_tests::http::HttpPlace;
use bellwether_tests::until_blocking;
use rustix::process::Signal;

use super::{agent, client};

/// Enough for the renewals to come.
const PATIENT: &[&str] = &["--ttl", "2s", "--stop-timeout", "30s"];

/// So many of them show that the leadership goes on.
const RENEWALS: usize = 2;

/// The agent of a client is asked to end. The work stops, and ends only when it is told so: until then, the agent renews.
fn nobody_works_before_the_work_has_ended(language: Language) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let directory = directory.path();
    let (here, there) = (address(directory, "a"), address(directory, "b"));
    let mut first = agent(directory, "a", &here, PATIENT);
    let mut working = client(language, &here, &[("WITNESS_STOPS", "told")]);
    working.expect("acquired");
    let mut second = agent(directory, "b", &there, PATIENT);
    let mut next = client(language, &there, &[]);
    second.joined();
    first.signal(Signal::TERM);
    let stopping = working.expect("stopping").boot();
    // An agent that has released renews no more, and then the next one works.
    let record = HttpPlace::Unix(directory.join("b"));
    let mut renewed = BTreeSet::new();
    until_blocking(|| {
        let status = record.get("/status").json();
        if status["holder"] == "a" {
            renewed.insert(status["renewed"].to_string());
        }
        let done = renewed.len() > RENEWALS || working_since(&mut next).is_some();
        if done { Ok(()) } else { Err(format!("the leadership is neither renewed nor released: {status}")) }
    });
    let early = working_since(&mut next);
    assert!(
        early.is_none(),
        "the next one works since {early:?}: the work stops since {stopping:?}, and has not ended"
    );
    working.signal(Signal::HUP);
    let ended = working.expect("released").boot();
    let took_over = next.expect("acquired").boot();
    assert!(took_over > ended, "the work ended at {ended:?}, and the next one worked at {took_over:?}");
    assert_eq!(first.exit_code(), Some(0));
}

#[test]
fn in_python_the_work_ends_before_the_next_one_leads() {
    nobody_works_before_the_work_has_ended(Language::Python);
}

#[test]
fn in_go_the_work_ends_before_the_next_one_leads() {
    nobody_works_before_the_work_has_ended(Language::Go);
}

#[test]
fn in_typescript_the_work_ends_before_the_next_one_leads() {
    nobody_works_before_the_work_has_ended(Language::TypeScript);
}
