//! The requests of one connection that wait for their end, and the bounds on them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::error::CallError;
use super::frame::{Fault, Frame, FrameReader, Held, Kind, Outgoing};
use super::limits::{BODY_MAX_BYTES, IN_FLIGHT_MAX, IN_FLIGHT_MAX_BYTES};

/// Room for a request, until it is over and written. Clones are of the same place.
#[derive(Clone)]
pub(super) struct Place(#[expect(dead_code, reason = "held, not read")] Arc<[OwnedSemaphorePermit; 2]>);

/// Who waits for what.
pub(super) struct Table {
    state: Mutex<State>,
    pub(super) queue: mpsc::UnboundedSender<Outgoing>,
    slots: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    pub(super) has_answered: AtomicBool,
}

pub(super) enum State {
    Open { last_id: u64, waiting: HashMap<u64, Waiting> },
    Closed(String),
}

pub(super) enum Waiting {
    Call(oneshot::Sender<Result<Vec<u8>, CallError>>),
    Stream(mpsc::Sender<Result<Vec<u8>, CallError>>),
}

impl Waiting {
    /// Tells whoever waits how it ended. They may be gone.
    fn end(self, outcome: Result<Vec<u8>, CallError>) {
        match (self, outcome) {
            (Waiting::Call(answer), outcome) => drop(answer.send(outcome)),
            // The end of the channel is the end of the stream. There is a place for an error: parts never take the last one.
            (Waiting::Stream(_), Ok(_)) => {}
            (Waiting::Stream(part), Err(error)) => drop(part.try_send(Err(error))),
        }
    }
}

impl Table {
    pub(super) fn new(queue: mpsc::UnboundedSender<Outgoing>) -> Table {
        Table {
            state: Mutex::new(State::Open { last_id: 0, waiting: HashMap::new() }),
            queue,
            slots: Arc::new(Semaphore::new(IN_FLIGHT_MAX)),
            bytes: Arc::new(Semaphore::new(IN_FLIGHT_MAX_BYTES)),
            has_answered: AtomicBool::new(false),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for room for a request of this size.
    pub(super) async fn place(&self, bytes: usize) -> Result<Place, CallError> {
        let bytes = checked(bytes)?;
        let slot = Arc::clone(&self.slots).acquire_owned().await.map_err(|_| self.closed())?;
        let bytes = Arc::clone(&self.bytes).acquire_many_owned(bytes).await.map_err(|_| self.closed())?;
        Ok(Place(Arc::new([slot, bytes])))
    }

    pub(super) fn place_now(&self, bytes: usize) -> Result<Place, CallError> {
        let bytes = checked(bytes)?;
        let full = |_| match &*self.state() {
            State::Closed(why) => CallError::NotSent(why.clone()),
            State::Open { .. } => {
                CallError::NotSent("too many requests are in flight on this connection".to_owned())
            }
        };
        let slot = Arc::clone(&self.slots).try_acquire_owned().map_err(full)?;
        let bytes = Arc::clone(&self.bytes).try_acquire_many_owned(bytes).map_err(full)?;
        Ok(Place(Arc::new([slot, bytes])))
    }

    fn closed(&self) -> CallError {
        match &*self.state() {
            State::Closed(why) => CallError::NotSent(why.clone()),
            State::Open { .. } => CallError::NotSent("the connection closes".to_owned()),
        }
    }

    /// Puts a request into the queue. Under one lock with its id: ids rise on the wire.
    pub(super) fn send(
        &self,
        kind: Kind,
        request: Vec<u8>,
        one: Waiting,
        place: Place,
    ) -> Result<u64, CallError> {
        match &mut *self.state() {
            State::Closed(why) => Err(CallError::NotSent(why.clone())),
            State::Open { last_id, waiting } => {
                let id = *last_id + 1;
                let frame = Frame::new(kind, id, request);
                self.queue
                    .send(Outgoing(frame, Held::Place(place)))
                    .map_err(|_| CallError::NotSent("the connection closes".to_owned()))?;
                *last_id = id;
                waiting.insert(id, one);
                Ok(id)
            }
        }
    }

    /// Hands responses to those who wait, until the connection fails.
    pub(super) async fn read_responses(&self, reader: &mut FrameReader) -> Fault {
        loop {
            let handled = match reader.read().await {
                Ok(frame) => self.handle(frame),
                Err(fault) => Err(fault),
            };
            if let Err(fault) = handled {
                return fault;
            }
        }
    }

    fn handle(&self, frame: Frame) -> Result<(), Fault> {
        if frame.kind == Kind::Ping {
            return Ok(());
        }
        let mut state = self.state();
        let State::Open { last_id, waiting } = &mut *state else { return Err(Fault::Closed) };
        if frame.id == 0 || frame.id > *last_id {
            return Err(Fault::Malformed("a response is to no request"));
        }
        self.has_answered.store(true, Ordering::Relaxed);
        match frame.kind {
            Kind::Part => match waiting.get(&frame.id) {
                Some(Waiting::Stream(part)) if part.capacity() <= 1 => {
                    Err(Fault::Malformed("a stream has more parts than it may"))
                }
                Some(Waiting::Stream(part)) => {
                    // Nobody else sends, so there is a place. A reader that is gone has its cancellation on the way.
                    let _ = part.try_send(Ok(frame.body));
                    Ok(())
                }
                Some(Waiting::Call(_)) => Err(Fault::Malformed("a call is answered by parts")),
                // Cancelled, and the node has not heard of it yet.
                None => Ok(()),
            },
            Kind::Answer | Kind::Failure => {
                if let Some(one) = waiting.remove(&frame.id) {
                    one.end(match frame.kind {
                        Kind::Answer => Ok(frame.body),
                        _ => Err(CallError::Failed(String::from_utf8_lossy(&frame.body).into_owned())),
                    });
                }
                Ok(())
            }
            _ => Err(Fault::Malformed("a listener does not send this kind of frame")),
        }
    }

    pub(super) fn close(&self, fault: &Fault) {
        let before = std::mem::replace(&mut *self.state(), State::Closed(fault.to_string()));
        self.slots.close();
        self.bytes.close();
        if let State::Open { waiting, .. } = before {
            for one in waiting.into_values() {
                one.end(Err(CallError::Unknown(fault.to_string())));
            }
        }
    }
}

fn checked(bytes: usize) -> Result<u32, CallError> {
    u32::try_from(bytes).ok().filter(|bytes| *bytes as usize <= BODY_MAX_BYTES).ok_or_else(|| {
        CallError::NotSent(format!(
            "the request has {bytes} bytes, and {BODY_MAX_BYTES} are allowed: send less at once"
        ))
    })
}
