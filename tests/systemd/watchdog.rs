//! Pings of the watchdog: as long as renewals are driven, and no longer.

use std::time::Duration;

use bellwether_support::servers::nats::{Server, Version};
use bellwether_tests::http::HttpPlace;
use bellwether_tests::notify::ServiceManager;
use bellwether_tests::{Candidate, StoppedThreads};
use rustix::process::Signal;

use crate::{leader, nats_url, pings, run, temporary};

const LIMIT: Duration = Duration::from_millis(400);
/// Several pings, also of a process that is starved.
const A_WHILE: Duration = Duration::from_secs(2);

#[test]
fn pings_come_at_twice_the_rate_that_is_needed_and_a_stopped_process_sends_none() {
    let directory = temporary();
    let manager = ServiceManager::in_directory(directory.path());
    let mut a = leader(directory.path(), &manager, Some(LIMIT), &["--ttl", "30s"]);
    manager.status("leads job");
    let heard = manager.during(A_WHILE);
    // Ten, if nothing else runs.
    assert!((3..=12).contains(&pings(&heard)), "{heard:?}");
    a.signal(Signal::STOP);
    manager.during(LIMIT);
    assert_eq!(pings(&manager.during(A_WHILE)), 0);
    a.signal(Signal::CONT);
    manager.until(|one| one.says("WATCHDOG=1"));
}

/// A thread that pings by itself would go on. The one that serves HTTP does go on, which shows that the process as a whole runs.
#[test]
fn a_runtime_that_is_stuck_sends_no_ping_while_other_threads_run_on() {
    let directory = temporary();
    let (manager, place) =
        (ServiceManager::in_directory(directory.path()), HttpPlace::socket_in(directory.path()));
    let a = leader(directory.path(), &manager, Some(LIMIT), &["--ttl", "30s", "--http", &place.flag()]);
    manager.status("leads job");
    let stuck = StoppedThreads::named(a.pid(), "tokio-rt-worker");
    manager.during(LIMIT);
    assert_eq!(pings(&manager.during(A_WHILE)), 0, "{} threads are stopped", stuck.count);
    assert_eq!(place.get("/leader").status, 200, "the process runs, and leads until its deadline");
    drop(stuck);
    manager.until(|one| one.says("WATCHDOG=1"));
}

/// Another process in its place would not reach the store either, and the leadership ends by its deadline.
#[tokio::test]
async fn a_store_that_is_silent_stops_no_ping() {
    let directory = temporary();
    let manager = ServiceManager::in_directory(directory.path());
    let server = Server::start(Version::Current).await;
    let url = nats_url(&server);
    let mut a = Candidate::start(run(&manager, &url, Some(LIMIT), &["--ttl", "2s"]));
    a.expect("acquired");
    manager.status("leads job");
    server.stop();
    a.expect("lost");
    let heard = manager.during(A_WHILE);
    assert!(pings(&heard) >= 3, "{heard:?}");
    server.resume();
    a.expect("acquired");
}

#[test]
fn a_watchdog_that_is_for_another_process_is_left_alone() {
    let directory = temporary();
    let manager = ServiceManager::in_directory(directory.path());
    for (pid, is_ours) in [("1234567", false), ("$$", true)] {
        let bellwether = run(&manager, &crate::store_in(directory.path()), Some(LIMIT), &[]);
        let mut shell = std::process::Command::new("/bin/sh");
        shell.args(["-c", &format!("WATCHDOG_PID={pid} exec \"$@\""), "sh"]);
        shell.arg(bellwether.get_program()).args(bellwether.get_args());
        for (name, value) in bellwether.get_envs() {
            shell.env(name, value.unwrap_or_default());
        }
        shell.env_remove("WATCHDOG_PID");
        let a = Candidate::start(shell);
        manager.status("leads job");
        assert_eq!(pings(&manager.during(A_WHILE)) > 0, is_ours, "{pid}");
        drop(a);
    }
}
