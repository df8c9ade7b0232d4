//! Who follows what, as the server shows it: by election, though one pair of sessions serves them all, and without filling the lock table.

use std::time::Duration;

use bellwether_election::{Election, Followers, Store};
use bellwether_postgres::from_url;
use bellwether_support::servers::postgres::Server;
use bellwether_support::{clock, election, until};

const TTL: Duration = Duration::from_secs(3);

/// The locks that followers hold beside the parked ones: shared, and neither a presence nor what says whose second session it is.
const SHOWN: &str = "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity s ON s.pid = l.pid \
     WHERE l.locktype = 'advisory' AND l.mode = 'ShareLock' AND l.granted AND s.application_name LIKE '% watch'";

/// Whether the third session of b waits for the end of c's first.
const B_PARKED_ON_C: &str = "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity w ON w.pid = l.pid \
     JOIN pg_stat_activity h ON h.pid::oid = l.objid WHERE l.locktype = 'advisory' AND NOT l.granted \
     AND w.application_name = 'bellwether/b watch' AND h.application_name LIKE 'bellwether/c lock%'";

fn store(url: &str) -> Store {
    Store::from(from_url(url, clock()).unwrap())
}

async fn candidate(on: &Store, name: &str, id: &str) -> Election {
    Election::builder(name).backend(on.clone()).id(id).ttl(TTL).start().await.unwrap()
}

async fn follower(on: &Store, name: &str, id: &str) -> Election {
    let candidate = candidate(on, name, id).await;
    candidate.wait_until(|status| status.leader.is_some()).await.unwrap();
    candidate
}

/// Who follows it, and whether that is all.
async fn followers(by: &Store, name: &str) -> (Vec<String>, bool) {
    let Followers { ids, is_complete } =
        by.followers(&election(name)).await.unwrap().expect("PostgreSQL knows");
    (ids.iter().map(|id| id.to_string()).collect(), is_complete)
}

/// Waits until the server shows these followers.
async fn until_followed(by: &Store, name: &str, ids: &[&str], is_complete: bool) {
    until(|| async {
        let (found, complete) = followers(by, name).await;
        let so = found == ids && complete == is_complete;
        if so { Ok(()) } else { Err(format!("{name} is followed by {found:?}, complete: {complete}")) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn followers_of_one_leader_s_elections_are_told_apart() {
    let server = Server::start(TTL).await;
    server.admin().await.batch_execute("CREATE ROLE app LOGIN; CREATE ROLE other LOGIN").await.unwrap();
    let by = |role: &str| format!("postgres://{role}@127.0.0.1:{}/postgres", server.port);
    // One process leads two elections, so others park on one and the same key for either.
    let (first, second, third) = (store(&by("app")), store(&by("app")), store(&by("app")));
    let (x, y) = (candidate(&first, "x", "a").await, candidate(&first, "y", "a").await);
    x.wait_for_leadership().await.unwrap();
    y.wait_for_leadership().await.unwrap();
    // Who looks is another role, which has no right but to connect.
    let looking = store(&by("other"));
    until_followed(&looking, "x", &[], true).await;
    let b = follower(&second, "x", "b").await;
    let c = follower(&third, "y", "c").await;
    until_followed(&looking, "x", &["b"], true).await;
    until_followed(&looking, "y", &["c"], true).await;
    // Who only observes an election does not follow it, though it takes part in another and waits for the end of both leaders.
    second.backend().follow(&election("y"));
    looking.ask_to_step_down(&election("y"), None).await.unwrap();
    c.wait_for_leadership().await.unwrap();
    until_followed(&looking, "y", &["a"], true).await;
    server.until(B_PARKED_ON_C, |parked| parked == 1).await;
    assert_eq!(followers(&looking, "y").await, (vec!["a".to_owned()], true));
    let d = follower(&second, "y", "b").await;
    until_followed(&looking, "y", &["a", "b"], true).await;
    d.stop().await.unwrap();
    until_followed(&looking, "y", &["a"], true).await;
    until_followed(&looking, "x", &["b"], true).await;
    // Of two candidates in one process the server has no name.
    let e = follower(&second, "y", "e").await;
    until_followed(&looking, "y", &["a"], false).await;
    for candidate in [x, y, b, c, e] {
        candidate.stop().await.unwrap();
    }
    server.until(SHOWN, |locks| locks == 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_of_many_elections_says_so_with_one_lock() {
    const MANY: usize = 40;
    let server = Server::start(TTL).await;
    let (first, second) = (store(&server.url()), store(&server.url()));
    let mut all = Vec::new();
    for number in 0..MANY {
        let leader = candidate(&first, &format!("job-{number}"), "a").await;
        leader.wait_for_leadership().await.unwrap();
        all.push(leader);
    }
    for number in 0..MANY {
        all.push(follower(&second, &format!("job-{number}"), "b").await);
    }
    until_followed(&first, "job-0", &[], false).await;
    server.until(SHOWN, |locks| locks == 1).await;
    // As many as it can show.
    for many in all.drain(MANY + 2..) {
        many.stop().await.unwrap();
    }
    until_followed(&first, "job-0", &["b"], true).await;
    until_followed(&first, "job-2", &[], true).await;
    server.until(SHOWN, |locks| locks == 2).await;
}
