//! The listener's end of a connection: requests to the host, responses out.
//!
//! Each request runs in a task of its own, so that one that takes long delays no other. All of them end with the connection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};

use super::frame::{Fault, Frame, FrameReader, FrameWriter, Held, Kind, Outgoing, decode};
use super::hello::Hello;
use super::host::{Host, PartSender, room_for};
use super::limits::{
    BODY_MAX_BYTES, IN_FLIGHT_MAX, IN_FLIGHT_MAX_BYTES, QUEUED_MAX_BYTES, REASON_MAX_BYTES, WINDOW_PARTS,
};

/// Serves the requests of one dialler until the connection fails or the listener closes, and says why.
pub(super) async fn serve(
    mut reader: FrameReader,
    writer: FrameWriter,
    hello: Hello,
    host: Arc<dyn Host>,
    ping: Duration,
    mut closed: watch::Receiver<()>,
) -> Fault {
    let (queue, queued) = mpsc::unbounded_channel();
    let mut session = Session {
        host,
        hello: Arc::new(hello),
        last_id: 0,
        open: Arc::default(),
        room: Arc::new(Semaphore::new(QUEUED_MAX_BYTES)),
        queue,
        tasks: JoinSet::new(),
    };
    let fault = tokio::select! {
        fault = session.read_requests(&mut reader) => fault,
        fault = writer.write_queue(queued, ping) => fault,
        _ = closed.changed() => Fault::Closed,
    };
    // Waits until they have ended: a listener that is shut down leaves nothing behind that uses the host.
    session.tasks.shutdown().await;
    fault
}

struct Session {
    host: Arc<dyn Host>,
    hello: Arc<Hello>,
    last_id: u64,
    open: Arc<Mutex<Open>>,
    /// One permit for each byte that may wait to be written.
    room: Arc<Semaphore>,
    queue: mpsc::UnboundedSender<Outgoing>,
    /// Dropped with the session, which ends them.
    tasks: JoinSet<()>,
}

/// The requests that have no last response yet.
#[derive(Default)]
struct Open {
    requests: HashMap<u64, Request>,
    bytes: usize,
}

struct Request {
    bytes: usize,
    credit: Arc<Semaphore>,
    task: AbortHandle,
}

impl Open {
    fn remove(&mut self, id: u64) -> Option<Request> {
        let request = self.requests.remove(&id)?;
        self.bytes -= request.bytes;
        Some(request)
    }
}

fn locked(open: &Mutex<Open>) -> MutexGuard<'_, Open> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    async fn read_requests(&mut self, reader: &mut FrameReader) -> Fault {
        loop {
            let handled = match reader.read().await {
                Ok(frame) => self.handle(frame),
                Err(fault) => Err(fault),
            };
            if let Err(fault) = handled {
                return fault;
            }
            while self.tasks.try_join_next().is_some() {}
        }
    }

    fn handle(&mut self, frame: Frame) -> Result<(), Fault> {
        match frame.kind {
            Kind::Ping => Ok(()),
            Kind::Request | Kind::Subscribe => self.begin(frame),
            Kind::Cancel => {
                // It may be over already.
                if let Some(request) = locked(&self.open).remove(frame.id) {
                    request.task.abort();
                }
                Ok(())
            }
            Kind::Credit => {
                let more: u32 = decode(&frame.body, "a credit cannot be read")?;
                match locked(&self.open).requests.get(&frame.id) {
                    None => Ok(()),
                    Some(request) if fits(&request.credit, more) => {
                        request.credit.add_permits(more as usize);
                        Ok(())
                    }
                    Some(_) => Err(Fault::Malformed("a credit is for more than a window")),
                }
            }
            _ => Err(Fault::Malformed("a dialler does not send this kind of frame")),
        }
    }

    fn begin(&mut self, frame: Frame) -> Result<(), Fault> {
        if frame.id <= self.last_id {
            return Err(Fault::Malformed("a request has the id of an earlier one"));
        }
        self.last_id = frame.id;
        let bytes = frame.body.len();
        let credit = Arc::new(Semaphore::new(WINDOW_PARTS as usize));
        let reply = Reply { id: frame.id, open: Arc::clone(&self.open), queue: self.queue.clone() };
        let answer = self.answer(frame, Arc::clone(&credit), reply);
        // Held until the request is in the table: its task removes it from there.
        let mut open = locked(&self.open);
        if open.requests.len() >= IN_FLIGHT_MAX || open.bytes + bytes > IN_FLIGHT_MAX_BYTES {
            return Err(Fault::Malformed("there are more requests in flight than there may be"));
        }
        let task = self.tasks.spawn(answer);
        open.bytes += bytes;
        open.requests.insert(self.last_id, Request { bytes, credit, task });
        Ok(())
    }

    /// What the task of a request does.
    fn answer(&self, frame: Frame, credit: Arc<Semaphore>, reply: Reply) -> impl Future<Output = ()> + use<> {
        let (host, hello, room) = (Arc::clone(&self.host), Arc::clone(&self.hello), Arc::clone(&self.room));
        async move {
            let answered = if frame.kind == Kind::Request {
                host.serve(hello, frame.body).await
            } else {
                let (room, queue) = (Arc::clone(&room), reply.queue.clone());
                let parts = PartSender { id: frame.id, credit, room, queue };
                host.stream(hello, frame.body, parts).await.map(|()| Vec::new())
            };
            let (kind, body) = match answered {
                Ok(body) if body.len() <= BODY_MAX_BYTES => (Kind::Answer, body),
                Ok(body) => (Kind::Failure, too_long(body.len())),
                Err(reason) => (Kind::Failure, shortened(reason)),
            };
            let room = room_for(&room, body.len()).await;
            reply.send(kind, body, room.map_or(Held::Nothing, Held::Room));
        }
    }
}

fn fits(credit: &Semaphore, more: u32) -> bool {
    credit.available_permits() + more as usize <= WINDOW_PARTS as usize
}

fn too_long(bytes: usize) -> Vec<u8> {
    format!("the answer has {bytes} bytes, and {BODY_MAX_BYTES} are allowed: ask for less at once")
        .into_bytes()
}

fn shortened(reason: String) -> Vec<u8> {
    let mut reason = reason.into_bytes();
    reason.truncate(REASON_MAX_BYTES);
    reason
}

/// The last response to a request. Dropped without one, the host's code panicked, and the dialler must not wait for ever.
struct Reply {
    id: u64,
    open: Arc<Mutex<Open>>,
    queue: mpsc::UnboundedSender<Outgoing>,
}

impl Reply {
    fn send(&self, kind: Kind, body: Vec<u8>, held: Held) {
        // Out of the table first: the dialler may use the place as soon as it has the response. Not there: it was cancelled.
        if locked(&self.open).remove(self.id).is_some() {
            let _ = self.queue.send(Outgoing(Frame::new(kind, self.id, body), held));
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.send(Kind::Failure, b"the node failed while it served the request".to_vec(), Held::Nothing);
    }
}
