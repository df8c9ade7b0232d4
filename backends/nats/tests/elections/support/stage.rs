//! Whole candidates on a server, with everything that a program would have, and a judge that hears every event.

use std::sync::Arc;
use std::time::Duration;

use bellwether_core::{Boot, Epoch, Options, Reason, StateName};
use bellwether_election::{Election, ElectionBuilder, Event, Leadership, What};
use bellwether_nats::{Profile, from_url};
use bellwether_support::clock;
use futures_util::future::select_ok;
use tokio::sync::watch;

use super::{KEY, PATIENCE};

/// Ten renewals long, as the profile has it, and short enough for tests.
pub(crate) const LEASE: Duration = Duration::from_secs(3);

/// What users of the profile set, in shorter.
pub(crate) fn options() -> Options {
    let mut options = Profile::Leader.options();
    options.timing.ttl = LEASE;
    options.timing.renew = Some(LEASE / 10);
    options
}

/// A candidate with a connection of its own.
pub(crate) fn candidate(url: &str, id: &str) -> ElectionBuilder {
    Election::builder(KEY).backend(from_url(url, clock()).unwrap()).id(id).options(options())
}

/// Hears what the candidates of a test have to say.
#[derive(Clone, Default)]
pub(crate) struct Judge(Arc<watch::Sender<Vec<Event>>>);

impl Judge {
    /// Starts a candidate, and listens to it from the beginning.
    pub(crate) async fn start(&self, mut builder: ElectionBuilder) -> Election {
        let mut events = builder.subscribe();
        let all = Arc::clone(&self.0);
        tokio::spawn(async move {
            while let Some(event) = events.next().await {
                all.send_modify(|all| all.push(event));
            }
        });
        soon(builder.start()).await.expect("a candidate starts")
    }

    /// Waits until somebody says this.
    pub(crate) async fn heard(&self, id: &str, wanted: impl Fn(&What) -> bool) -> Event {
        let said = |event: &&Event| event.candidate.id.as_str() == id && wanted(&event.what);
        let mut all = self.0.subscribe();
        match tokio::time::timeout(PATIENCE, all.wait_for(|all| all.iter().any(|event| said(&event)))).await {
            Ok(heard) => {
                let all = heard.expect("the judge itself keeps it open");
                all.iter().find(said).expect("just heard").clone()
            }
            Err(_) => panic!("{id} never said it, but:\n{:#?}", self.0.borrow()),
        }
    }

    /// Waits until this candidate has lost a leadership, and says why.
    pub(crate) async fn lost(&self, id: &str) -> (Event, Reason) {
        let event = self.heard(id, |what| matches!(what, What::Lost { .. })).await;
        let What::Lost { reason, .. } = event.what else { unreachable!("only losses were waited for") };
        (event, reason)
    }

    /// How often something was said.
    pub(crate) fn count(&self, wanted: impl Fn(&Event) -> bool) -> usize {
        self.0.borrow().iter().filter(|event| wanted(event)).count()
    }

    /// No two led at once, and epochs rose. Returns how many leaderships there were.
    pub(crate) fn verdict(&self) -> usize {
        let mut events = self.0.borrow().clone();
        // One candidate's events come in order; a stable sort leaves them so.
        events.sort_by_key(|event| event.boot);
        let mut led: Vec<(String, Epoch, Boot, Boot)> = Vec::new();
        for event in &events {
            let who = event.candidate.incarnation.to_string();
            let open = led.iter_mut().rev().find(|led| led.0 == who);
            match (&event.what, open) {
                (What::Acquired { epoch, .. } | What::Resumed { epoch, .. }, _) => {
                    led.push((who, *epoch, event.boot, Boot::FOREVER));
                }
                (What::StateChanged { from: StateName::Leader, .. }, Some(led)) => {
                    led.3 = led.3.min(event.boot)
                }
                // Said late, but believed no longer than that.
                (What::Lost { deadline, .. } | What::Suspended { deadline, .. }, Some(led)) => {
                    led.3 = led.3.min(*deadline);
                }
                _ => {}
            }
        }
        led.sort_by_key(|led| led.2);
        for pair in led.windows(2) {
            assert!(pair[0].3 <= pair[1].2, "two led at once: {pair:?}");
            assert!(pair[0].1 < pair[1].1, "epochs did not rise: {pair:?}");
        }
        led.len()
    }
}

/// Waits, but not for ever.
pub(crate) async fn soon<F: Future>(what: F) -> F::Output {
    tokio::time::timeout(PATIENCE, what).await.expect("this should have happened long ago")
}

/// Waits until this candidate leads.
pub(crate) async fn leads(election: &Election) -> Leadership {
    soon(election.wait_for_leadership()).await.expect("it takes part")
}

/// Waits until one of these leads.
pub(crate) async fn one_leads(all: &[Election]) -> usize {
    let each = all
        .iter()
        .enumerate()
        .map(|(at, election)| Box::pin(async move { election.wait_for_leadership().await.map(|_| at) }));
    soon(select_ok(each)).await.expect("one of them takes part").0
}
