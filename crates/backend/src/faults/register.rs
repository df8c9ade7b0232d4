//! A register that misbehaves below a real lease.

use std::sync::Arc;

use bellwether_core::{Bid, Candidate, Clock, ElectionName, Epoch, Incarnation, StoreError};

use super::{Faults, Op, again};
use crate::{
    Capabilities, Changes, Discarded, Finding, Found, FoundNote, Life, Note, Past, Probing, Record, Register,
    Write,
};

/// A [`Register`] whose calls meet what its [`Faults`] say. News comes through untouched.
pub struct FaultyRegister<R> {
    inner: Arc<R>,
    faults: Faults,
}

impl<R: Register> FaultyRegister<R> {
    /// This register, with these faults.
    pub fn new(inner: R, faults: Faults) -> FaultyRegister<R> {
        FaultyRegister { inner: Arc::new(inner), faults }
    }
}

impl<R: Register> Register for FaultyRegister<R> {
    type Version = R::Version;

    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn load(&self, on: &ElectionName) -> Result<Found<R::Version>, StoreError> {
        let call = again!(self, on => |inner| inner.load(&on));
        self.faults.meet(Op::Read, self.name(), call, Err).await
    }

    async fn write(&self, on: &ElectionName, at: Option<&R::Version>, new: &Record) -> Write<R::Version> {
        let at = at.cloned();
        let call = again!(self, on, at, new => |inner| inner.write(&on, at.as_ref(), &new));
        self.faults.meet(Op::Write, self.name(), call, Write::failed).await
    }

    fn follow(&self, on: &ElectionName) {
        self.inner.follow(on);
    }

    fn unfollow(&self, on: &ElectionName) {
        self.inner.unfollow(on);
    }

    fn changes(&self) -> Changes<R::Version> {
        self.inner.changes()
    }

    fn change_runtime(&self) -> Result<(), StoreError> {
        self.inner.change_runtime()
    }

    async fn epoch(
        &self,
        on: &ElectionName,
        replaced: Option<(&Record, &R::Version)>,
        least: Epoch,
    ) -> Result<Epoch, StoreError> {
        self.inner.epoch(on, replaced, least).await
    }

    fn admit(&self, on: &ElectionName, bid: &Bid) -> Result<(), StoreError> {
        self.inner.admit(on, bid)
    }

    async fn rehearse(&self, on: &ElectionName) -> Result<(), StoreError> {
        self.inner.rehearse(on).await
    }

    fn unwatched(&self, on: &ElectionName) -> Option<StoreError> {
        self.inner.unwatched(on)
    }

    fn life(&self, on: &ElectionName, record: &Record) -> Life {
        self.inner.life(on, record)
    }

    fn takes_away(&self, on: &ElectionName) -> bool {
        self.inner.takes_away(on)
    }

    fn retire(&self, on: &ElectionName, who: Incarnation) {
        self.inner.retire(on, who);
    }

    async fn elections(&self) -> Result<Vec<ElectionName>, StoreError> {
        self.inner.elections().await
    }

    async fn read_note(&self, on: &ElectionName, note: &Note) -> Result<FoundNote, StoreError> {
        let call = again!(self, on, note => |inner| inner.read_note(&on, &note));
        self.faults.meet(Op::Note, self.name(), call, Err).await
    }

    async fn write_note(&self, on: &ElectionName, note: &Note, at: Option<u64>, bytes: &[u8]) -> Write<u64> {
        let call = again!(self, on, note, bytes => |inner| inner.write_note(&on, &note, at, &bytes));
        self.faults.meet(Op::Note, self.name(), call, Write::failed).await
    }

    async fn announce(&self, on: &ElectionName, past: &Past) {
        self.inner.announce(on, past).await;
    }

    async fn checkup(&self, probing: Probing<'_>, clock: &dyn Clock) -> Vec<Finding> {
        self.inner.checkup(probing, clock).await
    }

    async fn danger_discard(&self, on: &ElectionName) -> Result<Discarded, StoreError> {
        self.inner.danger_discard(on).await
    }

    #[cfg(unix)]
    fn crash_proof(&self, on: &ElectionName, who: &Candidate) -> Vec<std::os::fd::OwnedFd> {
        self.inner.crash_proof(on, who)
    }
}
