//! Server-sent events.

use bellwether_tests::http::EventStream;
use rustix::process::Signal;

use super::{follower, leader, temporary};

#[test]
fn a_stream_begins_with_the_status_and_tells_of_every_change() {
    let directory = temporary();
    let (mut first, of_first) = leader(directory.path(), "a", &["--ttl", "30s"]);
    let (mut second, of_second) = follower(directory.path(), "b", &["--ttl", "30s"]);
    let mut told_by_first = EventStream::open(&of_first);
    let mut told_by_second = EventStream::open(&of_second);
    assert_eq!(told_by_first.next("status")["is_leader"].as_bool(), Some(true));
    assert_eq!(told_by_second.next("status")["state"].as_str(), Some("follower"));
    first.signal(Signal::TERM);
    let released = told_by_first.next("released");
    assert_eq!((released["election"].as_str(), released["id"].as_str()), (Some("job"), Some("a")));
    let acquired = told_by_second.next("acquired");
    assert_eq!(acquired["epoch"].as_u64(), second.expect("acquired").epoch());
    assert_eq!(first.ended().code, Some(0), "a stream that is open holds nobody up");
}

#[test]
fn the_last_events_come_first_for_those_who_ask_for_them() {
    let directory = temporary();
    let (mut first, of_first) = leader(directory.path(), "a", &["--ttl", "30s"]);
    let acquired = first.heard("acquired");
    let mut told = EventStream::open_kept(&of_first);
    assert_eq!(told.next("status")["is_leader"].as_bool(), Some(true));
    assert_eq!(told.next("acquired")["epoch"].as_u64(), acquired.epoch(), "what happened before");
    first.signal(Signal::TERM);
    assert_eq!(told.next("released")["epoch"].as_u64(), acquired.epoch(), "and what happens from then on");
}
