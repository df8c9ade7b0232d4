//! The state of this node, shared between the engine that applies entries and those who answer clients.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use bellwether_backend::lock;
use bellwether_cluster::{At, CorruptSnapshot, StateMachine};
use bellwether_core::{Clock, ElectionName};
use tokio::sync::watch;

use crate::command::{AskLine, SessionId};
use crate::keepalive::Keepalives;
use crate::protocol::{Finding, Led, News, Query, Text};
use crate::state::State;

/// The state, and who has to hear of its changes.
pub(super) struct Applied {
    inside: Mutex<Inside>,
    /// The index of the last entry that was applied.
    changes: watch::Sender<u64>,
    clock: Arc<dyn Clock>,
}

/// One lock for both: what the table counts is what the state holds.
#[derive(Default)]
pub(super) struct Inside {
    pub(super) state: State,
    pub(super) keepalives: Keepalives,
}

impl Applied {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Applied {
        Applied { inside: Mutex::default(), changes: watch::Sender::new(0), clock }
    }

    pub(super) fn inside(&self) -> MutexGuard<'_, Inside> {
        lock(&self.inside)
    }

    /// The index of the last entry, and every change of it.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Forgets everything: the engine starts from its disk.
    pub(super) fn reset(&self) {
        *self.inside() = Inside::default();
    }

    pub(super) fn find(&self, query: &Query) -> Finding {
        let state = &self.inside().state;
        match query {
            Query::Election(on) => Finding::Election(Box::new(state.view(on))),
            Query::Queue(on) => {
                Finding::Queue(state.waiting(on).into_iter().map(|waiting| Text(waiting.who.id)).collect())
            }
            Query::History(on) => Finding::History(state.history(on).iter().map(Into::into).collect()),
            Query::Elections => Finding::Elections(state.elections().cloned().map(Text).collect()),
            Query::Note(name) => Finding::Note(state.note(name).map(<[u8]>::to_vec)),
        }
    }

    /// What an open session leads.
    pub(super) fn led_by(&self, session: SessionId) -> Option<Vec<Led>> {
        let led = self.inside().state.led_by(session)?;
        Some(led.into_iter().map(|(on, epoch)| Led { on, epoch }).collect())
    }
}

/// What happened after some revision.
pub(super) struct Since {
    /// The elections that changed; `None` if that is not remembered, and all of them have to be looked at.
    pub(super) changed: Option<BTreeSet<ElectionName>>,
    /// The last request to each leader, with the index that made it.
    pub(super) requests: BTreeMap<ElectionName, (u64, AskLine)>,
}

impl Inside {
    pub(super) fn since(&self, revision: u64) -> Since {
        let mut since = Since { changed: None, requests: BTreeMap::new() };
        if let Ok(events) = self.state.events_after(revision) {
            let mut changed = BTreeSet::new();
            for event in events {
                if let Some(request) = &event.request {
                    since.requests.insert(event.on.clone(), (event.revision, (&request.what).into()));
                }
                changed.insert(event.on.clone());
            }
            since.changed = Some(changed);
        }
        since
    }

    /// A request to the present leader that is older than the events that are remembered. Its index is not known: told to whoever was told
    /// of none yet.
    pub(super) fn forgotten_request(&self, on: &ElectionName, known: u64) -> Option<(u64, AskLine)> {
        let is_new = known == 0 && self.state.events_after(0).is_err();
        self.state.request(on).filter(|_| is_new).map(|ask| (self.state.revision(), ask.clone()))
    }

    pub(super) fn news(&self, on: &ElectionName) -> News {
        News { on: on.clone(), view: self.state.view(on), request: None }
    }
}

/// The state machine of a node: applies to the shared state, and tells of it.
pub(super) struct SharedMachine(pub(super) Arc<Applied>);

impl StateMachine for SharedMachine {
    fn apply(&mut self, at: At, command: &[u8]) -> Vec<u8> {
        let answer = {
            let now = self.0.clock.boot();
            let mut inside = self.0.inside();
            let applied = inside.state.step(at, command);
            inside.keepalives.applied(now, &applied.changes);
            applied.answer.encode()
        };
        self.0.changes.send_replace(at.index);
        answer
    }

    fn snapshot(&self) -> Vec<u8> {
        self.0.inside().state.snapshot()
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<(), CorruptSnapshot> {
        self.0.inside().state.restore(snapshot)?;
        self.0.changes.send_modify(|_| {});
        Ok(())
    }
}
