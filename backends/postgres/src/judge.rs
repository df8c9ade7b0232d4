//! The judgement of a claim: whether the last leader of a lock that was taken may still believe.
//!
//! A freed lock proves only that session A ended. Nobody believes any more if nobody's presence is left and nothing freed locks
//! early within the ttl: no restart, no crash of a server's process, no promotion. Else the taker waits for a ttl.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bellwether_backend::{Condition, Taken};
use bellwether_core::{Boot, Error};

use crate::claim::Claim;
use crate::errors::Failure;
use crate::many::Appearance;
use crate::names::millis;
use crate::session::Values;

/// How long a claim looks out for a presence that is just going: of a process that was killed, both sessions end, one
/// a moment after the other.
const JUST_GOING: Duration = Duration::from_millis(60);

/// How often presence is asked for while a claim is being made durable. The first is usually too early by a few microseconds.
const EARLY_LOOKS: usize = 3;

impl Claim<'_> {
    /// Waits a moment for a presence that is just going.
    pub(crate) async fn judge(&self, until: Boot) -> Result<Option<()>, Error> {
        let longest = JUST_GOING.min(self.bid.ttl / 10);
        let (mut waited, mut pause) = (Duration::ZERO, Duration::from_millis(1));
        loop {
            if self.present(self.condition(until)).await.map_err(Failure::error)? {
                return Ok(Some(()));
            }
            if waited >= longest {
                return Ok(None);
            }
            tokio::time::sleep(pause).await;
            waited += pause;
            pause *= 2;
        }
    }

    /// What B has to find, with the lock in hand, before this candidate may lead.
    pub(crate) fn condition(&self, until: Boot) -> Condition {
        let now = self.inner.clock.boot();
        Taken::waiting_until(until, self.span()).condition(now, self.link.stood_since(now))
    }

    /// Takes presence, if B finds what it has to find.
    pub(crate) async fn present(&self, condition: Condition) -> Result<bool, Failure> {
        let (presence, ttl) = (self.keys.presence(), self.bid.ttl);
        let (need, force, lease) = (millis(condition.quiet), condition.by_force, self.lease());
        let b = self.link.b();
        let values: Values<'_> =
            &[&presence.0, &presence.1, &need, &force, &lease, &0, &self.keys.0, &self.keys.1];
        let alone = b.row(ttl, &b.presence, values);
        let all = self.link.appearances();
        let row =
            self.link.presences.ask(Appearance { presence, ttl, need, force }, None, all, alone).await?;
        // The next look knows whether the timeline was still the same.
        self.link.unchanged_since(self.inner.clock.boot(), row.get("timeline"));
        Ok(row.get("present"))
    }

    /// As [`Claim::present`], asked while the claim is under way and not yet `answered`: only if the lock is ours by then.
    /// True is an answer; false is none, since the claim may have come after it.
    pub(crate) async fn present_before(&self, answered: &AtomicBool) -> bool {
        for _ in 0..EARLY_LOOKS {
            if self.present_already().await {
                return true;
            }
            if answered.load(Ordering::Relaxed) {
                break;
            }
        }
        false
    }

    async fn present_already(&self) -> bool {
        let (presence, ttl, first) = (self.keys.presence(), self.bid.ttl, self.link.a.session.pid);
        // As if it were granted now: nobody has waited for anything yet.
        let condition = self.condition(self.inner.clock.boot() + self.span());
        let (need, lease) = (millis(condition.quiet), self.lease());
        let b = self.link.b();
        let values: Values<'_> =
            &[&presence.0, &presence.1, &need, &false, &lease, &first, &self.keys.0, &self.keys.1];
        let Ok(row) = b.row(ttl, &b.presence, values).await else { return false };
        self.link.unchanged_since(self.inner.clock.boot(), row.get("timeline"));
        row.get("present")
    }
}
