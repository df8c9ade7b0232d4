//! When a candidate says that it is ready, how it stands, and that it stops.

use std::time::Duration;

use bellwether_support::servers::nats::{Server, Version};
use bellwether_tests::Candidate;
use bellwether_tests::notify::ServiceManager;
use rustix::process::Signal;

use crate::{leader, nats_url, run, store_in, temporary};

#[test]
fn a_follower_is_ready_as_a_leader_is_and_each_says_how_it_stands() {
    let directory = temporary();
    let (first, second) = (ServiceManager::in_directory(directory.path()), ServiceManager::nameless());
    let mut a = leader(directory.path(), &first, None, &["--ttl", "5s"]);
    let heard = first.until(|one| one.field("STATUS") == Some("leads job under epoch 1"));
    assert_eq!(heard.iter().filter(|one| one.says("READY=1")).count(), 1, "{heard:?}");
    let mut command = run(&second, &store_in(directory.path()), None, &[]);
    command.args(["--id", "b"]);
    let mut b = Candidate::start(command);
    let heard = second.until(|one| one.field("STATUS") == Some("stands by for job: a leads"));
    assert!(heard.iter().any(|one| one.says("READY=1")), "{heard:?}");
    b.joined();
    a.signal(Signal::TERM);
    let said = first.until(|one| one.says("STOPPING=1")).pop().expect("the last one");
    assert_eq!(said.field("STATUS"), Some("leaves job"));
    assert_eq!(a.ended().code, Some(0));
    let heard = second.until(|one| one.field("STATUS").is_some_and(|now| now.starts_with("leads job under")));
    assert!(!heard.iter().any(|one| one.says("READY=1")), "that was said already: {heard:?}");
    assert!(first.next(Duration::ZERO).is_none(), "STOPPING was its last word");
}

/// It would fail the unit at boot, on every host, because of a store that is up a minute later.
#[tokio::test]
async fn a_store_that_is_out_of_reach_puts_the_start_off_and_does_not_fail_it() {
    let directory = temporary();
    let manager = ServiceManager::in_directory(directory.path());
    let mut server = Server::start(Version::Current).await;
    let url = nats_url(&server);
    server.down("TERM");
    let mut a = Candidate::start(run(&manager, &url, None, &["--ttl", "2s"]));
    let mut put_off = 0;
    let heard = manager.until(|one| {
        put_off += usize::from(one.field("EXTEND_TIMEOUT_USEC").is_some());
        put_off == 3
    });
    assert!(!heard.iter().any(|one| one.says("READY=1")), "{heard:?}");
    let statuses: Vec<_> = heard.iter().filter_map(|one| one.field("STATUS")).collect();
    assert!(statuses.iter().any(|status| status.starts_with("stands by for job; the store")), "{statuses:?}");
    server.up().await;
    manager.until(|one| one.says("READY=1"));
    a.expect("acquired");
    // Without a watchdog, there is nothing to say from then on but changes.
    let quiet = manager.during(Duration::from_secs(3));
    assert!(!quiet.iter().any(|one| one.field("EXTEND_TIMEOUT_USEC").is_some()), "{quiet:?}");
    a.signal(Signal::TERM);
    assert_eq!(a.ended().code, Some(0));
}
