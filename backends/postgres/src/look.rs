//! Looking: who holds an election, as far as others can tell.

use std::sync::Arc;
use std::time::Duration;

use bellwether_core::{Boot, Candidate, ElectionName, Epoch, Error, Holder, Proof, Seen};

use tokio_postgres::Row;

use crate::epoch::{is_claiming, marked_epoch};
use crate::errors::{Failure, unavailable};
use crate::link::Link;
use crate::many::columns;
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
        let rows = self.rows_of(&link, &[keys]).await?;
        let row = rows.first().ok_or_else(|| unavailable("the server answered with nothing"))?;
        let (pid, seen) = self.shown(&link, keys, row);
        let seen = self.with_record(&link, on, pid, seen).await?;
        let name = row.get::<_, Option<String>>("name").unwrap_or_default();
        Ok(Found { seen, session: pid.map(|pid| (pid, name)) })
    }

    /// A row for each of these locks.
    pub(crate) async fn rows_of(&self, link: &Link, keys: &[Keys]) -> Result<Vec<Row>, Error> {
        let (ones, twos) = columns(keys.iter().copied());
        let presences = columns(keys.iter().map(|keys| keys.presence()));
        let marks: Vec<i64> = keys.iter().map(|keys| keys.mark()).collect();
        let b = link.b();
        let values: Values<'_> = &[&ones, &twos, &marks, &presences.0, &presences.1];
        b.session.rows(b.patience(LOOK_LIMIT), &b.look, values).await.map_err(Failure::error)
    }

    /// The holding session that such a row shows, if any, and what that means.
    pub(crate) fn shown(&self, link: &Link, keys: Keys, row: &Row) -> (Option<i32>, Seen) {
        let pid = row.get::<_, Option<i32>>("holder");
        (pid, pid.map_or_else(Seen::nothing, |_| self.holder(link, keys, row)))
    }

    /// The holder that this row of a look or of a denial shows.
    pub(crate) fn holder(&self, link: &Link, keys: Keys, row: &Row) -> Seen {
        let (pid, name): (i32, Option<String>) = (row.get("holder"), row.get("name"));
        if pid != link.a.session.pid {
            // Who waits for an earlier leader's ttl to pass has the lock, and does not lead. Nor does who has no epoch yet.
            let name = name.filter(|_| row.get("leads") && !is_claiming(row));
            let id = name.and_then(|name| names::read(&name).0);
            let holder = id.map(|id| Holder { id, incarnation: None });
            return Seen { holder, epoch: marked_epoch(row), proof: Proof::Alive, ..Seen::nothing() };
        }
        match link.slots.of(keys) {
            Some(Slot::Held { who, epoch, .. }) => held_by(&who, epoch),
            // Ours and not led: nobody leads.
            Some(Slot::Waiting { until, .. } | Slot::Fenced { until, .. }) => waiting(until),
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
