//! Clients in other languages beside real agents: never two of them work at once, whatever is done to whom.

#![cfg(target_os = "linux")]

mod first_lines;
mod handover;
mod late_answer;
mod network;
mod proxy;

use std::path::Path;

use bellwether_tests::Candidate;
use bellwether_tests::clients::{ClientRounds, Language, Trouble};

/// So that each trouble comes to the client, to its agent, and to both.
const ROUNDS_EACH: usize = 3;

/// A candidate whose work clients do.
fn agent(directory: &Path, id: &str, http: &str, more: &[&str]) -> Candidate {
    let flags = [&["--for-clients", "--http", http], more].concat();
    Candidate::on_file(&directory.join("store"), "job", id, &flags)
}

/// A witness that campaigns at this address.
fn client(language: Language, address: &str, environment: &[(&str, &str)]) -> Candidate {
    let mut witness = language.witness(address);
    witness.envs(environment.iter().copied());
    Candidate::start(witness)
}

fn never_two_at_once(language: Language) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut rounds = ClientRounds::start(language, directory.path());
    for trouble in Trouble::ALL {
        (0..ROUNDS_EACH).for_each(|_| rounds.round(trouble));
    }
    let figures = rounds.judged();
    assert!(figures.leaderships > 3 * ROUNDS_EACH, "{figures:?}");
    assert!(figures.complaints().is_empty(), "{:#?}", figures.complaints());
}

#[test]
fn clients_in_python_never_work_two_at_once() {
    never_two_at_once(Language::Python);
}

#[test]
fn clients_in_go_never_work_two_at_once() {
    never_two_at_once(Language::Go);
}

#[test]
fn clients_in_typescript_never_work_two_at_once() {
    never_two_at_once(Language::TypeScript);
}
