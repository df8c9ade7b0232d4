//! Thousands of clients, idle, slow or greedy: renewals stay on time, and no bound is passed.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, SystemTime};

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
/// Clients that ask all the time.
const BUSY: usize = 4;

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

/// The time between two renewals.
const RENEW: Duration = Duration::from_millis(200);
/// A renewal that is later than this does not stay on time. A slow disk of a busy machine is faster, and the deadline is two of it away.
const LATE: Duration = Duration::from_secs(1);
/// Most renewals are later by no more than this, on any machine that can run the test.
const MOSTLY: Duration = Duration::from_millis(100);
/// Renewals that are watched.
const WATCHED: u64 = 40;

/// How late each of the next renewals is, by the records in the store: what the process says of itself is not asked. Longest first.
fn lateness(directory: &Path) -> Vec<Duration> {
    let records = directory.join("store/job");
    // Each renewal is a record of the next number; the last eight stay, so a look may come late.
    let mut written: BTreeMap<u64, SystemTime> = BTreeMap::new();
    until_blocking(|| {
        for entry in std::fs::read_dir(&records).expect("the election's directory").flatten() {
            let number = entry.file_name().to_str().and_then(|name| name.strip_suffix(".json")?.parse().ok());
            // One that was swept meanwhile was seen before.
            if let (Some(number), Ok(data)) = (number, entry.metadata()) {
                written.entry(number).or_insert(data.modified().expect("Linux keeps it"));
            }
        }
        let (first, last) = (written.keys().next(), written.keys().next_back());
        let span = first.zip(last).map_or(0, |(first, last)| last - first);
        if span >= WATCHED { Ok(()) } else { Err(format!("{span} renewals were seen")) }
    });
    let numbers = written.keys().zip(written.keys().skip(1));
    assert!(numbers.clone().all(|(one, next)| next - one == 1), "a renewal was not seen: {written:?}");
    let times = written.values().zip(written.values().skip(1));
    let mut late: Vec<Duration> = times
        .map(|(one, next)| next.duration_since(*one).unwrap_or_default().saturating_sub(RENEW))
        .collect();
    late.sort_unstable_by(|a, b| b.cmp(a));
    late
}

#[track_caller]
fn on_time(what: &str, late: &[Duration]) {
    let (most, median) = (late[0], late[late.len() / 2]);
    println!("{what}: of {} renewals, the latest came {most:?} late, the median {median:?}", late.len());
    assert!(most < LATE && median < MOSTLY, "{what}: {late:?}");
}

/// A client that asks for one thing after the other, each on a connection of its own, until it is stopped. Returns how often it was answered.
fn busy(place: &HttpPlace, stop: &Arc<AtomicBool>) -> JoinHandle<usize> {
    let (place, stop) = (place.clone(), Arc::clone(stop));
    spawn(move || {
        let mut answers = 0;
        while !stop.load(Ordering::Relaxed) {
            for path in ["/metrics", "/leader", "/status", "/livez"] {
                assert_eq!(place.get(path).status, 200, "{path}");
                answers += 1;
            }
        }
        answers
    })
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
    let alone = lateness(directory.path());
    let lorises: Vec<_> = (0..50).map(|_| slow_loris(&place)).collect();
    let mut idle: Vec<EventStream> = (0..IDLE).map(|_| EventStream::open(&place)).collect();
    let stop = Arc::new(AtomicBool::new(false));
    let asking: Vec<_> = (0..BUSY).map(|_| busy(&place, &stop)).collect();
    let crowded = lateness(directory.path());
    stop.store(true, Ordering::Relaxed);
    let answers: usize = asking.into_iter().map(|one| one.join().expect("answers")).sum();
    println!("{answers} requests were answered meanwhile");
    on_time("alone", &alone);
    on_time("in the crowd", &crowded);
    for loris in lorises {
        assert!(loris.join().expect("it ran"), "a request that never ends is closed");
    }
    // Everybody is still there.
    for stream in [0, IDLE / 2, IDLE - 1] {
        assert_eq!(idle[stream].next("status")["epoch"].as_u64(), epoch);
    }
    candidate.drain();
    let is_bad = |word: &str| ["danger", "lost", "suspended"].contains(&word);
    let bad: Vec<_> = candidate.said.iter().filter(|line| is_bad(line.event())).collect();
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
