//! A candidate with a connection of its own, as another process would have.

use std::sync::Arc;
use std::time::Duration;

use bellwether_backend::{Backend, Notices};
use bellwether_core::{
    Bid, Boot, Candidate, CandidateId, Clock, ElectionName, Grant, Incarnation, Outcome, ReleaseOptions,
    Seen, Signal,
};
use bellwether_deadman::{SystemClock, boot_now, random_bits};
use futures_util::StreamExt;

use crate::{PATIENCE, until};

/// A candidate on a backend, which does what it is told and nothing else.
#[derive(Debug)]
pub struct Actor<B> {
    /// Its connection.
    pub backend: B,
    /// Its election.
    pub on: ElectionName,
    /// What it claims with.
    pub bid: Bid,
}

/// The machine's clock.
pub fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock)
}

/// The election of this name.
pub fn election(name: &str) -> ElectionName {
    ElectionName::new(name).expect("a name for an election")
}

impl<B: Backend> Actor<B> {
    /// In the election `reports`, with an incarnation of its own.
    pub fn new(backend: B, id: &str, ttl: Duration) -> Actor<B> {
        let id = CandidateId::new(id).expect("an id");
        let who = Candidate { id, incarnation: Incarnation::from_bits(random_bits()) };
        let bid = Bid::new(who, ttl, Boot::default());
        Actor { backend, on: election("reports"), bid }
    }

    /// One attempt.
    pub async fn claim(&self) -> Outcome<Grant> {
        let bid = Bid { sent: boot_now(), ..self.bid.clone() };
        self.backend.claim(&self.on, &bid).await
    }

    /// The first attempt that is answered, which must succeed.
    pub async fn lead(&self) -> Grant {
        match self.answered().await {
            Outcome::Done(grant) => grant,
            other => panic!("{} was to lead: {other:?}", self.bid.who.id),
        }
    }

    /// The first attempt that is answered, which must be denied.
    pub async fn denied(&self) -> Seen {
        match self.answered().await {
            Outcome::Denied(seen) => seen,
            other => panic!("{} was to be denied: {other:?}", self.bid.who.id),
        }
    }

    /// On a busy machine a call may take longer than its time-out; a driver then asks again.
    async fn answered(&self) -> Outcome<Grant> {
        until(|| async {
            match self.claim().await {
                Outcome::Unknown(error) => Err(error.to_string()),
                answer => Ok(answer),
            }
        })
        .await
    }

    /// Tries until it leads; also says when it did.
    pub async fn lead_within(&self, longest: Duration) -> (Grant, Boot) {
        let start = boot_now();
        loop {
            let outcome = self.claim().await;
            let now = boot_now();
            match outcome {
                Outcome::Done(grant) => return (grant, now),
                other => assert!(now.since(start) < longest, "still kept out after {longest:?}: {other:?}"),
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// One renewal.
    pub async fn renew(&self, grant: &Grant) -> Outcome<Grant> {
        self.backend.renew(&self.on, grant, boot_now()).await
    }

    /// One renewal, which must succeed.
    pub async fn keep(&self, grant: &Grant) -> Grant {
        match self.renew(grant).await {
            Outcome::Done(grant) => grant,
            other => panic!("{} was to go on: {other:?}", self.bid.who.id),
        }
    }

    /// Releases, which must succeed.
    pub async fn let_go(&self, grant: &Grant) {
        let released = self.backend.release(&self.on, grant, &ReleaseOptions::default()).await;
        assert!(matches!(released, Outcome::Done(())), "{released:?}");
    }

    /// Who leads.
    pub async fn seen(&self) -> Seen {
        self.backend.observe(&self.on).await.expect("the store can be read")
    }

    /// From now on. Once an actor.
    pub fn news(&self) -> News {
        self.backend.follow(&self.on);
        News(self.backend.signals())
    }
}

/// What an actor hears of its election.
pub struct News(Notices);

impl News {
    /// Waits until something of this kind comes.
    pub async fn until(&mut self, wanted: impl Fn(&Signal) -> bool) -> Signal {
        let heard = async {
            loop {
                let notice = self.0.next().await.expect("the news end only with the backend");
                if wanted(&notice.signal) {
                    return notice.signal;
                }
            }
        };
        tokio::time::timeout(PATIENCE, heard).await.expect("no such news came")
    }

    /// Waits until the record is seen to be like this.
    pub async fn until_seen(&mut self, wanted: impl Fn(&Seen) -> bool) -> Seen {
        let signal = self.until(|signal| matches!(signal, Signal::Changed(seen) if wanted(seen))).await;
        let Signal::Changed(seen) = signal else { unreachable!("only changes were waited for") };
        seen
    }

    /// How many come in this time.
    pub async fn count(&mut self, span: Duration) -> usize {
        let mut count = 0;
        let counting = async {
            while self.0.next().await.is_some() {
                count += 1;
            }
        };
        let _ = tokio::time::timeout(span, counting).await;
        count
    }
}
