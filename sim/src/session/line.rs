//! The line between a process and one of its sessions, and what travels on it.

use std::collections::BTreeSet;

use super::wire::{
    ReplySlot, SentStatement, ServerNews, SessionKind, SessionNumber, StatementAnswer, StatementFailure,
};
use crate::key::ElectionKey;
use crate::time::Nanos;

/// The way between a process and one of its sessions.
#[derive(Debug)]
pub(crate) struct SessionLink {
    pub(crate) node: usize,
    pub(crate) kind: SessionKind,
    /// When the last message arrives: a later one does not overtake it.
    pub(super) up: Nanos,
    pub(super) down: Nanos,
    /// Nothing passes any more, and nobody is told.
    pub(crate) dead: bool,
    /// The process has closed its end, or knows that the other is closed.
    pub(super) closed: bool,
    /// Where the process has asked for presence, and not to leave.
    pub(super) present: BTreeSet<ElectionKey>,
    /// Where the process has asked to leave, and no claim has asked for presence since.
    pub(super) left: BTreeSet<ElectionKey>,
    /// When it was ended by hand.
    pub(crate) ended_by_hand: Option<Nanos>,
}

/// Something on its way to a process.
#[derive(Debug)]
pub enum Down {
    /// An answer.
    Answer(ReplySlot, Result<StatementAnswer, StatementFailure>),
    /// The session is over.
    HangUp,
    /// News.
    News(ServerNews),
}

/// What waits for a cut to end.
#[derive(Debug)]
pub enum Stalled {
    /// Towards the server.
    Up(SentStatement),
    /// Towards the process.
    Down(SessionNumber, Down),
}
