//! Thousands of clients, idle, slow or greedy: renewals stay on time, and no bound is passed.

use std::io::{ErrorKind, Read};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use bellwether_tests::http::{EventStream, HttpPlace, answer};
use bellwether_tests::{PATIENCE, skipped, until_blocking};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{served_at, temporary};

/// What a candidate may open here: half of it is for connections, and three quarters of those for event streams.
const DESCRIPTORS: u64 = 6_000;
const CONNECTIONS: usize = 3_000;
const STREAMS: usize = 2_250;
/// Idle event streams.
const IDLE: usize = 2_000;

/// Lets this process, and those that it starts, open so many; false where it may not.
fn may_open_enough() -> bool {
    let limit = getrlimit(Resource::Nofile);
    if limit.maximum.is_some_and(|most| most < DESCRIPTORS) {
        skipped(format_args!("thousands of connections, which need {DESCRIPTORS} descriptors"));
        return false;
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(DESCRIPTORS), ..limit }).expect("below the maximum");
    true
}

/// How many renewals were confirmed so far.
fn renewals(place: &HttpPlace) -> u64 {
    let metrics = place.get("/metrics").body;
    let line = metrics.lines().find(|line| {
        line.starts_with("election_heartbeat_duration_seconds_count") && line.contains("status=\"success\"")
    });
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0)
}

/// A client that sends a request byte by byte and never ends it, until it is closed.
fn slow_loris(place: &HttpPlace) -> std::thread::JoinHandle<bool> {
    let HttpPlace::Tcp(address) = *place else { panic!("a port") };
    std::thread::spawn(move || {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_millis(50))).expect("a duration");
        let limit = bellwether_deadman::boot_now() + PATIENCE;
        for byte in b"GET /leader HTTP/1.1\r\nx: ".iter().chain(std::iter::repeat(&b'y')) {
            if std::io::Write::write_all(&mut stream, &[*byte]).is_err() {
                return true;
            }
            match stream.read(&mut [0; 64]) {
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                // Closed, with or without a word.
                Ok(_) | Err(_) => return true,
            }
            if bellwether_deadman::boot_now() > limit {
                break;
            }
        }
        let _ = stream.shutdown(Shutdown::Both);
        false
    })
}

#[test]
fn two_thousand_idle_streams_and_slow_clients_delay_no_renewal() {
    if !may_open_enough() {
        return;
    }
    let directory = temporary();
    let place = HttpPlace::free_port();
    let token = directory.path().join("token");
    std::fs::write(&token, "3ba0a2c1c7c94d5e9f1b").expect("our own directory");
    let token = token.display().to_string();
    let more = ["--ttl", "3s", "--renew", "200ms", "--http-token-file", &token];
    let mut candidate = served_at(directory.path(), "a", &place, &more);
    let epoch = candidate.expect("acquired").epoch();
    let lorises: Vec<_> = (0..50).map(|_| slow_loris(&place)).collect();
    let mut idle: Vec<EventStream> = (0..IDLE).map(|_| EventStream::open(&place)).collect();
    let before = renewals(&place);
    until_blocking(|| {
        let now = renewals(&place);
        if now >= before + 30 { Ok(()) } else { Err(format!("{now} renewals after {before}")) }
    });
    for loris in lorises {
        assert!(loris.join().expect("it ran"), "a request that never ends is closed");
    }
    // Everybody is still there.
    for stream in [0, IDLE / 2, IDLE - 1] {
        assert_eq!(idle[stream].next("status")["epoch"].as_u64(), epoch);
    }
    candidate.drain();
    let bad: Vec<_> =
        candidate.said.iter().filter(|line| ["lost", "suspended"].contains(&line.event())).collect();
    assert!(bad.is_empty(), "{bad:?}");
    assert_eq!(place.get("/leader").json()["epoch"].as_u64(), epoch, "still the same leadership");
    let stepped = place.request("POST", "/step-down", &["authorization: Bearer 3ba0a2c1c7c94d5e9f1b"], "");
    assert_eq!(stepped.status, 200, "{stepped:?}");
    for stream in &mut idle {
        assert_eq!(stream.next("released")["epoch"].as_u64(), epoch);
    }
    candidate.signal(rustix::process::Signal::TERM);
    assert_eq!(candidate.ended().code, Some(0), "whoever still reads holds nobody up");
}

#[test]
fn streams_and_connections_have_bounds_and_one_too_many_is_told_so() {
    if !may_open_enough() {
        return;
    }
    let directory = temporary();
    let place = HttpPlace::free_port();
    let mut candidate = served_at(directory.path(), "a", &place, &["--ttl", "3s", "--renew", "200ms"]);
    candidate.expect("acquired");
    let streams: Vec<EventStream> = (0..STREAMS).map(|_| EventStream::open(&place)).collect();
    assert_eq!(EventStream::try_open(&place).err(), Some(503), "one stream too many");
    assert_eq!(place.get("/leader").status, 200, "there is room for others");
    let mut others: Vec<_> = (STREAMS..CONNECTIONS).map(|_| place.connect()).collect();
    // Which is told so as soon as all before it have been accepted.
    let refused = until_blocking(|| {
        let mut one_more = place.connect();
        let _ = one_more.write_all(b"GET /leader HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
        match answer(&mut *one_more) {
            refused if refused.status == 503 => Ok(refused),
            served => Err(format!("{served:?}")),
        }
    });
    assert!(refused.body.contains("too many connections"), "{refused:?}");
    let descriptors = std::fs::read_dir(format!("/proc/{}/fd", candidate.pid())).expect("it runs").count();
    assert!(descriptors < CONNECTIONS + 100, "{descriptors} descriptors");
    // A place that is given up is given to the next.
    others.truncate(others.len() - 10);
    super::until_status(&place, "/leader", 200);
    drop((streams, others));
    candidate.drain();
    assert!(!candidate.said.iter().any(|line| line.event() == "lost"), "{:?}", candidate.said);
}
