//! A whole backend that misbehaves towards whoever drives it.

use std::sync::Arc;

use bellwether_core::{
    Bid, Boot, ElectionName, Grant, Outcome, Pause, ReleaseOptions, Request, Seen, StoreError,
};

use super::{Faults, Op, again};
use crate::{Backend, Creation, Followers, Forward, Fut, Past};

/// A [`Backend`] whose calls meet what its [`Faults`] say. News comes through untouched.
pub struct FaultyBackend {
    inner: Arc<dyn Backend>,
    faults: Faults,
}

impl FaultyBackend {
    /// This backend, with these faults.
    pub fn new(inner: Arc<dyn Backend>, faults: Faults) -> FaultyBackend {
        FaultyBackend { inner, faults }
    }
}

impl Forward for FaultyBackend {
    fn inner(&self) -> &dyn Backend {
        &*self.inner
    }

    fn claim<'a>(&'a self, on: &'a ElectionName, bid: &'a Bid) -> Fut<'a, Outcome<Grant>> {
        let call = again!(self, on, bid => |inner| inner.claim(&on, &bid));
        Box::pin(self.faults.meet(Op::Write, self.inner.name(), call, Outcome::failed))
    }

    fn renew<'a>(&'a self, on: &'a ElectionName, grant: &'a Grant, sent: Boot) -> Fut<'a, Outcome<Grant>> {
        let call = again!(self, on, grant => |inner| inner.renew(&on, &grant, sent));
        Box::pin(self.faults.meet(Op::Write, self.inner.name(), call, Outcome::failed))
    }

    fn release<'a>(
        &'a self,
        on: &'a ElectionName,
        grant: &'a Grant,
        how: &'a ReleaseOptions,
    ) -> Fut<'a, Outcome<()>> {
        let call = again!(self, on, grant, how => |inner| inner.release(&on, &grant, &how));
        Box::pin(self.faults.meet(Op::Write, self.inner.name(), call, Outcome::failed))
    }

    fn observe<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Seen, StoreError>> {
        let call = again!(self, on => |inner| inner.observe(&on));
        Box::pin(self.faults.meet(Op::Read, self.inner.name(), call, Err))
    }

    fn followers<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Option<Followers>, StoreError>> {
        let call = again!(self, on => |inner| inner.followers(&on));
        Box::pin(self.faults.meet(Op::Read, self.inner.name(), call, Err))
    }

    fn request<'a>(&'a self, on: &'a ElectionName, what: &'a Request) -> Fut<'a, Outcome<()>> {
        let call = again!(self, on, what => |inner| inner.request(&on, &what));
        Box::pin(self.faults.meet(Op::Write, self.inner.name(), call, Outcome::failed))
    }

    fn pause<'a>(&'a self, on: &'a ElectionName, pause: Option<&'a Pause>) -> Fut<'a, Outcome<()>> {
        let pause = pause.cloned();
        let call = again!(self, on, pause => |inner| inner.pause(&on, pause.as_ref()));
        Box::pin(self.faults.meet(Op::Write, self.inner.name(), call, Outcome::failed))
    }

    fn remember<'a>(&'a self, on: &'a ElectionName, past: &'a Past) -> Fut<'a, Result<(), StoreError>> {
        let call = again!(self, on, past => |inner| inner.remember(&on, &past));
        Box::pin(self.faults.meet(Op::Note, self.inner.name(), call, Err))
    }

    fn history<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Vec<Past>, StoreError>> {
        let call = again!(self, on => |inner| inner.history(&on));
        Box::pin(self.faults.meet(Op::Note, self.inner.name(), call, Err))
    }

    fn elections(&self) -> Fut<'_, Result<Vec<ElectionName>, StoreError>> {
        let call = again!(self, => |inner| inner.elections());
        Box::pin(self.faults.meet(Op::Read, self.inner.name(), call, Err))
    }

    fn create_once<'a>(&'a self, name: &'a ElectionName, bytes: &'a [u8]) -> Fut<'a, Creation> {
        let call = again!(self, name, bytes => |inner| inner.create_once(&name, &bytes));
        Box::pin(self.faults.meet(Op::Note, self.inner.name(), call, Creation::failed))
    }

    fn read_once<'a>(&'a self, name: &'a ElectionName) -> Fut<'a, Result<Option<Vec<u8>>, StoreError>> {
        let call = again!(self, name => |inner| inner.read_once(&name));
        Box::pin(self.faults.meet(Op::Note, self.inner.name(), call, Err))
    }
}
