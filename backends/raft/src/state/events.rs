//! The last events, for watchers that come a little late.

use std::collections::VecDeque;

use bellwether_core::{ElectionName, Request};

use crate::limits::EVENTS_MAX;

/// Something that happened to an election.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The log index that made it happen.
    pub revision: u64,
    /// The election. What it looks like now, [`State::view`](super::State::view) shows.
    pub on: ElectionName,
    /// What was asked of the leader, if that is what happened.
    pub request: Option<Request>,
}

/// Events after the revision that was named are not remembered any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compacted;

#[derive(Clone, Debug, Default)]
pub(super) struct Events {
    /// By revision.
    ring: VecDeque<Event>,
    /// Everything after this revision is in the ring.
    complete_after: u64,
}

impl Events {
    /// Nothing is remembered of what led to this revision.
    pub(super) fn from(revision: u64) -> Events {
        Events { ring: VecDeque::new(), complete_after: revision }
    }

    pub(super) fn push(&mut self, event: Event) {
        self.ring.push_back(event);
        if self.ring.len() > EVENTS_MAX
            && let Some(oldest) = self.ring.pop_front()
        {
            // Others of the same revision may still be there, but not all of them.
            self.complete_after = oldest.revision;
        }
    }

    pub(super) fn after(&self, revision: u64) -> Result<impl Iterator<Item = &Event>, Compacted> {
        if revision < self.complete_after {
            return Err(Compacted);
        }
        let from = self.ring.partition_point(|event| event.revision <= revision);
        Ok(self.ring.range(from..))
    }
}
