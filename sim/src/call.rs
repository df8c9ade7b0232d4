//! A call on its way to the store, and the place where its answer is waited for.

use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use bellwether_backend::{Found, FoundNote, Note, Record, Write};
use bellwether_core::{Epoch, Incarnation, StoreError};

use crate::connection::lock;
use crate::invariants::exclusion::Knowledge;
use crate::key::ElectionKey;

/// What is asked of the store.
#[derive(Clone, Debug)]
pub enum RegisterCall {
    /// Read the record.
    Load,
    /// Write it at a version.
    Write {
        /// The version to be replaced; `None` creates.
        at: Option<u64>,
        /// What is written.
        record: Box<Record>,
    },
    /// Read a note.
    ReadNote(Note),
    /// Write a note.
    WriteNote(Note, Option<u64>, Vec<u8>),
}

/// What the store answers.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a world has few answers at a time, and most of them are records"
)]
pub enum RegisterAnswer {
    /// To [`RegisterCall::Load`].
    Loaded(Result<Found<u64>, StoreError>),
    /// To [`RegisterCall::Write`] and [`RegisterCall::WriteNote`].
    Written(Write<u64>),
    /// To [`RegisterCall::ReadNote`].
    NoteRead(Result<FoundNote, StoreError>),
}

impl RegisterCall {
    /// The answer that says nothing but that something went wrong.
    pub fn failure(&self, error: StoreError) -> RegisterAnswer {
        match self {
            RegisterCall::Load => RegisterAnswer::Loaded(Err(error)),
            RegisterCall::Write { .. } | RegisterCall::WriteNote(..) => {
                RegisterAnswer::Written(Write::Unknown(error))
            }
            RegisterCall::ReadNote(_) => RegisterAnswer::NoteRead(Err(error)),
        }
    }
}

/// On behalf of what a call is sent. The store does not know; the judges do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A claim by this incarnation.
    Claim(Incarnation),
    /// A renewal of exactly this grant.
    Renew(Incarnation, Epoch),
    /// The release of exactly this grant.
    Release(Incarnation, Epoch),
    /// A request to the leader of that epoch.
    Request(Epoch),
    /// A pause of the election, or its end.
    Pause,
    /// A look, or a watch: must write nothing.
    Look,
    /// Looking after sessions, on behalf of nobody.
    Tend,
}

/// Where an answer is waited for.
#[derive(Clone, Debug)]
pub struct Slot(Arc<Mutex<SlotState>>);

#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a world has few answers at a time, and most of them are records"
)]
enum SlotState {
    For(RegisterCall, Option<Waker>),
    Has(RegisterAnswer),
    Over,
}

impl Slot {
    pub(crate) fn new(ask: RegisterCall) -> Slot {
        Slot(Arc::new(Mutex::new(SlotState::For(ask, None))))
    }

    /// Fills it, unless it has been filled: the first answer counts.
    pub fn fill(&self, answer: RegisterAnswer) {
        let mut waiting = lock(&self.0);
        if matches!(*waiting, SlotState::For(..)) {
            waiting.answer(answer);
        }
    }

    /// Ends the wait with an error, unless it is over or has been answered.
    pub fn fail(&self, error: StoreError) {
        let mut waiting = lock(&self.0);
        if let SlotState::For(ask, _) = &*waiting {
            let failure = ask.failure(error);
            waiting.answer(failure);
        }
    }

    /// As [`Slot::fail`], and an answer that nobody has read yet is lost too.
    pub fn break_off(&self, error: StoreError) {
        let mut waiting = lock(&self.0);
        let failure = match &*waiting {
            SlotState::For(ask, _) => ask.failure(error),
            SlotState::Has(RegisterAnswer::Loaded(_)) => RegisterAnswer::Loaded(Err(error)),
            SlotState::Has(RegisterAnswer::Written(_)) => RegisterAnswer::Written(Write::Unknown(error)),
            SlotState::Has(RegisterAnswer::NoteRead(_)) => RegisterAnswer::NoteRead(Err(error)),
            SlotState::Over => return,
        };
        waiting.answer(failure);
    }

    /// Whether nobody waits here any more.
    pub fn is_over(&self) -> bool {
        Arc::strong_count(&self.0) == 1 || matches!(*lock(&self.0), SlotState::Over)
    }

    pub(crate) fn take(&self, waker: &Waker) -> Poll<RegisterAnswer> {
        let mut waiting = lock(&self.0);
        match std::mem::replace(&mut *waiting, SlotState::Over) {
            SlotState::Has(answer) => Poll::Ready(answer),
            SlotState::For(ask, _) => {
                *waiting = SlotState::For(ask, Some(waker.clone()));
                Poll::Pending
            }
            SlotState::Over => Poll::Pending,
        }
    }
}

impl SlotState {
    fn answer(&mut self, answer: RegisterAnswer) {
        if let SlotState::For(_, Some(waker)) = std::mem::replace(self, SlotState::Has(answer)) {
            waker.wake();
        }
    }
}

/// A call on its way out.
#[derive(Debug)]
pub struct OutgoingCall {
    /// Of which election.
    pub key: ElectionKey,
    /// What is asked.
    pub ask: RegisterCall,
    /// Where the answer is waited for.
    pub slot: Slot,
    /// What it is for.
    pub purpose: Purpose,
    /// What its sender knew when it left, if it is a claim.
    pub known: Option<Knowledge>,
}
