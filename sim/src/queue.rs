//! What is going to happen, in order. Two things at one instant happen in the order in which they were planned.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use bellwether_backend::Change;
use bellwether_core::{Epoch, Incarnation};

use crate::call::{OutgoingCall, RegisterAnswer, Slot};
use crate::key::{ElectionKey, Seat};
use crate::session::line::Down;
use crate::session::wire::{SentStatement, SessionNumber};
use crate::time::Nanos;

/// Something that is going to happen.
#[derive(Debug)]
pub enum WorldEvent {
    /// A call reaches the store.
    Deliver(Box<Delivery>),
    /// An answer reaches the process that waits for it.
    Answer(usize, Slot, Box<RegisterAnswer>),
    /// The process's own client stops waiting for an answer that will not come.
    GiveUp(usize, Slot),
    /// News reaches a process over the connection of that number.
    News(usize, u32, Box<Change<u64>>),
    /// A statement reaches the server of sessions.
    Arrive(usize, Box<SentStatement>),
    /// Something reaches a process on one of its sessions.
    Down(usize, SessionNumber, Box<Down>),
    /// A session may have been silent for too long.
    Idle(SessionNumber),
    /// A process wanted to be woken.
    Alarm(usize),
    /// The server of sessions runs again.
    ServerUp,
    /// A candidate's next time-out.
    Timer(Seat),
    /// A paused or sleeping process runs again.
    Resume(usize),
    /// The work of that leadership of this incarnation has ended, after it was told to. A store that was rolled back may give the next
    /// incarnation the same epoch.
    WorkOver(Seat, Incarnation, Epoch),
    /// A cut or reset connection is back.
    Reconnect(usize, u32),
    /// A crashed process is started again, its candidates as new incarnations.
    Restart(usize),
    /// A candidate that its user had stopped is started again.
    StartAgain(Seat),
    /// A sick candidate is well again.
    Recover(Seat),
    /// The next fault is due.
    Fault,
    /// The next whim of a user is due.
    Whim,
    /// The outsider acts.
    Outsider(ElectionKey),
    /// The slow spell is over.
    Calm,
    /// The store works again.
    StoreBack,
    /// Faults stop.
    Heal,
    /// What was on its way when the faults stopped has arrived, in that election.
    Arrived(ElectionKey),
    /// The healing phase looks how far it has come.
    Progress,
}

/// A call on its way to the store.
#[derive(Debug)]
pub struct Delivery {
    /// Who sent it.
    pub from: usize,
    /// Over which of its connections.
    pub connection_number: u32,
    /// How often its record had been deleted when it left.
    pub deletions: u32,
    /// Whether anybody hears the answer.
    pub answered: bool,
    /// The call.
    pub call: OutgoingCall,
}

#[derive(Debug)]
struct Planned {
    at: Nanos,
    order: u64,
    event: WorldEvent,
}

impl PartialEq for Planned {
    fn eq(&self, other: &Planned) -> bool {
        self.order == other.order
    }
}

impl Eq for Planned {}

impl PartialOrd for Planned {
    fn partial_cmp(&self, other: &Planned) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Planned {
    fn cmp(&self, other: &Planned) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

/// The events to come.
#[derive(Debug, Default)]
pub struct Queue {
    heap: BinaryHeap<Reverse<Planned>>,
    planned: u64,
}

impl Queue {
    /// Plans something.
    pub fn push(&mut self, at: Nanos, event: WorldEvent) {
        self.planned += 1;
        self.heap.push(Reverse(Planned { at, order: self.planned, event }));
    }

    /// The next thing, with its instant.
    pub fn pop(&mut self) -> Option<(Nanos, WorldEvent)> {
        self.heap.pop().map(|Reverse(planned)| (planned.at, planned.event))
    }

    /// Moves everything to the instant that `when` gives for it, keeping the order among equals.
    pub fn reschedule(&mut self, mut when: impl FnMut(Nanos, &WorldEvent) -> Nanos) {
        let mut all: Vec<Planned> = self.heap.drain().map(|Reverse(planned)| planned).collect();
        all.sort();
        for planned in &mut all {
            planned.at = when(planned.at, &planned.event);
        }
        self.heap.extend(all.into_iter().map(Reverse));
    }
}
