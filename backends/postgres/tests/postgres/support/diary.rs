//! A candidate that writes down what its callbacks were called for.

use std::time::Duration;

use bellwether_election::{Election, ElectionBuilder, Event, Store, What};
use bellwether_postgres::from_url;
use bellwether_support::{PATIENCE, clock};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// A candidate and its diary: `acquired`, `lost connection`, `follower>acquiring` and so on, each from the callback of that name.
pub(crate) struct Diary {
    pub election: Election,
    words: UnboundedReceiver<(String, Event)>,
}

impl Diary {
    /// In the election `reports`, as set up by `with`.
    pub(crate) async fn start(
        url: &str,
        id: &str,
        ttl: Duration,
        with: impl FnOnce(ElectionBuilder) -> ElectionBuilder,
    ) -> Diary {
        let (sender, words) = unbounded_channel();
        let store = Store::from(from_url(url, clock()).unwrap());
        let builder = with(Election::builder("reports").backend(store).id(id).ttl(ttl));
        let note = move |event: Event| {
            let word = match &event.what {
                What::StateChanged { from, to } => format!("{}>{}", from.as_str(), to.as_str()),
                What::Lost { reason, .. } | What::Suspended { reason, .. } => {
                    format!("{} {}", event.what.as_str(), reason.as_str())
                }
                What::Released { confirmed: false, .. } => "released unconfirmed".to_owned(),
                what => what.as_str().to_owned(),
            };
            let _ = sender.send((word, event));
        };
        let (a, b, c, d) = (note.clone(), note.clone(), note.clone(), note.clone());
        let (e, f, g, h) = (note.clone(), note.clone(), note.clone(), note);
        let builder = builder.on_acquired(a).on_released(b).on_lost(c).on_acquire_failed(d);
        let builder = builder.on_state_change(e).on_error(f).on_stopped(g);
        let both = move |builder: ElectionBuilder| {
            let other = h.clone();
            builder.on(bellwether_election::On::Suspended, h).on(bellwether_election::On::Resumed, other)
        };
        Diary { election: both(builder).start().await.unwrap(), words }
    }

    /// Everything up to and including the first word that begins like this.
    pub(crate) async fn until(&mut self, word: &str) -> Vec<String> {
        self.events_until(word).await.into_iter().map(|(word, _)| word).collect()
    }

    /// As [`Diary::until`], with the events.
    pub(crate) async fn events_until(&mut self, word: &str) -> Vec<(String, Event)> {
        let mut all = Vec::new();
        let reading = async {
            while let Some((next, event)) = self.words.recv().await {
                let found = next.starts_with(word);
                all.push((next, event));
                if found {
                    return;
                }
            }
        };
        let read = tokio::time::timeout(PATIENCE, reading).await;
        let words: Vec<&String> = all.iter().map(|(word, _)| word).collect();
        assert!(
            read.is_ok() && words.last().is_some_and(|last| last.starts_with(word)),
            "no {word} in {words:?}"
        );
        all
    }

    /// What has been written since.
    pub(crate) fn rest(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.words.try_recv().ok()).map(|(word, _)| word).collect()
    }
}
