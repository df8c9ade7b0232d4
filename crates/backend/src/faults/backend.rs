//! A whole backend that misbehaves towards whoever drives it.

use std::sync::Arc;

use bellwether_core::{Bid, Boot, Candidate, ElectionName, Error, Grant, Outcome, Parting, Request, Seen};

use super::{Faults, Op};
use crate::{Backend, Capabilities, Discarded, Finding, Followers, Fut, Notices, Past, Probing};

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

    /// The handle that says what goes wrong.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }
}

fn lost<T>(error: Error) -> Outcome<T> {
    if error.is_retryable() { Outcome::Unknown(error) } else { Outcome::Refused(error) }
}

/// Makes a call that can be made again and later out of one that borrows.
macro_rules! again {
    ($self:ident, $($owned:ident),* => |$inner:ident| $call:expr) => {{
        let $inner = Arc::clone(&$self.inner);
        $(let $owned = $owned.to_owned();)*
        move || -> Fut<'static, _> {
            let $inner = Arc::clone(&$inner);
            $(let $owned = $owned.clone();)*
            Box::pin(async move { $call.await })
        }
    }};
}

impl Backend for FaultyBackend {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn claim<'a>(&'a self, on: &'a ElectionName, bid: &'a Bid) -> Fut<'a, Outcome<Grant>> {
        let call = again!(self, on, bid => |inner| inner.claim(&on, &bid));
        Box::pin(self.faults.meet(Op::Write, self.name(), call, lost))
    }

    fn renew<'a>(&'a self, sent: Boot, held: &'a [(ElectionName, Grant)]) -> Fut<'a, Vec<Outcome<Grant>>> {
        let count = held.len();
        let call = again!(self, held => |inner| inner.renew(sent, &held));
        let lost = move |error: Error| (0..count).map(|_| lost(error.clone())).collect();
        Box::pin(self.faults.meet(Op::Write, self.name(), call, lost))
    }

    fn release<'a>(
        &'a self,
        on: &'a ElectionName,
        grant: &'a Grant,
        how: &'a Parting,
    ) -> Fut<'a, Outcome<()>> {
        let call = again!(self, on, grant, how => |inner| inner.release(&on, &grant, &how));
        Box::pin(self.faults.meet(Op::Write, self.name(), call, lost))
    }

    fn observe<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Seen, Error>> {
        let call = again!(self, on => |inner| inner.observe(&on));
        Box::pin(self.faults.meet(Op::Read, self.name(), call, Err))
    }

    fn followers<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Option<Followers>, Error>> {
        let call = again!(self, on => |inner| inner.followers(&on));
        Box::pin(self.faults.meet(Op::Read, self.name(), call, Err))
    }

    fn request<'a>(&'a self, on: &'a ElectionName, what: &'a Request) -> Fut<'a, Outcome<()>> {
        let call = again!(self, on, what => |inner| inner.request(&on, &what));
        Box::pin(self.faults.meet(Op::Write, self.name(), call, lost))
    }

    fn follow(&self, on: &ElectionName, interested: bool) {
        self.inner.follow(on, interested);
    }

    fn unwatched(&self, on: &ElectionName) -> Option<Error> {
        self.inner.unwatched(on)
    }

    fn retire(&self, on: &ElectionName, who: &Candidate) {
        self.inner.retire(on, who);
    }

    fn signals(&self) -> Notices {
        self.inner.signals()
    }

    fn change_runtime(&self) -> Result<(), Error> {
        self.inner.change_runtime()
    }

    fn remember<'a>(&'a self, on: &'a ElectionName, past: &'a Past) -> Fut<'a, Result<(), Error>> {
        let call = again!(self, on, past => |inner| inner.remember(&on, &past));
        Box::pin(self.faults.meet(Op::Note, self.name(), call, Err))
    }

    fn history<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Vec<Past>, Error>> {
        let call = again!(self, on => |inner| inner.history(&on));
        Box::pin(self.faults.meet(Op::Note, self.name(), call, Err))
    }

    fn elections(&self) -> Fut<'_, Result<Vec<ElectionName>, Error>> {
        let call = again!(self, => |inner| inner.elections());
        Box::pin(self.faults.meet(Op::Read, self.name(), call, Err))
    }

    fn checkup(&self, probing: Probing) -> Fut<'_, Vec<Finding>> {
        self.inner.checkup(probing)
    }

    fn danger_discard<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Discarded, Error>> {
        self.inner.danger_discard(on)
    }

    #[cfg(unix)]
    fn crash_proof(&self, on: &ElectionName, who: &Candidate) -> Vec<std::os::fd::OwnedFd> {
        self.inner.crash_proof(on, who)
    }
}
