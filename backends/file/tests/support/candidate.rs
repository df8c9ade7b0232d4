//! A candidate with a connection of its own, as another process would have.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bellwether_backend::{Backend, Notices};
use bellwether_core::{
    Bid, Boot, Candidate, CandidateId, Clock, ElectionName, Epoch, Grant, Outcome, Parting, Seen,
};
use bellwether_core::{Incarnation, Signal};
use bellwether_deadman::{SystemClock, boot_now, random_bits};
use bellwether_file::{File, open};
use futures_util::StreamExt;

pub struct Actor {
    pub file: File,
    pub on: ElectionName,
    pub bid: Bid,
}

pub fn election(name: &str) -> ElectionName {
    ElectionName::new(name).unwrap()
}

pub fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock)
}

impl Actor {
    /// In the election `reports`.
    pub fn new(dir: &Path, id: &str, ttl: Duration) -> Actor {
        let who = Candidate {
            id: CandidateId::new(id).unwrap(),
            incarnation: Incarnation::from_bits(random_bits()),
        };
        let bid = Bid {
            who,
            ttl,
            floor: Epoch::ZERO,
            priority: 0,
            metadata: Default::default(),
            cooldown: None,
            danger_reclaim: false,
            sent: Boot::default(),
        };
        Actor { file: open(dir, clock()).unwrap(), on: election("reports"), bid }
    }

    pub async fn claim(&self) -> Outcome<Grant> {
        let bid = Bid { sent: boot_now(), ..self.bid.clone() };
        self.file.claim(&self.on, &bid).await
    }

    pub async fn lead(&self) -> Grant {
        match self.claim().await {
            Outcome::Held(grant) => grant,
            other => panic!("{} was to lead: {other:?}", self.bid.who.id),
        }
    }

    pub async fn denied(&self) -> Seen {
        match self.claim().await {
            Outcome::Denied(seen) => seen,
            other => panic!("{} was to be denied: {other:?}", self.bid.who.id),
        }
    }

    /// Tries until it leads; also says how long that took.
    pub async fn lead_within(&self, longest: Duration) -> (Grant, Duration) {
        let start = boot_now();
        loop {
            let outcome = self.claim().await;
            let took = boot_now().since(start);
            match outcome {
                Outcome::Held(grant) => return (grant, took),
                other => assert!(took < longest, "still kept out after {took:?}: {other:?}"),
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    pub async fn renew(&self, grant: &Grant) -> Outcome<Grant> {
        self.file.renew(boot_now(), &[(self.on.clone(), grant.clone())]).await.remove(0)
    }

    pub async fn keep(&self, grant: &Grant) -> Grant {
        match self.renew(grant).await {
            Outcome::Held(grant) => grant,
            other => panic!("{} was to go on: {other:?}", self.bid.who.id),
        }
    }

    pub async fn let_go(&self, grant: &Grant) {
        let released = self.file.release(&self.on, grant, &Parting::default()).await;
        assert!(matches!(released, Outcome::Held(())), "{released:?}");
    }

    pub async fn seen(&self) -> Seen {
        self.file.observe(&self.on).await.unwrap()
    }

    pub fn news(&self) -> News {
        self.file.follow(&self.on, true);
        News(self.file.signals())
    }
}

pub struct News(Notices);

impl News {
    /// Waits until the news are of this kind.
    pub async fn until(&mut self, wanted: impl Fn(&Seen) -> bool) -> Seen {
        let seen = async {
            loop {
                let notice = self.0.next().await.expect("the news end only with the backend");
                if let Signal::Changed(seen) = notice.signal
                    && wanted(&seen)
                {
                    return seen;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(10), seen).await.expect("no such news came")
    }

    /// How many come in this time.
    pub async fn count(&mut self, span: Duration) -> usize {
        let mut count = 0;
        let _ = tokio::time::timeout(span, async {
            while self.0.next().await.is_some() {
                count += 1;
            }
        })
        .await;
        count
    }
}
