//! What fuzzing asks of frames and hellos, as [`crate::fuzz`] lists it.

use std::io::Cursor;
use std::sync::LazyLock;

use tokio::runtime::{Builder, Runtime};

use super::frame;
use super::frame::{Fault, Frame, FrameReader, HEAD_BYTES, Kind};
use super::hello::{Hello, Intended, Purpose, Refused, Unheard, Welcome, decode_hello, encode_hello};
use super::limits::{BODY_MAX_BYTES, HANDSHAKE_BODY_MAX_BYTES, Limits};
use super::secret::{Secret, Side, Transcript};
use crate::adapter::Lane;
use crate::names::{ClusterId, NodeId, NodeName};

/// Reads never wait, and a limit on their time needs a runtime all the same.
static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().enable_time().build().expect("a runtime without threads"));

/// A stream of frames: before the hello is done, after it, and under a secret that the sender does not know.
pub fn cluster_frames(bytes: &[u8]) {
    let secret = Secret::new(&[7; 32]).expect("long enough");
    let seal = Transcript::new(&secret, &[1; 32], &[2; 32], b"").seal(Side::Dialler);
    for (body_max_bytes, seal) in
        [(HANDSHAKE_BODY_MAX_BYTES, None), (BODY_MAX_BYTES, None), (BODY_MAX_BYTES, Some(seal))]
    {
        let is_sealed = seal.is_some();
        let mut reader = FrameReader::new(Box::new(Cursor::new(bytes.to_vec())), &Limits::default());
        reader.set_body_max(body_max_bytes);
        if let Some(seal) = seal {
            reader.set_seal(seal);
        }
        let (mut read_bytes, mut written) = (0, Vec::new());
        let fault = loop {
            match RUNTIME.block_on(reader.read()) {
                Ok(frame) => {
                    assert!(!is_sealed, "a frame without a MAC: {frame:?}");
                    assert!(frame.body.len() <= body_max_bytes);
                    read_bytes += HEAD_BYTES + frame.body.len();
                    written.extend(bytes_of(&frame));
                }
                Err(fault) => break fault,
            }
        };
        assert_eq!(written, bytes[..read_bytes], "what was read is what was there");
        assert_eq!(matches!(fault, Fault::Closed), read_bytes == bytes.len(), "{fault}");
    }
}

/// One frame of every kind, and two that claim too much.
pub fn cluster_frames_examples() -> Vec<Vec<u8>> {
    let kinds = [
        Kind::Hello,
        Kind::Challenge,
        Kind::Proof,
        Kind::Welcome,
        Kind::Refused,
        Kind::Request,
        Kind::Subscribe,
        Kind::Cancel,
        Kind::Credit,
        Kind::Part,
        Kind::Answer,
        Kind::Failure,
        Kind::Ping,
    ];
    let all: Vec<u8> =
        kinds.iter().flat_map(|kind| bytes_of(&Frame::new(*kind, 7, b"body".to_vec()))).collect();
    let mut long = bytes_of(&Frame::new(Kind::Request, u64::MAX, vec![0; 4]));
    long[..4].copy_from_slice(&(BODY_MAX_BYTES as u32 + 9).to_be_bytes());
    let mut endless = long.clone();
    endless[..4].fill(0xff);
    vec![all, long, endless]
}

fn bytes_of(frame: &Frame) -> Vec<u8> {
    let length = u32::try_from(HEAD_BYTES - 4 + frame.body.len()).expect("bodies are bounded");
    [&length.to_be_bytes()[..], &[frame.kind as u8], &frame.id.to_be_bytes(), &frame.body].concat()
}

/// The first thing that a stranger says, and what is answered.
pub fn cluster_hello(bytes: &[u8]) {
    match decode_hello(bytes) {
        Ok((nonce, hello)) => {
            let written = encode_hello(&hello, nonce);
            assert!(written.len() <= bytes.len(), "{hello:?}");
            assert!(
                matches!(decode_hello(&written), Ok(again) if again == (nonce, hello.clone())),
                "{hello:?}"
            );
            let welcome = Welcome { node: NodeId::from_random(1), name: named("app-1"), cluster: None };
            if let Intended::Node(node, _) = hello.intended {
                assert_eq!(hello.check(&welcome).is_ok(), node == welcome.node, "whom it was for: {hello:?}");
            }
        }
        Err(Unheard::Version(version)) => assert_eq!(bytes[4..6], version.to_be_bytes()),
        Err(Unheard::Fault(fault)) => assert!(fault.is_suspicious()),
    }
    if let Ok(welcome) = frame::decode::<Welcome>(bytes, "a welcome") {
        assert_eq!(frame::decode::<Welcome>(&frame::encode(&welcome), "a welcome").ok(), Some(welcome));
    }
    if let Ok(refused) = frame::decode::<Refused>(bytes, "a refusal") {
        assert!(!refused.to_string().is_empty());
        assert_eq!(frame::decode::<Refused>(&frame::encode(&refused), "a refusal").ok(), Some(refused));
    }
}

/// Hellos for every purpose, a welcome and a refusal.
pub fn cluster_hello_examples() -> Vec<Vec<u8>> {
    let node = (NodeId::from_random(1), named("app-1"));
    let cluster = Some(ClusterId::from_random(7));
    let raft = Hello {
        purpose: Purpose::Raft(Lane::Snapshot),
        cluster,
        from: Some((NodeId::from_random(2), named("app-2"))),
        intended: Intended::Node(node.0, node.1.clone()),
    };
    let forming = Hello {
        purpose: Purpose::Formation,
        cluster: None,
        intended: Intended::Name(node.1.clone()),
        ..raft.clone()
    };
    let client = Hello { purpose: Purpose::Client, cluster: None, from: None, intended: Intended::Anyone };
    let mut newer = encode_hello(&client, None);
    newer[5] += 1;
    vec![
        encode_hello(&raft, Some([7; 32])),
        encode_hello(&forming, None),
        encode_hello(&client, None),
        newer,
        frame::encode(&Welcome { node: node.0, name: node.1, cluster }),
        frame::encode(&Refused::WrongVersion { listener: 1, dialler: 2 }),
    ]
}

fn named(text: &str) -> NodeName {
    NodeName::new(text).expect("a name")
}
