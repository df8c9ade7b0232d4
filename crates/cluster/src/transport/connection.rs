//! The dialler's end of a connection: requests out, responses to whoever waits for them.
//!
//! One task reads and writes the socket. Whoever calls puts a request into the queue and waits in the table. The task ends with the first
//! fault, and everybody in the table learns that the fate of their request is unknown. A request counts as sent once it is in the queue:
//! the socket may have any part of it.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::error::CallError;
use super::frame::{Fault, Frame, FrameReader, FrameWriter, Held, Kind, Outgoing, encode};
use super::hello::Welcome;
use super::limits::WINDOW_PARTS;
use super::table::{Place, State, Table, Waiting};

/// A connection to a node that said who it is. Clones share it; it closes when the last one is dropped.
#[derive(Clone)]
pub struct Connection(Arc<Inner>);

struct Inner {
    table: Arc<Table>,
    welcome: Welcome,
    peer: SocketAddr,
    task: AbortHandle,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("peer", &self.0.peer).field("welcome", &self.0.welcome).finish()
    }
}

impl Connection {
    pub(super) fn start(
        mut reader: FrameReader,
        writer: FrameWriter,
        welcome: Welcome,
        peer: SocketAddr,
        ping: Duration,
    ) -> Connection {
        let (queue, queued) = mpsc::unbounded_channel();
        let table = Arc::new(Table::new(queue));
        let ours = Arc::clone(&table);
        let task = tokio::spawn(async move {
            let fault = tokio::select! {
                fault = ours.read_responses(&mut reader) => fault,
                fault = writer.write_queue(queued, ping) => fault,
            };
            if fault.is_suspicious() {
                tracing::warn!(%peer, error = %fault, "connection closed");
            } else {
                tracing::debug!(%peer, error = %fault, "connection closed");
            }
            ours.close(&fault);
        });
        Connection(Arc::new(Inner { table, welcome, peer, task: task.abort_handle() }))
    }

    /// Who is at the other end.
    pub fn welcome(&self) -> &Welcome {
        &self.0.welcome
    }

    /// Where the other end is.
    pub fn peer(&self) -> SocketAddr {
        self.0.peer
    }

    /// Whether both are the same connection.
    pub fn is_same(&self, other: &Connection) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether requests can still be sent, as far as this side knows.
    pub fn is_open(&self) -> bool {
        matches!(*self.0.table.state(), State::Open { .. })
    }

    /// Returns when the connection has ended.
    pub async fn closed(&self) {
        self.0.table.queue.closed().await;
    }

    /// Ends the connection for all its clones. Whoever waits for an answer learns that the fate of the request is unknown.
    pub(crate) fn close(&self) {
        self.0.task.abort();
        self.0.table.close(&Fault::Left);
    }

    /// Whether any request was answered.
    pub(super) fn has_answered(&self) -> bool {
        self.0.table.has_answered.load(Ordering::Relaxed)
    }

    /// Sends a request and waits for its answer. Gives up after `limit`; dropped or given up, it tells the node not to go on.
    ///
    /// # Errors
    /// See [`CallError`]: each variant says what is known about the request.
    pub async fn call(&self, request: Vec<u8>, limit: Duration) -> Result<Vec<u8>, CallError> {
        let is_sent = AtomicBool::new(false);
        let answered = timeout(limit, async {
            let place = self.0.table.place(request.len()).await?;
            let (answer, answered) = oneshot::channel();
            let _in_flight = self.send(Kind::Request, request, Waiting::Call(answer), place)?;
            is_sent.store(true, Ordering::Relaxed);
            answered.await.unwrap_or_else(|_| Err(CallError::Unknown("the connection closed".to_owned())))
        });
        match answered.await {
            Ok(answered) => answered,
            Err(_) if is_sent.load(Ordering::Relaxed) => {
                Err(CallError::Unknown(format!("no answer within {limit:?}")))
            }
            Err(_) => Err(CallError::NotSent(format!("earlier requests took all of {limit:?}"))),
        }
    }

    /// Sends a request that is answered by a stream of parts. Does not wait for the first.
    ///
    /// # Errors
    /// When the request was not sent: the connection is closed, or has too many requests in flight.
    pub fn open_stream(&self, request: Vec<u8>) -> Result<PartStream, CallError> {
        let place = self.0.table.place_now(request.len())?;
        // One more for the end.
        let (part, parts) = mpsc::channel(WINDOW_PARTS as usize + 1);
        let in_flight = self.send(Kind::Subscribe, request, Waiting::Stream(part), place)?;
        Ok(PartStream { connection: self.clone(), in_flight, parts, owed: 0 })
    }

    fn send(
        &self,
        kind: Kind,
        request: Vec<u8>,
        waiting: Waiting,
        place: Place,
    ) -> Result<InFlight, CallError> {
        let table = Arc::clone(&self.0.table);
        let id = table.send(kind, request, waiting, place.clone())?;
        Ok(InFlight { table, id, _place: place })
    }
}

/// The parts that answer a request. Dropped, it tells the node to stop.
#[derive(Debug)]
pub struct PartStream {
    connection: Connection,
    in_flight: InFlight,
    parts: mpsc::Receiver<Result<Vec<u8>, CallError>>,
    /// Parts that were taken, and that the node does not know of.
    owed: u32,
}

impl PartStream {
    /// The next part; `None` after the last, and after an error. May be dropped and called again.
    ///
    /// # Errors
    /// [`CallError::Failed`] if the node ended the stream with an error, [`CallError::Unknown`] if the connection was lost.
    pub async fn next(&mut self) -> Option<Result<Vec<u8>, CallError>> {
        let part = self.parts.recv().await?;
        self.owed += 1;
        if self.owed >= WINDOW_PARTS / 2 && part.is_ok() {
            let credit = Frame::new(Kind::Credit, self.in_flight.id, encode(&self.owed));
            // Of no use if the connection is closed, which the next part says.
            let _ = self.connection.0.table.queue.send(Outgoing(credit, Held::Nothing));
            self.owed = 0;
        }
        Some(part)
    }
}

/// A request that was sent.
struct InFlight {
    table: Arc<Table>,
    id: u64,
    _place: Place,
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InFlight").field(&self.id).finish()
    }
}

impl Drop for InFlight {
    /// The cancellation enters the queue before the place is free: the node never counts more requests than this side.
    fn drop(&mut self) {
        if let State::Open { waiting, .. } = &mut *self.table.state()
            && waiting.remove(&self.id).is_some()
        {
            let _ =
                self.table.queue.send(Outgoing(Frame::new(Kind::Cancel, self.id, Vec::new()), Held::Nothing));
        }
    }
}
