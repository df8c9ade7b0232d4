//! Claims and presences of many elections in one statement each.
//!
//! The arrays are explicit, since in a condition the planner may run the lock first. The transaction id is assigned after the
//! last lock of the statement was tried, so that it is above whatever others were given meanwhile, and one id serves all: epochs
//! are compared within an election only.

use std::sync::Arc;
use std::time::Duration;

use bellwether_core::CandidateId;
use tokio_postgres::Row;

use crate::Keys;
use crate::errors::Failure;
use crate::gather::AskAll;
use crate::link::Link;
use crate::names::{self, millis};
use crate::session::Values;

/// A claim among others.
pub(crate) struct Try {
    pub(crate) keys: Keys,
    pub(crate) ttl: Duration,
    pub(crate) id: CandidateId,
    /// The notice but for the epoch, or nothing.
    pub(crate) notice: String,
}

/// Presence that is asked for among others.
pub(crate) struct Appearance {
    pub(crate) presence: Keys,
    pub(crate) ttl: Duration,
    pub(crate) need: i64,
    pub(crate) force: bool,
}

impl Link {
    /// Claims all of them on A.
    pub(crate) fn claims(self: &Arc<Self>) -> AskAll<Try> {
        let link = Arc::clone(self);
        Arc::new(move |tries| {
            let link = Arc::clone(&link);
            Box::pin(async move { link.claim_all(&tries).await })
        })
    }

    /// Asks for all the presences on B.
    pub(crate) fn appearances(self: &Arc<Self>) -> AskAll<Appearance> {
        let link = Arc::clone(self);
        Arc::new(move |wanted| {
            let link = Arc::clone(&link);
            Box::pin(async move { link.appear_all(&wanted).await })
        })
    }

    async fn claim_all(&self, tries: &[Try]) -> Result<Vec<Row>, Failure> {
        let mut used = (None, None);
        for one in tries {
            used = self.slots.used_by(&one.id, one.ttl);
        }
        let ttl = longest(tries.iter().map(|one| one.ttl));
        let (lease, name) = (self.lease(ttl), names::write(used.0.as_ref(), used.1));
        let (ones, twos) = columns(tries.iter().map(|one| one.keys));
        let marks: Vec<i64> = tries.iter().map(|one| one.keys.mark()).collect();
        let notices: Vec<&str> = tries.iter().map(|one| one.notice.as_str()).collect();
        let presence = columns(tries.iter().map(|one| one.keys.presence()));
        let values: Values<'_> = &[&ones, &twos, &lease, &name, &marks, &notices, &presence.0, &presence.1];
        let rows = self.a.rows(ttl, &self.a.claim_all, values).await?;
        self.presences.expect(rows.iter().filter(|row| row.get("got")).count());
        Ok(rows)
    }

    pub(crate) async fn appear_all(&self, wanted: &[Appearance]) -> Result<Vec<Row>, Failure> {
        let ttl = longest(wanted.iter().map(|one| one.ttl));
        let lease = self.lease(ttl);
        let (ones, twos) = columns(wanted.iter().map(|one| one.presence));
        let needs: Vec<i64> = wanted.iter().map(|one| one.need).collect();
        let forces: Vec<bool> = wanted.iter().map(|one| one.force).collect();
        let b = self.b();
        b.rows(ttl, &b.presence_all, &[&ones, &twos, &needs, &forces, &lease]).await
    }

    /// The longest ttl of what is held and of what is asked for.
    fn lease(&self, ttl: Duration) -> String {
        let held = longest(self.slots.every().iter().map(|(_, slot)| slot.ttl()));
        millis(ttl.max(held)).to_string()
    }
}

fn longest(all: impl Iterator<Item = Duration>) -> Duration {
    all.max().unwrap_or_default()
}

pub(crate) fn columns(keys: impl Iterator<Item = Keys>) -> (Vec<i32>, Vec<i32>) {
    keys.map(|keys| (keys.0, keys.1)).unzip()
}
