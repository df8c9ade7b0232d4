//! Looking: who holds an election, as far as others can tell.

use std::sync::Arc;
use std::time::Duration;

use bellwether_core::{Boot, Candidate, ElectionName, Epoch, Error, Holder, Proof, Seen};

use tokio_postgres::Row;

use crate::epoch::marked_epoch;
use crate::errors::Failure;
use crate::link::Link;
use crate::postgres::Inner;
use crate::session::Values;
use crate::slots::Slot;
use crate::{Keys, names};

/// How long a look may take.
pub(crate) const LOOK_LIMIT: Duration = Duration::from_secs(5);

/// What a look found, with what only a request needs to know.
pub(crate) struct Found {
    pub(crate) seen: Seen,
    /// The holding session's process of the server and its name, where anybody holds it.
    pub(crate) session: Option<(i32, String)>,
}

impl Inner {
    /// Who holds it, as others can tell.
    pub(crate) async fn look(self: &Arc<Self>, on: &ElectionName) -> Result<Found, Error> {
        let keys = self.keys(on)?;
        let link = self.link().await?;
        let b = link.b();
        let (mark, presence) = (keys.mark(), keys.presence());
        let values: Values<'_> = &[&keys.0, &keys.1, &mark, &presence.0, &presence.1];
        let rows = b.session.rows(b.patience(LOOK_LIMIT), &b.look, values).await;
        let rows = rows.map_err(Failure::error)?;
        let Some(row) = rows.first() else {
            let seen = self.with_record(&link, on, None, Seen::nothing()).await?;
            return Ok(Found { seen, session: None });
        };
        let (pid, name): (i32, Option<String>) = (row.get(0), row.get(1));
        let seen = self.holder(&link, keys, row);
        let seen = self.with_record(&link, on, Some(pid), seen).await?;
        Ok(Found { seen, session: Some((pid, name.unwrap_or_default())) })
    }

    /// The holder that this row of a look or of a denial shows.
    pub(crate) fn holder(&self, link: &Link, keys: Keys, row: &Row) -> Seen {
        let (pid, name): (i32, Option<String>) = (row.get("holder"), row.get("name"));
        if pid != link.a.session.pid {
            // Who waits for an earlier leader's ttl to pass has the lock, and does not lead.
            let name = name.filter(|_| row.get("leads"));
            let id = name.and_then(|name| names::read(&name).0);
            let holder = id.map(|id| Holder { id, incarnation: None });
            return Seen { holder, epoch: marked_epoch(row), proof: Proof::Alive, ..Seen::nothing() };
        }
        match link.slots.of(keys) {
            Some(Slot::Held { who, epoch, .. }) => held_by(&who, epoch),
            // Ours and not led: nobody leads.
            Some(Slot::Waiting { until, .. }) => waiting(until),
            None => Seen { proof: Proof::Record, ..Seen::nothing() },
        }
    }
}

/// Nobody leads before then.
pub(crate) fn waiting(until: Boot) -> Seen {
    Seen { proof: Proof::Record, free_at: Some(until), ..Seen::nothing() }
}

/// A candidate of this process leads.
pub(crate) fn held_by(who: &Candidate, epoch: Epoch) -> Seen {
    let holder = Holder { id: who.id.clone(), incarnation: Some(who.incarnation) };
    Seen { holder: Some(holder), epoch: Some(epoch), proof: Proof::Alive, ..Seen::nothing() }
}
