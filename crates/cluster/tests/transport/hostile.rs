//! Peers that do not keep to the protocol, or stop.

use std::time::Duration;

use bellwether_cluster::transport::{CallError, Connection, DialCause, Dialler, Limits, Security, Welcome};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::raw::{
    ANSWER, CREDIT, HELLO, PART, REQUEST, SUBSCRIBE, frame, hello_body, play, receive, send, until_closed,
    welcomed,
};
use crate::support::{CLUSTER, NODE, Node, ask, client, dialler, is_well, name, serve, serve_with, soon};

/// A connection to a node that the test plays.
async fn played(dialler: &Dialler) -> (Connection, TcpStream) {
    let welcome = Welcome { node: NODE, name: name("a"), cluster: Some(CLUSTER) };
    let (address, accepted) = play(&welcome).await;
    let hello = client();
    let (connection, socket) =
        soon(async { tokio::join!(dialler.connect(&address, &hello), accepted) }).await;
    (connection.unwrap(), socket)
}

/// Only the head of a frame that claims a body of this size.
fn claim(kind: u8, body_bytes: u32) -> Vec<u8> {
    [&(9 + body_bytes).to_be_bytes()[..], &[kind], &1_u64.to_be_bytes()].concat()
}

#[tokio::test]
async fn before_the_hello_a_listener_takes_16_kib_and_not_a_byte_more() {
    let served = serve().await;
    // It is closed for its length alone, before any of the body is there.
    assert!(until_closed(&mut send(&served.address, &claim(HELLO, (16 << 10) + 1)).await).await.is_empty());
    assert!(until_closed(&mut send(&served.address, &claim(HELLO, u32::MAX - 9)).await).await.is_empty());
    // One that is as long as it may be is read, and is no hello.
    assert!(
        until_closed(&mut send(&served.address, &frame(HELLO, 0, &[b'x'; 16 << 10])).await).await.is_empty()
    );
    is_well(&served).await;
}

#[tokio::test]
async fn after_the_hello_a_listener_takes_8_mib_and_not_a_byte_more() {
    let served = serve().await;
    let mut socket = welcomed(&served.address, &client()).await;
    socket.write_all(&claim(REQUEST, (8 << 20) + 1)).await.unwrap();
    assert!(until_closed(&mut socket).await.is_empty());
    is_well(&served).await;
}

#[tokio::test]
async fn a_dialler_takes_no_longer_frames_either() {
    let (connection, mut socket) = played(&dialler()).await;
    let node = async {
        receive(&mut socket).await.expect("the request");
        socket.write_all(&claim(ANSWER, (8 << 20) + 1)).await.unwrap();
        socket
    };
    let (answer, _socket) = soon(async { tokio::join!(ask(&connection, "x"), node) }).await;
    assert!(matches!(&answer, Err(CallError::Unknown(why)) if why.contains("8388609")), "{answer:?}");

    // And before the welcome.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let node = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        receive(&mut socket).await.expect("the hello");
        socket.write_all(&claim(crate::raw::WELCOME, (16 << 10) + 1)).await.unwrap();
        socket
    };
    let hello = client();
    let dialler = dialler();
    let (dialled, _socket) = soon(async { tokio::join!(dialler.connect(&address, &hello), node) }).await;
    assert!(matches!(dialled.unwrap_err().cause, DialCause::Failed(why) if why.contains("16385")));
}

#[tokio::test]
async fn a_connection_that_ends_in_the_middle_of_the_answer_leaves_the_call_unknown() {
    let (connection, mut socket) = played(&dialler()).await;
    let node = async {
        let (kind, id, body) = receive(&mut socket).await.expect("the request");
        assert_eq!((kind, body), (REQUEST, b"x".to_vec()));
        let answer = frame(ANSWER, id, b"an answer");
        socket.write_all(&answer[..answer.len() - 3]).await.unwrap();
        drop(socket);
    };
    let (answer, ()) = soon(async { tokio::join!(ask(&connection, "x"), node) }).await;
    assert!(matches!(&answer, Err(CallError::Unknown(why)) if why.contains("middle")), "{answer:?}");
    // From here on, nothing leaves.
    assert!(matches!(soon(ask(&connection, "y")).await, Err(CallError::NotSent(_))));
}

#[tokio::test]
async fn a_dialler_that_breaks_off_in_the_middle_of_a_request_is_forgotten() {
    let served = serve().await;
    let mut socket = welcomed(&served.address, &client()).await;
    socket.write_all(&frame(REQUEST, 1, b"never")).await.unwrap();
    served.node.runs(1).await;
    socket.write_all(&frame(REQUEST, 2, b"never")[..15]).await.unwrap();
    drop(socket);
    served.node.runs(0).await;
    is_well(&served).await;
}

#[tokio::test]
async fn a_listener_closes_connections_that_break_the_rules_of_requests() {
    let served = serve().await;
    let credit = |id, parts: u32| frame(CREDIT, id, &postcard::to_stdvec(&parts).unwrap());
    let too_many: Vec<u8> = (1..=257).flat_map(|id| frame(REQUEST, id, b"never")).collect();
    for (case, bytes) in [
        ("an id twice", [frame(REQUEST, 1, b"never"), frame(REQUEST, 1, b"never")].concat()),
        ("an id that falls", [frame(REQUEST, 2, b"never"), frame(REQUEST, 1, b"never")].concat()),
        ("too many requests", too_many),
        ("more credit than a window", [frame(SUBSCRIBE, 1, b"stay 0"), credit(1, 1)].concat()),
        ("all the credit there is", [frame(SUBSCRIBE, 1, b"stay 0"), credit(1, u32::MAX)].concat()),
        ("a credit that is none", frame(CREDIT, 1, b"\xff\xff\xff\xff\xff\xff")),
        ("a kind that there is not", frame(99, 1, b"")),
        ("a listener's kind", frame(ANSWER, 1, b"")),
        ("a second hello", frame(HELLO, 0, &hello_body(1, &client()))),
        ("a frame that is too short", vec![0, 0, 0, 8, REQUEST, 0, 0, 0, 0, 0, 0, 0, 1]),
    ] {
        let mut socket = welcomed(&served.address, &client()).await;
        // The node may have closed it before all of it was written.
        let _ = socket.write_all(&bytes).await;
        assert!(until_closed(&mut socket).await.is_empty(), "{case}");
        served.node.runs(0).await;
    }
    is_well(&served).await;
}

#[tokio::test]
async fn a_dialler_closes_connections_that_break_the_rules_of_responses() {
    for (case, bytes) in [
        ("an answer to nothing", frame(ANSWER, 2, b"")),
        ("an answer to zero", frame(ANSWER, 0, b"")),
        ("parts to a call", frame(PART, 1, b"")),
        ("a dialler's kind", frame(REQUEST, 1, b"")),
        ("a kind that there is not", frame(99, 1, b"")),
    ] {
        let (connection, mut socket) = played(&dialler()).await;
        let node = async {
            receive(&mut socket).await.expect("the request");
            socket.write_all(&bytes).await.unwrap();
            socket
        };
        let (answer, _socket) = soon(async { tokio::join!(ask(&connection, "x"), node) }).await;
        assert!(matches!(answer, Err(CallError::Unknown(_))), "{case}: {answer:?}");
    }
}

#[tokio::test]
async fn a_node_that_sends_more_parts_than_were_asked_for_is_closed() {
    let (connection, mut socket) = played(&dialler()).await;
    let mut stream = connection.open_stream(b"x".to_vec()).unwrap();
    receive(&mut socket).await.expect("the request");
    for _ in 0..17 {
        socket.write_all(&frame(PART, 1, b"part")).await.unwrap();
    }
    soon(connection.closed()).await;
    for _ in 0..16 {
        assert_eq!(soon(stream.next()).await, Some(Ok(b"part".to_vec())));
    }
    assert!(matches!(soon(stream.next()).await, Some(Err(CallError::Unknown(_)))));
}

#[tokio::test]
async fn a_handshake_that_is_not_finished_in_time_is_closed() {
    let mut limits = Limits::default();
    assert_eq!(limits.handshake, Duration::from_secs(5));
    limits.handshake = Duration::from_millis(100);
    for security in [Security::LoopbackOnly, crate::support::secret("0123456789abcdef")] {
        let served = serve_with(Node::default(), security, limits).await;
        let hello = frame(HELLO, 0, &hello_body(1, &client()));
        for sent in [&[][..], &hello[..4], &hello[..hello.len() - 1]] {
            assert!(until_closed(&mut send(&served.address, sent).await).await.is_empty());
        }
    }
}

#[tokio::test]
async fn a_node_that_accepts_and_says_nothing_is_given_up() {
    let mut limits = Limits::default();
    limits.handshake = Duration::from_millis(100);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let dialler = dialler().with_limits(limits);
    let error = soon(dialler.connect(&address, &client())).await.unwrap_err();
    assert_eq!(error.cause, DialCause::TimedOut(limits.handshake));
}

#[tokio::test]
async fn a_peer_that_falls_silent_is_noticed_by_both_sides() {
    let mut limits = Limits::default();
    limits.ping = Duration::from_millis(50);
    limits.silence = Duration::from_millis(200);
    let served = serve_with(Node::default(), Security::LoopbackOnly, limits).await;
    // It reads the pings, and sends none.
    let mut socket = welcomed(&served.address, &client()).await;
    socket.write_all(&frame(REQUEST, 1, b"never")).await.unwrap();
    served.node.runs(1).await;
    assert!(until_closed(&mut socket).await.is_empty());
    served.node.runs(0).await;

    let dialler = Dialler::new(Security::LoopbackOnly).unwrap().with_limits(limits);
    let (connection, _socket) = played(&dialler).await;
    let answer = soon(ask(&connection, "x")).await;
    assert!(matches!(&answer, Err(CallError::Unknown(why)) if why.contains("silent")), "{answer:?}");
}

#[tokio::test]
async fn a_peer_that_stops_reading_blocks_nobody_else_and_is_closed() {
    let mut limits = Limits::default();
    limits.silence = Duration::from_millis(500);
    let served = serve_with(Node::default(), Security::LoopbackOnly, limits).await;
    let mut socket = welcomed(&served.address, &client()).await;
    // Far more than the buffers of a socket hold.
    for id in 1..=16 {
        socket.write_all(&frame(REQUEST, id, b"long 8000000")).await.unwrap();
    }
    // It sends pings all the while: only what it does not read tells that it is stuck.
    let pings = async {
        while socket.write_all(&frame(crate::raw::PING, 0, b"")).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let others = async {
        for _ in 0..20 {
            is_well(&served).await;
        }
    };
    soon(async { tokio::join!(pings, others) }).await;
    served.node.runs(0).await;
}
