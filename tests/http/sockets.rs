//! Unix sockets: whose file it is, and who may remove it.

use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixListener;

use bellwether_tests::http::HttpPlace;
use rustix::process::Signal;

use super::{leader, served_at, temporary};

fn path(place: &HttpPlace) -> &std::path::Path {
    match place {
        HttpPlace::Unix(path) => path,
        HttpPlace::Tcp(_) => panic!("a socket"),
    }
}

#[test]
fn the_file_goes_with_its_process_and_one_that_a_killed_process_left_is_replaced() {
    let directory = temporary();
    let (mut killed, place) = leader(directory.path(), "a", &["--ttl", "30s"]);
    assert_eq!(place.get("/leader").status, 200);
    killed.kill();
    assert!(path(&place).exists(), "a killed process removes nothing");
    let (mut again, place) = leader(directory.path(), "a", &["--ttl", "30s"]);
    assert_eq!(place.get("/leader").status, 200);
    again.signal(Signal::TERM);
    assert_eq!(again.ended().code, Some(0));
    assert!(!path(&place).exists());
}

#[test]
fn what_somebody_else_made_stays_where_it_is() {
    let directory = temporary();
    let place = HttpPlace::socket_in(directory.path());
    // Nobody listens on it any more, and still it is not ours.
    drop(UnixListener::bind(path(&place)).expect("our own directory"));
    let refused = served_at(directory.path(), "a", &place, &[]).ended();
    assert_eq!(refused.code, Some(64), "{refused:?}");
    assert!(refused.stderr.contains("did not make it"), "{refused:?}");
    assert!(std::fs::metadata(path(&place)).is_ok_and(|about| about.file_type().is_socket()));
}

#[test]
fn a_socket_that_is_served_is_not_taken_away() {
    let directory = temporary();
    let (_first, place) = leader(directory.path(), "a", &["--ttl", "30s"]);
    let second = served_at(directory.path(), "b", &place, &[]).ended();
    assert_eq!(second.code, Some(64), "{second:?}");
    assert!(second.stderr.contains("another bellwether serves it"), "{second:?}");
    assert_eq!(place.get("/leader").json()["leader"].as_str(), Some("a"));
}
