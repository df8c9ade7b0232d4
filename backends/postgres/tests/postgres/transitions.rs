//! Every row of the table of states, with its callbacks, on a real server. The comments name the rows: state, input, next state.

use std::time::Duration;

use bellwether_support::servers::postgres::Server;

use crate::support::diary::Diary;

const TTL: Duration = Duration::from_millis(1_500);
const LEADERS_SESSION: &str =
    "SELECT pid::int8 FROM pg_stat_activity WHERE application_name LIKE 'bellwether/% lock %'";

async fn plain(server: &Server, id: &str) -> Diary {
    Diary::start(&server.url(), id, TTL, |builder| builder).await
}

/// Ends a session of the leader.
async fn terminate(server: &Server, whose: &str) {
    let sql = format!(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name {whose}"
    );
    assert_eq!(server.number(&sql).await, 1);
}

fn assert_order(words: &[String], wanted: &[&str]) {
    let mut rest = words.iter();
    for word in wanted {
        assert!(rest.any(|found| found.starts_with(word)), "no {word} in its place in {words:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn started_acquired_denied_released_and_stopped() {
    let server = Server::start(TTL).await;
    // Stopped, start, Follower; Follower, attempt, Acquiring; Acquiring, succeeded, Leader.
    let mut a = plain(&server, "a").await;
    let words = a.until("acquired").await;
    assert_order(&words, &["stopped>follower", "follower>acquiring", "acquiring>leader", "acquired"]);
    // Acquiring, failed, Follower.
    let mut b = plain(&server, "b").await;
    let words = b.until("acquire_failed").await;
    assert_order(&words, &["follower>acquiring", "acquire_failed"]);
    assert!(!words.iter().any(|word| word.starts_with("error") || word.starts_with("lost")), "{words:?}");
    // Leader, healthy, Leader: renewals change nothing.
    tokio::time::sleep(2 * TTL).await;
    assert_eq!(a.rest(), Vec::<String>::new());
    // Leader, step down, Releasing; Releasing, succeeded, Follower: with auto-reacquire.
    a.election.step_down().await.unwrap();
    let words = a.until("released").await;
    assert_order(&words, &["leader>releasing", "released"]);
    let words = b.until("acquired").await;
    assert_order(&words, &["acquiring>leader", "acquired"]);
    // Follower, stop, Stopped.
    a.election.stop().await.unwrap();
    let words = a.until("stopped").await;
    assert!(!words.iter().any(|word| word.starts_with("lost")), "{words:?}");
    // Leader, stop, Releasing; Releasing, succeeded, Stopped.
    b.election.stop().await.unwrap();
    let words = b.until("stopped").await;
    assert_order(&words, &["leader>releasing", "released", "stopped"]);
    // Releasing, succeeded, Stopped: step-down without auto-reacquire.
    let mut c = Diary::start(&server.url(), "c", TTL, |builder| builder.auto_reacquire(false)).await;
    c.until("acquired").await;
    c.election.step_down().await.unwrap();
    assert_order(&c.until("stopped").await, &["leader>releasing", "released", "stopped"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminated_session_of_the_leader_is_lost_and_that_of_its_presence_is_not() {
    let server = Server::start(TTL).await;
    let mut a = plain(&server, "a").await;
    a.until("acquired").await;
    // B: replaced, and renewals go on.
    terminate(&server, "LIKE 'bellwether% presence'").await;
    tokio::time::sleep(2 * TTL).await;
    assert!(a.election.is_leader());
    assert!(!a.rest().iter().any(|word| word.starts_with("lost") || word.contains("leader>")));
    // A: Leader, failed, Follower without a grace, and then Leader again under a higher epoch.
    let before = a.election.epoch();
    terminate(&server, "LIKE 'bellwether/% lock %'").await;
    let words = a.until("acquired").await;
    assert_order(&words, &["lost connection", "leader>follower", "follower>acquiring", "acquired"]);
    assert!(a.election.epoch() > before);
    a.election.stop().await.unwrap();
    // Leader, failed, Stopped: without auto-reacquire.
    let mut b = Diary::start(&server.url(), "b", TTL, |builder| builder.auto_reacquire(false)).await;
    b.until("acquired").await;
    terminate(&server, "LIKE 'bellwether/b lock %'").await;
    assert_order(&b.until("stopped").await, &["lost connection", "leader>stopped", "stopped"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grace_suspends_and_resumes_under_a_new_epoch_or_loses() {
    let mut server = Server::start(TTL).await;
    let graceful = |grace: Duration| {
        let url = server.url();
        async move { Diary::start(&url, "a", TTL, |builder| builder.reconnect_grace(grace)).await }
    };
    // Leader, failed, Reconnecting; Reconnecting, succeeded, Leader.
    let mut a = graceful(Duration::from_secs(15)).await;
    a.until("acquired").await;
    let before = a.election.epoch();
    terminate(&server, "LIKE 'bellwether/% lock %'").await;
    let words = a.until("resumed").await;
    assert_order(&words, &["leader>reconnecting", "suspended connection", "reconnecting>leader", "resumed"]);
    assert!(!words.iter().any(|word| word.starts_with("lost")), "{words:?}");
    assert!(a.election.epoch() > before, "a new epoch");
    a.election.stop().await.unwrap();
    // Reconnecting, stop, Stopped.
    let mut a = graceful(Duration::from_secs(15)).await;
    a.until("acquired").await;
    server.down("INT");
    a.until("suspended").await;
    assert!(!a.election.is_leader());
    a.election.stop().await.unwrap();
    assert_order(&a.until("stopped").await, &["stopped"]);
    // Reconnecting, grace over, Follower.
    server.up().await;
    let mut a = Diary::start(&server.url(), "a", TTL, |builder| builder.reconnect_grace(TTL / 2)).await;
    a.until("acquired").await;
    server.down("INT");
    let words = a.until("lost").await;
    assert_order(&words, &["leader>reconnecting", "suspended", "lost"]);
    a.election.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_while_acquiring_are_errors_and_no_loss() {
    let mut server = Server::start(TTL).await;
    server.down("INT");
    // Acquiring, error, Follower.
    let mut a = plain(&server, "a").await;
    let words = a.until("error").await;
    assert_order(&words, &["follower>acquiring", "error"]);
    assert!(!words.iter().any(|word| word.starts_with("lost")), "nothing was held: {words:?}");
    server.up().await;
    a.until("acquired").await;
    a.election.stop().await.unwrap();
    // Acquiring, stop, Stopped: also while the server says nothing at all.
    server.signal("STOP");
    let mut b = plain(&server, "b").await;
    b.until("follower>acquiring").await;
    b.election.stop().await.unwrap();
    b.until("stopped").await;
    server.signal("CONT");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_without_an_answer_ends_stopped_and_says_that_nobody_confirmed_it() {
    let server = Server::start(TTL).await;
    let mut a = plain(&server, "a").await;
    a.until("acquired").await;
    // Releasing, failed, Stopped: the server's process does not answer.
    let pid = server.number(LEADERS_SESSION).await.to_string();
    let kill = |signal: &str| std::process::Command::new("kill").args([signal, &pid]).status().unwrap();
    kill("-STOP");
    let stopped = a.election.stop().await;
    let words = a.until("stopped").await;
    kill("-CONT");
    assert_order(&words, &["leader>releasing", "stopped"]);
    assert!(!words.contains(&"released".to_owned()), "confirmed by nobody: {words:?}, {stopped:?}");
    // Nobody is kept out for good.
    plain(&server, "b").await.until("acquired").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callback_that_panics_is_an_error_and_costs_no_leadership() {
    let server = Server::start(TTL).await;
    let panics = |_: bellwether_election::Event| -> () { panic!("on purpose") };
    let mut a = Diary::start(&server.url(), "a", TTL, |builder| builder.on_acquired(panics)).await;
    assert_order(&a.until("error").await, &["acquiring>leader", "error"]);
    tokio::time::sleep(2 * TTL).await;
    assert!(a.election.is_leader());
    assert!(!a.rest().iter().any(|word| word.starts_with("lost")));
}
