//! News for whoever drives the elections: one notice of each kind at a time, the latest last.

use std::collections::{BTreeMap, HashMap};
use std::mem::{Discriminant, discriminant};
use std::sync::Mutex;

use bellwether_core::{ElectionName, Signal};
use tokio::sync::Notify;

use crate::{Notice, lock};

/// Notices on their way to whoever drives the elections.
///
/// What waits is bounded by the number of elections and of kinds: an older notice of the same kind is dropped.
#[derive(Default)]
pub struct NoticeQueue {
    waiting: Mutex<WaitingNotices>,
    arrived: Notify,
}

/// In the order of their numbers. The place of each is known, since a thousand come at once when the leader of a thousand elections dies.
#[derive(Default)]
struct WaitingNotices {
    notices: BTreeMap<u64, Notice>,
    places: HashMap<Option<ElectionName>, Vec<(Discriminant<Signal>, u64)>>,
    last: u64,
}

impl WaitingNotices {
    fn put(&mut self, notice: Notice) {
        self.last += 1;
        let kind = discriminant(&notice.signal);
        let places = self.places.entry(notice.election.clone()).or_default();
        if let Some(at) = places.iter().position(|(other, _)| *other == kind) {
            self.notices.remove(&places.swap_remove(at).1);
        }
        places.push((kind, self.last));
        self.notices.insert(self.last, notice);
    }

    fn take(&mut self) -> Option<Notice> {
        let (number, notice) = self.notices.pop_first()?;
        if let Some(places) = self.places.get_mut(&notice.election) {
            places.retain(|(_, other)| *other != number);
            if places.is_empty() {
                self.places.remove(&notice.election);
            }
        }
        Some(notice)
    }

    fn forget(&mut self, on: &ElectionName) {
        for (_, number) in self.places.remove(&Some(on.clone())).unwrap_or_default() {
            self.notices.remove(&number);
        }
    }
}

impl NoticeQueue {
    /// About every election.
    pub fn all(&self, signal: Signal) {
        self.put(Notice { election: None, signal });
    }

    /// About one.
    pub fn about(&self, on: ElectionName, signal: Signal) {
        self.put(Notice { election: Some(on), signal });
    }

    /// What is no longer followed is not told.
    pub fn forget(&self, on: &ElectionName) {
        lock(&self.waiting).forget(on);
    }

    /// The next notice, when there is one.
    pub async fn next(&self) -> Notice {
        loop {
            if let Some(notice) = lock(&self.waiting).take() {
                return notice;
            }
            self.arrived.notified().await;
        }
    }

    fn put(&self, notice: Notice) {
        lock(&self.waiting).put(notice);
        self.arrived.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bellwether_core::Seen;

    #[tokio::test]
    async fn the_latest_of_a_kind_is_told_last_and_what_is_not_followed_is_not_told() {
        let news = NoticeQueue::default();
        let name = |text: &str| ElectionName::new(text).unwrap();
        let changed = |text| news.about(name(text), Signal::Changed(Seen::nothing()));
        changed("a");
        changed("b");
        news.all(Signal::Doubt);
        changed("c");
        changed("a");
        news.all(Signal::Restored);
        news.forget(&name("c"));
        let mut told = Vec::new();
        for _ in 0..4 {
            let Notice { election, signal } = news.next().await;
            told.push((election.map(|on| on.to_string()), discriminant(&signal)));
        }
        let changed = discriminant(&Signal::Changed(Seen::nothing()));
        let about = |text: &str| (Some(text.to_owned()), changed);
        let all = |signal| (None, discriminant(&signal));
        assert_eq!(told, [about("b"), all(Signal::Doubt), about("a"), all(Signal::Restored)]);
        let rest = lock(&news.waiting);
        assert!(rest.notices.is_empty() && rest.places.is_empty(), "nothing is kept");
    }
}
