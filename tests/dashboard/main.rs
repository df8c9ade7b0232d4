//! The dashboard of `bellwether run --http`, in a real browser.

mod browser;
mod disconnected;
mod following;
mod looks;
mod names;
mod page;

use std::path::Path;

use bellwether_tests::Candidate;
use bellwether_tests::http::HttpPlace;

use crate::page::{Page, Window};

/// A directory with a store.
fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// A candidate that serves the dashboard.
struct Served {
    candidate: Candidate,
    place: HttpPlace,
}

/// How long leaderships last where a test does not wait for the end of one.
const LONG: &[&str] = &["--ttl", "60s", "--renew", "500ms"];

impl Served {
    fn start(directory: &Path, election: &str, id: &str, more: &[&str]) -> Served {
        Served::start_at(HttpPlace::free_port(), directory, election, id, more)
    }

    fn start_at(place: HttpPlace, directory: &Path, election: &str, id: &str, more: &[&str]) -> Served {
        let flag = place.flag();
        let mut arguments = vec!["--http", &flag];
        arguments.extend(more);
        let candidate = Candidate::on_file(&directory.join("store"), election, id, &arguments);
        Served { candidate, place }
    }

    /// One that leads.
    fn leader(directory: &Path, election: &str, id: &str, more: &[&str]) -> Served {
        let mut served = Served::start(directory, election, id, more);
        served.candidate.expect("acquired");
        served
    }

    /// One that follows somebody.
    fn follower(directory: &Path, election: &str, id: &str, more: &[&str]) -> Served {
        let mut served = Served::start(directory, election, id, more);
        served.candidate.joined();
        served
    }

    fn url(&self) -> String {
        format!("http://{}/", self.place.flag())
    }

    fn open(&self, window: Window) -> Page {
        // It listens.
        drop(self.place.connect());
        Page::open(&self.url(), window)
    }
}
