//! What answers on a listener.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use super::frame::{Frame, Held, Kind, Outgoing};
use super::hello::{Hello, Refused, Welcome};
use super::limits::BODY_MAX_BYTES;

/// A node, as its listener sees it.
///
/// The futures are dropped when whoever asked no longer waits, when the connection ends, and when the listener shuts down.
pub trait Host: Send + Sync + 'static {
    /// Whether this dialler may come in. It has authenticated itself. The listener checks the cluster and the intended node against the
    /// welcome by [`Hello::check`]; a host checks what only it knows. Must not block.
    ///
    /// # Errors
    /// The reason, which the dialler is told.
    fn greet(&self, hello: &Hello) -> Result<Welcome, Refused>;

    /// Answers a request. An error becomes [`CallError::Failed`](super::CallError::Failed) at the caller.
    fn serve(&self, hello: Arc<Hello>, request: Vec<u8>) -> BoxFuture<'static, Result<Vec<u8>, String>>;

    /// Answers a request by any number of parts. The stream ends when the future does.
    fn stream(
        &self,
        hello: Arc<Hello>,
        request: Vec<u8>,
        parts: PartSender,
    ) -> BoxFuture<'static, Result<(), String>> {
        let _ = (hello, request, parts);
        Box::pin(async { Err("this node has no streams".to_owned()) })
    }
}

/// Sends the parts of one stream.
#[derive(Debug)]
pub struct PartSender {
    pub(super) id: u64,
    /// One permit for each part that the reader has room for.
    pub(super) credit: Arc<Semaphore>,
    /// One permit for each byte that may wait to be written on this connection.
    pub(super) room: Arc<Semaphore>,
    pub(super) queue: mpsc::UnboundedSender<Outgoing>,
}

impl PartSender {
    /// Sends a part, in order. Waits while the reader is behind.
    ///
    /// # Errors
    /// When the reader is gone.
    ///
    /// # Panics
    /// If the part is longer than 8 MiB.
    pub async fn send(&self, part: Vec<u8>) -> Result<(), Gone> {
        assert!(part.len() <= BODY_MAX_BYTES, "a part of {} bytes does not fit into a frame", part.len());
        // Credit first: room that is held while a slow reader thinks would be missing to every other request.
        let credit = self.credit.acquire().await.map_err(|_| Gone)?;
        let room = room_for(&self.room, part.len()).await.ok_or(Gone)?;
        credit.forget();
        self.queue.send(Outgoing(Frame::new(Kind::Part, self.id, part), Held::Room(room))).map_err(|_| Gone)
    }
}

/// Waits until so many more bytes may be queued.
pub(super) async fn room_for(room: &Arc<Semaphore>, bytes: usize) -> Option<OwnedSemaphorePermit> {
    let bytes = u32::try_from(bytes).expect("bodies are bounded");
    Arc::clone(room).acquire_many_owned(bytes).await.ok()
}

/// Whoever reads the stream is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("whoever reads the stream is gone")
    }
}

impl std::error::Error for Gone {}
