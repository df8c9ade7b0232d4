//! The callers that wait for an answer about one start of a candidate.

use bellwether_core::{Epoch, StoreError};

use super::Reply;
use crate::Error;

pub(super) struct Replies {
    start: Option<Reply<()>>,
    stop: Vec<Reply<()>>,
    /// Each with the leadership that it waits to see ended.
    step_down: Vec<(Epoch, Reply<()>)>,
    /// Each with the leadership that it asks about.
    validation: Vec<(Epoch, Reply<bool>)>,
}

impl Replies {
    pub(super) fn new(start: Reply<()>) -> Replies {
        Replies { start: Some(start), stop: Vec::new(), step_down: Vec::new(), validation: Vec::new() }
    }

    pub(super) fn await_stop(&mut self, reply: Reply<()>) {
        self.stop.push(reply);
    }

    /// Answers when a leadership of this epoch or a later one has ended.
    pub(super) fn await_end(&mut self, epoch: Epoch, reply: Reply<()>) {
        self.step_down.push((epoch, reply));
    }

    pub(super) fn await_validation(&mut self, epoch: Epoch, reply: Reply<bool>) {
        self.validation.retain(|(_, waiting)| !waiting.is_closed());
        self.validation.push((epoch, reply));
    }

    /// The candidate takes part, or stopped because of this failure.
    pub(super) fn started(&mut self, failure: Option<&StoreError>) {
        if let Some(reply) = self.start.take() {
            let _ = reply.send(failure.cloned().map_or(Ok(()), |error| Err(error.into())));
        }
    }

    /// The leadership of this epoch has ended.
    pub(super) fn ended(&mut self, epoch: Epoch) {
        for (_, reply) in self.step_down.extract_if(.., |(awaited, _)| *awaited <= epoch) {
            let _ = reply.send(Ok(()));
        }
    }

    /// The record was read back, or the store could not be asked; `leading` is the leadership held after that.
    pub(super) fn validated(&mut self, error: Option<&StoreError>, leading: Option<Epoch>) {
        for (epoch, reply) in self.validation.drain(..) {
            let _ = reply.send(match error {
                Some(error) => Err(error.clone().into()),
                None => Ok(leading == Some(epoch)),
            });
        }
    }

    /// The candidate has left, and nothing more can come.
    pub(super) fn left(&mut self, failure: Option<&StoreError>) {
        self.started(failure);
        self.ended(Epoch::MAX);
        for reply in self.stop.drain(..) {
            let _ = reply.send(Ok(()));
        }
        for (_, reply) in self.validation.drain(..) {
            let _ = reply.send(Err(Error::NotLeader));
        }
    }
}
