//! Bytes that are nearly right. Nothing here is random: a failure happens again.

use std::time::Duration;

use bellwether_cluster::transport::{Dialler, Limits, Security, Welcome};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::raw::{CREDIT, HELLO, REQUEST, SUBSCRIBE, WELCOME, frame, hello_body, send};
use crate::support::{CLUSTER, NODE, Node, client, is_well, name, secret, serve_with};

/// A generator that is good enough to spread mutations (SplitMix64).
struct Spread(u64);

impl Spread {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % bound as u64).unwrap()
    }
}

/// One of the ways to spoil a stream of bytes.
fn mutated(original: &[u8], spread: &mut Spread) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for _ in 0..=spread.below(3) {
        let at = spread.below(bytes.len());
        match spread.below(6) {
            0 => bytes[at] ^= 1 << spread.below(8),
            1 => bytes[at] = u8::try_from(spread.below(256)).unwrap(),
            2 => bytes.truncate(at.max(1)),
            3 => bytes.insert(at, 0xff),
            4 => drop(bytes.remove(at)),
            _ => bytes.extend_from_within(at..),
        }
        if bytes.is_empty() {
            bytes.push(0);
        }
    }
    bytes
}

/// Short: whether the node answers such bytes does not matter, only what becomes of it.
fn limits() -> Limits {
    let mut limits = Limits::default();
    limits.handshake = Duration::from_millis(200);
    limits.silence = Duration::from_millis(200);
    limits
}

#[tokio::test]
async fn no_bytes_harm_a_listener() {
    let hello = frame(HELLO, 0, &hello_body(1, &client()));
    let requests = [
        hello.clone(),
        frame(REQUEST, 1, b"x"),
        frame(SUBSCRIBE, 2, b"count 40"),
        frame(CREDIT, 2, &[8]),
        frame(18, 2, b""),
        frame(REQUEST, 3, b"y"),
    ]
    .concat();
    let proof = [frame(HELLO, 0, &hello_body(1, &client())), frame(3, 0, &[7; 32])].concat();
    let mut spread = Spread(1);
    for (security, original) in [(Security::LoopbackOnly, requests), (secret("0123456789abcdef"), proof)] {
        let served = serve_with(Node::default(), security.clone(), limits()).await;
        for round in 0..400 {
            let mut socket = send(&served.address, &mutated(&original, &mut spread)).await;
            let _ = socket.shutdown().await;
            let mut rest = Vec::new();
            let ended = timeout(Duration::from_secs(10), socket.read_to_end(&mut rest)).await;
            assert!(ended.is_ok(), "round {round}: the connection does not end");
        }
        served.node.runs(0).await;
        if matches!(security, Security::LoopbackOnly) {
            is_well(&served).await;
        }
    }
}

#[tokio::test]
async fn no_bytes_harm_a_dialler() {
    let welcome = Welcome { node: NODE, name: name("a"), cluster: Some(CLUSTER) };
    let original = [
        frame(WELCOME, 0, &postcard::to_stdvec(&welcome).unwrap()),
        frame(23, 0, b""),
        frame(21, 1, b"an answer"),
    ]
    .concat();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let dialler = Dialler::new(Security::LoopbackOnly).unwrap().with_limits(limits());
    let mut spread = Spread(2);
    for round in 0..400 {
        let bytes = mutated(&original, &mut spread);
        let node = async {
            let (mut socket, _) = listener.accept().await.unwrap();
            let _ = socket.write_all(&bytes).await;
            let _ = socket.shutdown().await;
            let _ = timeout(Duration::from_secs(1), socket.read_to_end(&mut Vec::new())).await;
        };
        let hello = client();
        let dial = async {
            if let Ok(connection) = dialler.connect(&address, &hello).await {
                let _ = connection.call(b"x".to_vec(), Duration::from_secs(2)).await;
            }
        };
        let both = timeout(Duration::from_secs(10), async { tokio::join!(node, dial) }).await;
        assert!(both.is_ok(), "round {round}: the call does not end");
    }
}
