//! One client that campaigns.

use std::sync::Arc;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bellwether_core::Boot;
use bellwether_deadman::{ReadableFd, boot_now};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::told::{Answer, Told, word};
use super::{Pace, Roster};

/// Where a campaign stands. It never goes back.
#[derive(Clone)]
pub(crate) enum Place {
    /// For those before it to leave, or for a leadership.
    Waiting,
    Leading(Arc<Told>),
    /// It was silent until everything that it was told had run out.
    Silent(Arc<Told>),
    /// It has left, or was given up.
    Gone,
}

pub(crate) struct Entry {
    /// Nobody can guess it.
    pub(crate) id: u128,
    /// Its process, where the end of that is the end of its work.
    pub(crate) process: Option<ReadableFd>,
    place: watch::Sender<Place>,
    contact: Mutex<Contact>,
}

#[derive(Clone, Copy)]
struct Contact {
    /// When its last request was received.
    heard: Boot,
    /// Answers that are being written.
    open: usize,
    /// When the last of them ended.
    closed: Boot,
}

impl Entry {
    pub(crate) fn new(id: u128, process: Option<ReadableFd>, heard: Boot) -> Entry {
        let contact = Mutex::new(Contact { heard, open: 0, closed: heard });
        Entry { id, process, place: watch::Sender::new(Place::Waiting), contact }
    }

    pub(crate) fn place(&self) -> watch::Receiver<Place> {
        self.place.subscribe()
    }

    pub(super) fn is_waiting(&self) -> bool {
        matches!(*self.place.borrow(), Place::Waiting)
    }

    /// Goes on to `next`, unless it is gone.
    pub(super) fn proceed(&self, next: Place) {
        self.place.send_if_modified(|place| {
            let lives = !matches!(place, Place::Gone);
            if lives {
                *place = next;
            }
            lives
        });
    }

    pub(super) fn is_gone(&self) -> bool {
        matches!(*self.place.borrow(), Place::Gone)
    }

    /// Waits until it has left.
    pub(super) async fn left(&self) {
        let _ = self.place().wait_for(|place| matches!(place, Place::Gone)).await;
    }

    /// Waits until its process is dead, where that is the end of its work.
    pub(super) async fn dead(&self) {
        match &self.process {
            Some(process) => {
                if process.readable().await.is_err() {
                    std::future::pending().await
                }
            }
            None => std::future::pending().await,
        }
    }

    /// When its last request was received.
    pub(super) fn heard(&self) -> Boot {
        self.contact().heard
    }

    /// Whether an answer to it is being written.
    pub(super) fn is_attached(&self) -> bool {
        self.contact().open > 0
    }

    /// For how long it has been silent between two requests.
    pub(super) fn is_absent_since(&self) -> Option<Boot> {
        let contact = *self.contact();
        (contact.open == 0).then_some(contact.closed)
    }

    pub(super) fn attach(&self, heard: Boot) {
        let mut contact = self.contact();
        contact.heard = contact.heard.max(heard);
        contact.open += 1;
    }

    fn detach(&self) {
        let mut contact = self.contact();
        contact.open -= 1;
        contact.closed = boot_now();
    }

    fn contact(&self) -> MutexGuard<'_, Contact> {
        self.contact.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One line of the answer to a request that was received at `heard`. Every number of it counts from there.
    pub(crate) fn line(&self, place: &Place, heard: Boot, pace: Pace) -> Value {
        let now = boot_now();
        let millis = |until: Boot| until.since(heard).as_millis() as u64;
        // What has run out is no number of milliseconds.
        let left = |until: Boot| if until > now { millis(until) } else { 0 };
        let mut line = json!({
            "campaign": format!("{:032x}", self.id),
            "epoch": null,
            "valid_ms": 0,
            "again_ms": pace.again.as_millis() as u64,
        });
        match place {
            Place::Waiting | Place::Gone => {}
            Place::Leading(told) => {
                line["epoch"] = json!(told.epoch.get());
                match told.answer(heard, now) {
                    Answer::Leads(until) => line["valid_ms"] = json!(left(until)),
                    Answer::Ended(how, by) => {
                        line["ended"] = json!(word(how));
                        line["answer_by_ms"] = json!(left(by));
                    }
                }
            }
            Place::Silent(told) => {
                line["epoch"] = json!(told.epoch.get());
                line["ended"] = json!("silent");
                line["answer_by_ms"] = json!(0);
            }
        }
        line
    }
}

/// An answer that is being written to a client.
pub(crate) struct Attached {
    pub(crate) entry: Arc<Entry>,
    roster: Arc<Roster>,
}

impl Attached {
    pub(super) fn new(entry: Arc<Entry>, roster: Arc<Roster>, heard: Boot) -> Attached {
        entry.attach(heard);
        Attached { entry, roster }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.entry.detach();
        self.roster.look();
    }
}
