//! `bellwether run --http`: every endpoint over real sockets, and clients that misbehave.

mod answers;
mod bad_input;
mod campaign;
mod campaigner;
mod crowds;
mod encryption;
mod events;
mod node;
mod sockets;
mod step_down;
mod stopped_leader;

use std::path::Path;

use bellwether_tests::http::HttpPlace;
use bellwether_tests::{Candidate, until_blocking};

/// A directory with a store and sockets.
fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// A candidate that serves on a socket of its own.
fn served(directory: &Path, id: &str, more: &[&str]) -> (Candidate, HttpPlace) {
    let place = HttpPlace::Unix(directory.join(format!("{id}.sock")));
    (served_at(directory, id, &place, more), place)
}

fn served_at(directory: &Path, id: &str, place: &HttpPlace, more: &[&str]) -> Candidate {
    let flag = place.flag();
    let mut arguments = vec!["--http", &flag];
    arguments.extend(more);
    Candidate::on_file(&directory.join("store"), "job", id, &arguments)
}

/// One that leads.
fn leader(directory: &Path, id: &str, more: &[&str]) -> (Candidate, HttpPlace) {
    let (mut candidate, place) = served(directory, id, more);
    candidate.expect("acquired");
    (candidate, place)
}

/// One that follows somebody.
fn follower(directory: &Path, id: &str, more: &[&str]) -> (Candidate, HttpPlace) {
    let (mut candidate, place) = served(directory, id, more);
    candidate.joined();
    (candidate, place)
}

/// Waits until it answers that it leads, or that it does not.
fn until_status(place: &HttpPlace, path: &str, wanted: u16) {
    until_blocking(|| match place.get(path).status {
        status if status == wanted => Ok(()),
        status => Err(format!("{path} answers {status}")),
    });
}
