//! A candidate with connections of its own, as another process would have.

use std::sync::Arc;
use std::time::Duration;

use bellwether_backend::{Backend, Notices};
use bellwether_core::{
    Bid, Boot, Candidate, CandidateId, Clock, ElectionName, Epoch, Grant, Incarnation, Outcome, Parting,
    Seen, Signal,
};
use bellwether_deadman::{SystemClock, boot_now, random_bits};
use bellwether_postgres::{Postgres, from_url};
use futures_util::StreamExt;

pub struct Actor {
    pub backend: Arc<Postgres>,
    pub on: ElectionName,
    pub bid: Bid,
}

pub fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock)
}

impl Actor {
    /// In the election `reports`.
    pub fn new(url: &str, id: &str, ttl: Duration) -> Actor {
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
        let backend = Arc::new(from_url(url, clock()).unwrap());
        Actor { backend, on: ElectionName::new("reports").unwrap(), bid }
    }

    pub async fn claim(&self) -> Outcome<Grant> {
        let bid = Bid { sent: boot_now(), ..self.bid.clone() };
        self.backend.claim(&self.on, &bid).await
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

    /// Tries until it leads; also says when it did.
    pub async fn lead_within(&self, longest: Duration) -> (Grant, Boot) {
        let start = boot_now();
        loop {
            let outcome = self.claim().await;
            let now = boot_now();
            match outcome {
                Outcome::Held(grant) => return (grant, now),
                other => assert!(now.since(start) < longest, "still kept out after {longest:?}: {other:?}"),
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    pub async fn renew(&self, grant: &Grant) -> Outcome<Grant> {
        self.backend.renew(boot_now(), &[(self.on.clone(), grant.clone())]).await.remove(0)
    }

    pub async fn keep(&self, grant: &Grant) -> Grant {
        match self.renew(grant).await {
            Outcome::Held(grant) => grant,
            other => panic!("{} was to go on: {other:?}", self.bid.who.id),
        }
    }

    pub async fn let_go(&self, grant: &Grant) {
        let released = self.backend.release(&self.on, grant, &Parting::default()).await;
        assert!(matches!(released, Outcome::Held(())), "{released:?}");
    }

    pub async fn seen(&self) -> Seen {
        self.backend.observe(&self.on).await.unwrap()
    }

    pub fn news(&self) -> News {
        self.backend.follow(&self.on, true);
        News(self.backend.signals())
    }
}

pub struct News(Notices);

impl News {
    /// Waits until the news are of this kind.
    pub async fn until(&mut self, wanted: impl Fn(&Signal) -> bool) {
        let heard = async {
            loop {
                let notice = self.0.next().await.expect("the news end only with the backend");
                if wanted(&notice.signal) {
                    return;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(10), heard).await.expect("no such news came");
    }
}
