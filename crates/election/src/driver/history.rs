//! What one candidate writes into the history: when a leadership began, and again when and how it ended.

use bellwether_backend::Past;
use bellwether_core::{Candidate, Wall};

use super::calls::{Caller, Calls};
use crate::event::What;

#[derive(Default)]
pub(super) struct HistoryWriter {
    /// The leadership that has begun and not ended.
    present: Option<Past>,
    under_way: usize,
}

impl HistoryWriter {
    /// Writes down what of this event belongs into the history.
    pub(super) fn write(
        &mut self,
        now: Wall,
        who: &Candidate,
        what: &What,
        caller: Caller<'_>,
        calls: &mut Calls,
    ) {
        if let Some(past) = self.past(now, who, what) {
            self.under_way += usize::from(calls.remember(caller, past));
        }
    }

    /// A write has ended, well or not.
    pub(super) fn written(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }

    pub(super) fn is_written(&self) -> bool {
        self.under_way == 0
    }

    fn past(&mut self, now: Wall, who: &Candidate, what: &What) -> Option<Past> {
        match what {
            What::Acquired { epoch, .. } | What::Resumed { epoch, .. } => {
                let past = Past {
                    epoch: *epoch,
                    id: who.id.clone(),
                    incarnation: Some(who.incarnation),
                    since: now,
                    until: None,
                    ended: None,
                };
                self.present = Some(past.clone());
                Some(past)
            }
            What::Released { .. } => self.ended(now, "released"),
            What::Lost { reason, .. } | What::Suspended { reason, .. } => self.ended(now, reason.as_str()),
            _ => None,
        }
    }

    fn ended(&mut self, now: Wall, how: &str) -> Option<Past> {
        self.present.take().map(|past| Past { until: Some(now), ended: Some(how.to_owned()), ..past })
    }
}
