//! Frames on a socket: lengths that are checked before anything is kept, MACs where there is a secret, and a limit on silence.
//!
//! A [`Fault`] ends the connection. The reader and the writer are of no use after one.

use std::fmt;
use std::io;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::timeout;

use super::limits::{HANDSHAKE_BODY_MAX_BYTES, Limits};
use super::secret::{Seal, TAG_BYTES};
use super::table::Place;

/// The half of a connection that is read.
pub(super) type ReadHalf = Box<dyn AsyncRead + Send + Unpin>;
/// The half of a connection that is written.
pub(super) type WriteHalf = Box<dyn AsyncWrite + Send + Unpin>;

/// Length, kind and id.
pub(super) const HEAD_BYTES: usize = 4 + AFTER_LENGTH_BYTES;
/// Kind and id.
const AFTER_LENGTH_BYTES: usize = 1 + 8;
/// As much is read, and allocated, at once: a length that a peer merely claims costs nothing.
const CHUNK_BYTES: usize = 64 << 10;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Hello = 1,
    Challenge = 2,
    Proof = 3,
    Welcome = 4,
    Refused = 5,
    /// Asks for one answer.
    Request = 16,
    /// Asks for parts and an answer.
    Subscribe = 17,
    /// Whoever asked no longer waits.
    Cancel = 18,
    /// So many more parts are welcome.
    Credit = 19,
    /// A response, and there is more.
    Part = 20,
    /// A response, and the last one.
    Answer = 21,
    /// The request failed, for this reason. The last response.
    Failure = 22,
    /// Nothing: the connection lives.
    Ping = 23,
}

impl Kind {
    fn from_byte(byte: u8) -> Result<Kind, Fault> {
        use Kind::*;
        let all = [
            Hello, Challenge, Proof, Welcome, Refused, Request, Subscribe, Cancel, Credit, Part, Answer,
            Failure, Ping,
        ];
        all.into_iter()
            .find(|kind| *kind as u8 == byte)
            .ok_or(Fault::Malformed("a frame has an unknown kind"))
    }
}

/// A frame without its length and its MAC.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) kind: Kind,
    pub(super) id: u64,
    pub(super) body: Vec<u8>,
}

impl Frame {
    pub(super) fn new(kind: Kind, id: u64, body: Vec<u8>) -> Frame {
        Frame { kind, id, body }
    }
}

/// Why a connection cannot go on.
#[derive(Debug)]
pub(super) enum Fault {
    /// The peer closed it between two frames.
    Closed,
    /// The peer closed it in the middle of one.
    Truncated,
    /// This side closed it.
    Left,
    /// A frame claims to be longer than it may be.
    TooLong { body_bytes: usize, max_bytes: usize },
    /// The peer does not keep to the protocol.
    Malformed(&'static str),
    /// A MAC is wrong: the frame was altered, inserted, replayed, or is not in its place.
    Forged,
    /// Nothing came, or nothing could be written.
    Silent(Duration),
    /// The socket failed, or the encryption on it.
    Io(io::Error),
}

impl Fault {
    /// Whether it shows a mistake or an attack, in place of a network that fails as networks do.
    pub(super) fn is_suspicious(&self) -> bool {
        match self {
            Fault::TooLong { .. } | Fault::Malformed(_) | Fault::Forged => true,
            // What rustls says about a peer that it does not trust, or does not understand.
            Fault::Io(error) => error.kind() == io::ErrorKind::InvalidData,
            Fault::Closed | Fault::Truncated | Fault::Left | Fault::Silent(_) => false,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Closed => f.write_str("the peer closed the connection"),
            Fault::Left => f.write_str("this side closed the connection"),
            Fault::Truncated => f.write_str("the connection ended in the middle of a frame"),
            Fault::TooLong { body_bytes, max_bytes } => {
                write!(f, "a frame claims a body of {body_bytes} bytes, and {max_bytes} are allowed")
            }
            Fault::Malformed(what) => write!(f, "{what}: the peer is not a node or client of this version"),
            Fault::Forged => {
                f.write_str("a frame has a wrong MAC: it was altered, repeated or inserted on the way")
            }
            Fault::Silent(limit) => write!(f, "the peer was silent for {limit:?}"),
            Fault::Io(error) => write!(f, "{error}"),
        }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Fault::Truncated,
            _ => Fault::Io(error),
        }
    }
}

/// Reads frames.
pub(super) struct FrameReader {
    io: BufReader<ReadHalf>,
    seal: Option<Seal>,
    body_max_bytes: usize,
    silence: Duration,
}

impl FrameReader {
    /// For the handshake; [`set_body_max`](FrameReader::set_body_max) allows more after it.
    pub(super) fn new(io: ReadHalf, limits: &Limits) -> FrameReader {
        FrameReader {
            io: BufReader::with_capacity(CHUNK_BYTES / 4, io),
            seal: None,
            body_max_bytes: HANDSHAKE_BODY_MAX_BYTES,
            silence: limits.silence,
        }
    }

    /// Expects a MAC on every frame from here on.
    pub(super) fn set_seal(&mut self, seal: Seal) {
        self.seal = Some(seal);
    }

    pub(super) fn set_body_max(&mut self, body_max_bytes: usize) {
        self.body_max_bytes = body_max_bytes;
    }

    /// The next frame. Must not be dropped before it is done: the connection is out of step then.
    pub(super) async fn read(&mut self) -> Result<Frame, Fault> {
        let mut head = Vec::with_capacity(HEAD_BYTES);
        self.fill(&mut head, HEAD_BYTES).await.map_err(|fault| match fault {
            Fault::Truncated if head.is_empty() => Fault::Closed,
            // An alert is shorter than the head of a frame.
            Fault::Truncated if speaks_tls(&head) => SPEAKS_TLS,
            other => other,
        })?;
        let body_bytes = self.body_bytes(&head)?;
        let kind = Kind::from_byte(head[4])?;
        let id = u64::from_be_bytes(head[5..HEAD_BYTES].try_into().expect("eight bytes"));
        let mut body = Vec::new();
        self.fill(&mut body, body_bytes).await?;
        if self.seal.is_some() {
            let mut tag = Vec::with_capacity(TAG_BYTES);
            self.fill(&mut tag, TAG_BYTES).await?;
            let seal = self.seal.as_mut().expect("it was there a line ago");
            seal.verify(&head, &body, &tag).map_err(|_| Fault::Forged)?;
        }
        Ok(Frame { kind, id, body })
    }

    fn body_bytes(&self, head: &[u8]) -> Result<usize, Fault> {
        if speaks_tls(head) {
            return Err(SPEAKS_TLS);
        }
        let length = u32::from_be_bytes(head[..4].try_into().expect("four bytes")) as usize;
        let around = AFTER_LENGTH_BYTES + if self.seal.is_some() { TAG_BYTES } else { 0 };
        match length.checked_sub(around) {
            None => Err(Fault::Malformed("a frame is too short")),
            Some(body_bytes) if body_bytes > self.body_max_bytes => {
                Err(Fault::TooLong { body_bytes, max_bytes: self.body_max_bytes })
            }
            Some(body_bytes) => Ok(body_bytes),
        }
    }

    /// Reads until there are so many bytes. The limit on silence begins anew with each arrival: a slow network is not a dead peer.
    async fn fill(&mut self, into: &mut Vec<u8>, bytes: usize) -> Result<(), Fault> {
        while into.len() < bytes {
            let missing = bytes - into.len();
            into.reserve(missing.min(CHUNK_BYTES));
            let mut io = (&mut self.io).take(missing as u64);
            match timeout(self.silence, io.read_buf(into)).await {
                Err(_) => return Err(Fault::Silent(self.silence)),
                Ok(Ok(0)) => return Err(Fault::Truncated),
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// The commonest mistake of all deserves its own words.
const SPEAKS_TLS: Fault = Fault::Malformed("the peer speaks TLS, and this side was not told to");

/// TLS records begin like this. As a length, it is more than 300 MB: no frame does.
fn speaks_tls(head: &[u8]) -> bool {
    matches!(head, [0x14..=0x17, 0x03, ..])
}

/// A frame that waits to be written, with what it takes of the bounds of its connection until then.
pub(super) struct Outgoing(pub(super) Frame, pub(super) Held);

/// Held until a frame is written, and never read.
#[expect(dead_code, reason = "held, not read")]
pub(super) enum Held {
    /// A short frame, of which there is one for each that holds something.
    Nothing,
    /// Bytes of a listener's responses.
    Room(OwnedSemaphorePermit),
    /// The place of a request, also where nobody waits for its answer any more: what was given up is in memory until it is written.
    Place(Place),
}

/// Writes frames.
pub(super) struct FrameWriter {
    io: WriteHalf,
    seal: Option<Seal>,
    silence: Duration,
    buffer: Vec<u8>,
}

impl FrameWriter {
    pub(super) fn new(io: WriteHalf, limits: &Limits) -> FrameWriter {
        FrameWriter { io, seal: None, silence: limits.silence, buffer: Vec::new() }
    }

    /// Adds a MAC to every frame from here on.
    pub(super) fn set_seal(&mut self, seal: Seal) {
        self.seal = Some(seal);
    }

    /// Adds a frame to what [`flush`](FrameWriter::flush) writes.
    pub(super) fn push(&mut self, frame: &Frame) {
        let tag_bytes = if self.seal.is_some() { TAG_BYTES } else { 0 };
        let length =
            u32::try_from(AFTER_LENGTH_BYTES + frame.body.len() + tag_bytes).expect("bodies are bounded");
        let start = self.buffer.len();
        self.buffer.extend_from_slice(&length.to_be_bytes());
        self.buffer.push(frame.kind as u8);
        self.buffer.extend_from_slice(&frame.id.to_be_bytes());
        self.buffer.extend_from_slice(&frame.body);
        if let Some(seal) = &mut self.seal {
            let tag = seal.sign(&self.buffer[start..start + HEAD_BYTES], &frame.body);
            self.buffer.extend_from_slice(tag.as_ref());
        }
    }

    /// Writes what was pushed.
    pub(super) async fn flush(&mut self) -> Result<(), Fault> {
        let mut written = 0;
        while written < self.buffer.len() {
            match timeout(self.silence, self.io.write(&self.buffer[written..])).await {
                Err(_) => return Err(Fault::Silent(self.silence)),
                Ok(Ok(0)) => return Err(Fault::Closed),
                Ok(Ok(bytes)) => written += bytes,
                Ok(Err(error)) => return Err(error.into()),
            }
        }
        self.buffer.clear();
        // One large frame must not cost its memory for as long as the connection lives.
        self.buffer.shrink_to(CHUNK_BYTES);
        match timeout(self.silence, self.io.flush()).await {
            Err(_) => Err(Fault::Silent(self.silence)),
            Ok(flushed) => flushed.map_err(Fault::from),
        }
    }

    /// Writes frames as they come, and a ping when there are none for a while. Returns when the connection fails, or nobody can send.
    pub(super) async fn write_queue(
        mut self,
        mut queue: mpsc::UnboundedReceiver<Outgoing>,
        ping: Duration,
    ) -> Fault {
        loop {
            let mut held = Vec::new();
            match timeout(ping, queue.recv()).await {
                Err(_) => self.push(&Frame::new(Kind::Ping, 0, Vec::new())),
                Ok(None) => return Fault::Closed,
                Ok(Some(Outgoing(frame, holds))) => {
                    self.push(&frame);
                    held.push(holds);
                }
            }
            while self.buffer.len() < CHUNK_BYTES {
                let Ok(Outgoing(frame, holds)) = queue.try_recv() else { break };
                self.push(&frame);
                held.push(holds);
            }
            if let Err(fault) = self.flush().await {
                return fault;
            }
        }
    }
}

/// A value as postcard has it.
pub(super) fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_stdvec(value).expect("what is said in the handshake has lengths, and can be encoded")
}

/// The reverse, of all the bytes.
pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8], fault: &'static str) -> Result<T, Fault> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        _ => Err(Fault::Malformed(fault)),
    }
}
