//! A call on its way to the store, and the place where its answer is waited for.

use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use bellwether_backend::{Found, FoundNote, Note, Record, Write};
use bellwether_core::{Epoch, Incarnation, StoreError};

use crate::connection::lock;
use crate::invariants::exclusion::Knowledge;

/// What is asked of the store.
#[derive(Clone, Debug)]
pub enum Ask {
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
pub enum Answer {
    /// To [`Ask::Load`].
    Loaded(Result<Found<u64>, StoreError>),
    /// To [`Ask::Write`] and [`Ask::WriteNote`].
    Written(Write<u64>),
    /// To [`Ask::ReadNote`].
    NoteRead(Result<FoundNote, StoreError>),
}

impl Ask {
    /// The answer that says nothing but that something went wrong.
    pub fn failure(&self, error: StoreError) -> Answer {
        match self {
            Ask::Load => Answer::Loaded(Err(error)),
            Ask::Write { .. } | Ask::WriteNote(..) => Answer::Written(Write::Unknown(error)),
            Ask::ReadNote(_) => Answer::NoteRead(Err(error)),
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
    /// A look, or a watch: must write nothing.
    Look,
    /// Looking after sessions, on behalf of nobody.
    Tend,
}

/// Where an answer is waited for.
#[derive(Clone, Debug)]
pub struct Slot(Arc<Mutex<Waiting>>);

#[derive(Debug)]
enum Waiting {
    For(Ask, Option<Waker>),
    Has(Answer),
    Over,
}

impl Slot {
    pub(crate) fn new(ask: Ask) -> Slot {
        Slot(Arc::new(Mutex::new(Waiting::For(ask, None))))
    }

    /// Fills it, unless it has been filled: the first answer counts.
    pub fn fill(&self, answer: Answer) {
        let mut waiting = lock(&self.0);
        if matches!(*waiting, Waiting::For(..)) {
            waiting.answer(answer);
        }
    }

    /// Ends the wait with an error, unless it is over or has been answered.
    pub fn fail(&self, error: StoreError) {
        let mut waiting = lock(&self.0);
        if let Waiting::For(ask, _) = &*waiting {
            let failure = ask.failure(error);
            waiting.answer(failure);
        }
    }

    /// As [`Slot::fail`], and an answer that nobody has read yet is lost too.
    pub fn break_off(&self, error: StoreError) {
        let mut waiting = lock(&self.0);
        let failure = match &*waiting {
            Waiting::For(ask, _) => ask.failure(error),
            Waiting::Has(Answer::Loaded(_)) => Answer::Loaded(Err(error)),
            Waiting::Has(Answer::Written(_)) => Answer::Written(Write::Unknown(error)),
            Waiting::Has(Answer::NoteRead(_)) => Answer::NoteRead(Err(error)),
            Waiting::Over => return,
        };
        waiting.answer(failure);
    }

    /// Whether nobody waits here any more.
    pub fn is_over(&self) -> bool {
        Arc::strong_count(&self.0) == 1 || matches!(*lock(&self.0), Waiting::Over)
    }

    pub(crate) fn take(&self, waker: &Waker) -> Poll<Answer> {
        let mut waiting = lock(&self.0);
        match std::mem::replace(&mut *waiting, Waiting::Over) {
            Waiting::Has(answer) => Poll::Ready(answer),
            Waiting::For(ask, _) => {
                *waiting = Waiting::For(ask, Some(waker.clone()));
                Poll::Pending
            }
            Waiting::Over => Poll::Pending,
        }
    }
}

impl Waiting {
    fn answer(&mut self, answer: Answer) {
        if let Waiting::For(_, Some(waker)) = std::mem::replace(self, Waiting::Has(answer)) {
            waker.wake();
        }
    }
}

/// A call on its way out.
#[derive(Debug)]
pub struct Call {
    /// What is asked.
    pub ask: Ask,
    /// Where the answer is waited for.
    pub slot: Slot,
    /// What it is for.
    pub purpose: Purpose,
    /// What its sender knew when it left, if it is a claim.
    pub known: Option<Knowledge>,
}
