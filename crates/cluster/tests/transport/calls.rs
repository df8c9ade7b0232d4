//! Requests and answers on a connection that works.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bellwether_cluster::transport::{CallError, Dialler, Limits, Security};
use futures_util::future::join_all;

use crate::support::{
    CLUSTER, NODE, Node, PATIENCE, ask, client, connect, is_well, name, serve, serve_with, soon,
};

const MAX_BYTES: usize = 8 << 20;

#[tokio::test]
async fn requests_on_one_connection_are_answered_in_the_order_in_which_they_are_done() {
    let served = serve().await;
    let connection = connect(&served).await;
    let slow = ask(&connection, "wait first");
    let quick = async {
        served.node.runs(1).await;
        assert_eq!(ask(&connection, "second").await, Ok("second".to_owned()));
        ask(&connection, "go").await
    };
    let (slow, quick) = soon(async { tokio::join!(slow, quick) }).await;
    assert_eq!((slow, quick), (Ok("first".to_owned()), Ok(String::new())));
}

#[tokio::test]
async fn a_dialler_learns_whom_it_reached_and_the_host_what_for() {
    let served = serve().await;
    let connection = connect(&served).await;
    let welcome = connection.welcome();
    assert_eq!((welcome.node, &welcome.name, welcome.cluster), (NODE, &name("a"), Some(CLUSTER)));
    assert_eq!(connection.peer(), served.listener.local_address());
    assert_eq!(soon(ask(&connection, "purpose")).await, Ok("Client".to_owned()));
}

#[tokio::test]
async fn an_error_of_the_host_is_an_answer_and_a_panic_is_too() {
    let served = serve().await;
    let connection = connect(&served).await;
    assert_eq!(
        soon(ask(&connection, "fail try later")).await,
        Err(CallError::Failed("try later".to_owned()))
    );
    let Err(CallError::Failed(why)) = soon(ask(&connection, "panic")).await else { panic!("no failure") };
    assert!(why.contains("failed"), "{why}");
    assert_eq!(soon(ask(&connection, "still here")).await, Ok("still here".to_owned()));
}

#[tokio::test]
async fn the_longest_request_and_answer_pass_and_one_byte_more_is_refused_without_harm() {
    let served = serve().await;
    let connection = connect(&served).await;
    let longest = vec![b'x'; MAX_BYTES];
    assert_eq!(soon(connection.call(longest.clone(), PATIENCE)).await, Ok(longest.clone()));
    let longer = [longest, vec![b'x']].concat();
    assert!(matches!(soon(connection.call(longer, PATIENCE)).await, Err(CallError::NotSent(_))));
    let answer = soon(ask(&connection, &format!("long {}", MAX_BYTES + 1))).await;
    assert!(matches!(&answer, Err(CallError::Failed(why)) if why.contains("8388609")), "{answer:?}");
    assert_eq!(soon(ask(&connection, "still here")).await, Ok("still here".to_owned()));
}

#[tokio::test]
async fn a_call_that_is_not_answered_in_time_is_unknown_and_the_host_stops_working_on_it() {
    let served = serve().await;
    let connection = connect(&served).await;
    let limit = Duration::from_millis(50);
    let called = soon(connection.call(b"never".to_vec(), limit)).await;
    assert!(matches!(&called, Err(CallError::Unknown(why)) if why.contains("50ms")), "{called:?}");
    served.node.runs(0).await;
    assert_eq!(soon(ask(&connection, "still here")).await, Ok("still here".to_owned()));
}

#[tokio::test]
async fn a_call_that_is_dropped_is_dropped_at_the_host() {
    let served = serve().await;
    let connection = connect(&served).await;
    {
        let call = connection.call(b"never".to_vec(), PATIENCE);
        tokio::select! {
            _ = call => panic!("it is never answered"),
            () = served.node.runs(1) => {}
        }
    }
    served.node.runs(0).await;
}

#[tokio::test]
async fn more_calls_than_may_be_in_flight_wait_for_their_turn() {
    let served = serve().await;
    let connection = connect(&served).await;
    let calls = join_all((0..300).map(|_| ask(&connection, "wait x")));
    let release = async {
        served.node.runs(256).await;
        // Those that still wait for a place fail without having been sent.
        let late = connection.call(b"late".to_vec(), Duration::from_millis(20)).await;
        assert!(matches!(late, Err(CallError::NotSent(_))), "{late:?}");
        served.node.go.notify_waiters();
        served.node.runs(44).await;
        served.node.go.notify_waiters();
    };
    let (answers, ()) = soon(async { tokio::join!(calls, release) }).await;
    assert!(answers.iter().all(|answer| *answer == Ok("x".to_owned())));
    assert_eq!(served.node.most.load(Ordering::SeqCst), 256);
}

#[tokio::test]
async fn large_requests_share_the_memory_of_their_connection() {
    let served = serve().await;
    let connection = connect(&served).await;
    let large = || [b"wait ".to_vec(), vec![b'x'; MAX_BYTES - 5]].concat();
    let calls = join_all((0..6).map(|_| connection.call(large(), PATIENCE)));
    let release = async {
        served.node.runs(4).await;
        served.node.go.notify_waiters();
        served.node.runs(2).await;
        served.node.go.notify_waiters();
    };
    let (answers, ()) = soon(async { tokio::join!(calls, release) }).await;
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(served.node.most.load(Ordering::SeqCst), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutting_a_listener_down_ends_its_connections_and_what_the_host_does_for_them() {
    let served = serve().await;
    let connection = connect(&served).await;
    let calls = join_all((0..200).map(|_| ask(&connection, "never")));
    let node = Arc::clone(&served.node);
    let shutdown = async {
        node.runs(200).await;
        served.listener.shutdown().await;
        assert_eq!(*node.running.borrow(), 0);
    };
    let (called, ()) = soon(async { tokio::join!(calls, shutdown) }).await;
    assert!(called.iter().all(|call| matches!(call, Err(CallError::Unknown(_)))), "{called:?}");
    soon(connection.closed()).await;
    assert!(!connection.is_open());
    assert!(matches!(soon(ask(&connection, "late")).await, Err(CallError::NotSent(_))));
    assert!(tokio::net::TcpStream::connect(&served.address).await.is_err());
}

#[tokio::test]
async fn dropping_the_last_clone_closes_the_connection() {
    let served = serve().await;
    let connection = connect(&served).await;
    let other = connection.clone();
    drop(connection);
    assert_eq!(soon(ask(&other, "x")).await, Ok("x".to_owned()));
    let stream = other.open_stream(b"stay 0".to_vec()).unwrap();
    served.node.runs(1).await;
    drop(other);
    // A stream keeps it open too.
    assert_eq!(*served.node.running.borrow(), 1);
    drop(stream);
    served.node.runs(0).await;
}

#[tokio::test]
async fn an_idle_connection_stays_open_by_pings() {
    let mut limits = Limits::default();
    limits.ping = Duration::from_millis(20);
    limits.silence = Duration::from_millis(400);
    let served = serve_with(Node::default(), Security::LoopbackOnly, limits).await;
    let dialler = Dialler::new(Security::LoopbackOnly).unwrap().with_limits(limits);
    let connection = soon(dialler.connect(&served.address, &client())).await.unwrap();
    tokio::time::sleep(limits.silence * 3).await;
    assert!(connection.is_open());
    assert_eq!(soon(ask(&connection, "x")).await, Ok("x".to_owned()));
    is_well(&served).await;
}
