//! Answers in many parts.

use bellwether_cluster::transport::{CallError, PartStream};

use crate::support::{ask, connect, serve, soon};

async fn rest(stream: &mut PartStream) -> (Vec<String>, Option<CallError>) {
    let mut parts = Vec::new();
    loop {
        match soon(stream.next()).await {
            Some(Ok(part)) => parts.push(String::from_utf8(part).unwrap()),
            Some(Err(error)) => return (parts, Some(error)),
            None => return (parts, None),
        }
    }
}

fn numbers(count: u32) -> Vec<String> {
    (0..count).map(|number| number.to_string()).collect()
}

#[tokio::test]
async fn parts_arrive_in_order_and_then_the_stream_ends() {
    let served = serve().await;
    let connection = connect(&served).await;
    for count in [0, 1, 15, 16, 17, 1000] {
        let mut stream = connection.open_stream(format!("count {count}").into()).unwrap();
        assert_eq!(rest(&mut stream).await, (numbers(count), None));
        assert!(soon(stream.next()).await.is_none());
    }
    served.node.runs(0).await;
}

#[tokio::test]
async fn a_stream_that_fails_says_so_after_its_parts() {
    let served = serve().await;
    let connection = connect(&served).await;
    // As many as a reader has room for that has read nothing: the error still has a place.
    let mut stream = connection.open_stream(b"fail 16".to_vec()).unwrap();
    served.node.runs(0).await;
    assert_eq!(rest(&mut stream).await, (numbers(16), Some(CallError::Failed("no more".to_owned()))));
    assert!(soon(stream.next()).await.is_none());
}

#[tokio::test]
async fn a_stream_that_nobody_reads_holds_up_neither_calls_nor_other_streams() {
    let served = serve().await;
    let connection = connect(&served).await;
    let mut unread = connection.open_stream(b"count 100".to_vec()).unwrap();
    let mut read = connection.open_stream(b"count 100".to_vec()).unwrap();
    assert_eq!(rest(&mut read).await, (numbers(100), None));
    assert_eq!(soon(ask(&connection, "x")).await, Ok("x".to_owned()));
    // The host waits for the reader, and goes on when there is one.
    assert_eq!(*served.node.running.borrow(), 1);
    assert_eq!(rest(&mut unread).await, (numbers(100), None));
}

#[tokio::test]
async fn dropping_a_stream_ends_it_at_the_host() {
    let served = serve().await;
    let connection = connect(&served).await;
    let mut stream = connection.open_stream(b"stay 3".to_vec()).unwrap();
    assert_eq!(soon(stream.next()).await, Some(Ok(b"0".to_vec())));
    served.node.runs(1).await;
    drop(stream);
    served.node.runs(0).await;
    assert_eq!(soon(ask(&connection, "x")).await, Ok("x".to_owned()));
}

#[tokio::test]
async fn a_lost_connection_ends_a_stream_with_an_error() {
    let served = serve().await;
    let connection = connect(&served).await;
    let mut stream = connection.open_stream(b"stay 2".to_vec()).unwrap();
    assert_eq!(soon(stream.next()).await, Some(Ok(b"0".to_vec())));
    assert_eq!(soon(stream.next()).await, Some(Ok(b"1".to_vec())));
    soon(served.listener.shutdown()).await;
    assert!(matches!(soon(stream.next()).await, Some(Err(CallError::Unknown(_)))));
    assert!(soon(stream.next()).await.is_none());
    assert!(matches!(connection.open_stream(Vec::new()), Err(CallError::NotSent(_))));
}

#[tokio::test]
async fn more_streams_than_a_connection_takes_are_not_sent() {
    let served = serve().await;
    let connection = connect(&served).await;
    let open: Vec<_> = (0..256).map(|_| connection.open_stream(b"stay 0".to_vec()).unwrap()).collect();
    let more = connection.open_stream(b"stay 0".to_vec());
    assert!(matches!(&more, Err(CallError::NotSent(why)) if why.contains("too many")), "{more:?}");
    drop(open);
    assert_eq!(soon(ask(&connection, "x")).await, Ok("x".to_owned()));
}
