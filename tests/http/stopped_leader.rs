//! A leader that was stopped past its deadline: whatever waited for an answer meanwhile must not hear that it leads.

use std::time::Duration;

use bellwether_tests::http::answer;
use rustix::process::Signal;

use super::{leader, temporary};

#[test]
fn a_question_that_waited_while_the_leader_was_stopped_is_answered_with_no() {
    let directory = temporary();
    let (mut candidate, place) = leader(directory.path(), "a", &["--ttl", "1s"]);
    assert_eq!(place.get("/leader").status, 200);
    candidate.signal(Signal::STOP);
    let mut waiting: Vec<_> = (0..20)
        .map(|_| {
            let mut stream = place.connect();
            stream
                .write_all(b"GET /leader HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n")
                .expect("the kernel listens");
            stream
        })
        .collect();
    // Past the deadline, which is what this is about.
    std::thread::sleep(Duration::from_millis(1_200));
    candidate.signal(Signal::CONT);
    let first = answer(&mut *waiting[0]);
    assert_eq!((first.status, first.json()["valid_ms"].as_u64()), (503, Some(0)), "{first:?}");
    // It may lead again by the time that the last one is answered, and then under another epoch.
    let epoch = candidate.heard("acquired").epoch();
    for stream in &mut waiting[1..] {
        let answer = answer(&mut **stream);
        assert!(answer.status == 503 || answer.json()["epoch"].as_u64() > epoch, "{answer:?}");
    }
}
