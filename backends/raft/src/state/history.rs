//! Past leaderships.

use bellwether_backend::HISTORY_MAX;
use bellwether_core::ElectionName;

use super::State;
use crate::answer::{Answer, Refusal};
use crate::command::PastLine;
use crate::limits::{ENDED_MAX_BYTES, HISTORY_TOTAL_MAX};

impl State {
    /// Adds a leadership, or completes the one with the same epoch.
    pub(super) fn remember(&mut self, on: ElectionName, past: PastLine) -> Result<Answer, Refusal> {
        if past.ended.as_ref().is_some_and(|ended| ended.len() > ENDED_MAX_BYTES) {
            return Err(Refusal::Malformed(format!(
                "the end of a leadership has at most {ENDED_MAX_BYTES} bytes"
            )));
        }
        let is_full = self.pasts >= HISTORY_TOTAL_MAX;
        if is_full && self.elections.get(&on).is_none_or(|election| election.history.is_empty()) {
            return Err(Refusal::Limit(format!(
                "the cluster keeps at most {HISTORY_TOTAL_MAX} past leaderships"
            )));
        }
        let history = &mut self.election(&on)?.history;
        let before = history.len();
        let same = history.iter().position(|other| other.epoch == past.epoch);
        match same {
            // Beginning and end are written by two calls that may overtake each other: the end stays.
            Some(at) if past.until.is_none() && history[at].until.is_some() => {}
            Some(at) => history[at] = past,
            None => {
                let place = history.partition_point(|other| other.epoch < past.epoch);
                history.insert(place, past);
                if is_full || history.len() > HISTORY_MAX {
                    history.remove(0);
                }
            }
        }
        let added = history.len() - before;
        self.pasts += added;
        Ok(Answer::Done)
    }
}
