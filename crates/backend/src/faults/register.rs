//! A register that misbehaves below a real lease.

use std::sync::Arc;

use bellwether_core::{Bid, Candidate, Clock, ElectionName, Epoch, Incarnation, StoreError};

use super::{Faults, Op};
use crate::{
    Capabilities, Changes, Discarded, Finding, Found, FoundNote, Fut, Life, Note, Notes, Probing, Record,
    Register, Write, faults::Fault,
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

    /// The handle that says what goes wrong.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }
}

fn lost<V>(error: StoreError) -> Write<V> {
    if error.is_retryable() { Write::Unknown(error) } else { Write::Refused(error) }
}

impl<R: Register> Register for FaultyRegister<R> {
    type Version = R::Version;

    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn load<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Found<R::Version>, StoreError>> {
        let (inner, on) = (Arc::clone(&self.inner), on.clone());
        let call = move || -> Fut<'static, _> {
            let (inner, on) = (Arc::clone(&inner), on.clone());
            Box::pin(async move { inner.load(&on).await })
        };
        Box::pin(self.faults.meet(Op::Read, self.name(), call, Err))
    }

    fn write<'a>(
        &'a self,
        on: &'a ElectionName,
        at: Option<&'a R::Version>,
        new: &'a Record,
    ) -> Fut<'a, Write<R::Version>> {
        let (inner, on, at, new) = (Arc::clone(&self.inner), on.clone(), at.cloned(), new.clone());
        let call = move || -> Fut<'static, _> {
            let (inner, on, at, new) = (Arc::clone(&inner), on.clone(), at.clone(), new.clone());
            Box::pin(async move { inner.write(&on, at.as_ref(), &new).await })
        };
        Box::pin(self.faults.meet(Op::Write, self.name(), call, lost))
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

    fn epoch<'a>(
        &'a self,
        on: &'a ElectionName,
        replaced: Option<(&'a Record, &'a R::Version)>,
        least: Epoch,
    ) -> Fut<'a, Result<Epoch, StoreError>> {
        self.inner.epoch(on, replaced, least)
    }

    fn admit(&self, on: &ElectionName, bid: &Bid) -> Result<(), StoreError> {
        self.inner.admit(on, bid)
    }

    fn rehearse<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<(), StoreError>> {
        self.inner.rehearse(on)
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

    fn elections(&self) -> Fut<'_, Result<Vec<ElectionName>, StoreError>> {
        self.inner.elections()
    }

    fn notes(&self) -> Option<&dyn Notes> {
        self.inner.notes().map(|_| self as &dyn Notes)
    }

    fn checkup(&self, probing: Probing, clock: Arc<dyn Clock>) -> Fut<'_, Vec<Finding>> {
        self.inner.checkup(probing, clock)
    }

    fn danger_discard<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Discarded, StoreError>> {
        self.inner.danger_discard(on)
    }

    #[cfg(unix)]
    fn crash_proof(&self, on: &ElectionName, who: &Candidate) -> Vec<std::os::fd::OwnedFd> {
        self.inner.crash_proof(on, who)
    }
}

/// Notes are never delivered late or twice: they are a courtesy, and what is left to show is that losing one
/// breaks nothing.
impl<R: Register> Notes for FaultyRegister<R> {
    fn read<'a>(&'a self, on: &'a ElectionName, note: &'a Note) -> Fut<'a, Result<FoundNote, StoreError>> {
        Box::pin(async move {
            match self.note_fault().await {
                Some(error) => Err(error),
                None => self.inner_notes().read(on, note).await,
            }
        })
    }

    fn write<'a>(
        &'a self,
        on: &'a ElectionName,
        note: &'a Note,
        at: Option<u64>,
        bytes: &'a [u8],
    ) -> Fut<'a, Write<u64>> {
        Box::pin(async move {
            match self.note_fault().await {
                Some(error) => lost(error),
                None => self.inner_notes().write(on, note, at, bytes).await,
            }
        })
    }
}

impl<R: Register> FaultyRegister<R> {
    fn inner_notes(&self) -> &dyn Notes {
        self.inner.notes().expect("a register that had notes has them still")
    }

    /// The error that a note meets, if one is planned.
    async fn note_fault(&self) -> Option<StoreError> {
        let (latency, fault) = self.faults.take(Op::Note);
        if !latency.is_zero() {
            tokio::time::sleep(latency).await;
        }
        match fault {
            Fault::Fails(kind) => {
                Some(StoreError::new(kind, self.name(), "a fault was planned: it was not sent"))
            }
            _ => None,
        }
    }
}
