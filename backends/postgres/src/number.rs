//! The epoch of a claim: read from the answer, above everything that this candidate has seen, and written where there are tables.

use bellwether_core::{Epoch, Error};
use tokio_postgres::Row;

use crate::claim::Claim;
use crate::errors::{Failure, misconfigured, unavailable};
use crate::tables::Written;
use crate::{epoch, sql};

/// How many transaction ids a claim uses up to get above a floor. More are missing only where the database was
/// restored from a backup.
const ADVANCE_MAX: u64 = 10_000;

impl Claim<'_> {
    /// The epoch, if the lock is ours.
    pub(crate) fn granted(&self, row: &Row) -> Result<Option<Epoch>, Error> {
        let session = &self.link.a.session;
        if row.get::<_, i32>("pid") != session.pid {
            session.throw_away();
            return Err(misconfigured(
                "the session moved to another server process: connect without a pooler",
            ));
        }
        if row.get("standby") {
            session.throw_away();
            return Err(unavailable("the server has become a standby"));
        }
        if !row.get::<_, bool>("got") {
            return Ok(None);
        }
        let numbered = epoch::epoch(row.get("timeline"), row.get("xid"));
        // An epoch that cannot be issued must not leave a lock that nobody leads on.
        numbered.map(Some).inspect_err(|_| session.throw_away())
    }

    /// The epoch to lead under, written where there are tables, and whether the last leader crashed. `None`: the tables cannot
    /// be written yet.
    pub(crate) async fn numbered(
        &self,
        epoch: Epoch,
        after_crash: Option<bool>,
    ) -> Result<Option<(Epoch, bool)>, Error> {
        let Some(records) = self.inner.records(self.link).await? else {
            return Ok(Some((self.above_floor(epoch).await?, after_crash.unwrap_or(false))));
        };
        let claimed = (self.keys, self.bid);
        match self.inner.write_record(self.link, self.on, claimed, &records, epoch).await? {
            Written::NotYet => Ok(None),
            Written::Done { epoch, unreleased } => Ok(Some((epoch, after_crash.unwrap_or(unreleased)))),
        }
    }

    /// Uses up transaction ids where this candidate has seen a higher epoch than the server's counter gives.
    async fn above_floor(&self, epoch: Epoch) -> Result<Epoch, Error> {
        if epoch > self.bid.floor {
            return Ok(epoch);
        }
        let missing = self.bid.floor.get() - epoch.get() + 1;
        if missing > ADVANCE_MAX {
            self.link.a.session.throw_away();
            return Err(misconfigured(format!(
                "the server's next epoch is {epoch}, and {} was seen before: it was restored from a backup or is another one; \
                 start every candidate anew to accept it",
                self.bid.floor
            )));
        }
        let b = self.link.b();
        b.session.execute(b.patience(self.bid.ttl), &sql::advance(missing)).await.map_err(Failure::error)?;
        let row = self.on_a(&self.link.a.again).await.map_err(Failure::error)?;
        let again = self.granted(&row)?;
        self.marked(self.mark(&row));
        match again {
            Some(epoch) if epoch > self.bid.floor => Ok(epoch),
            _ => Err(unavailable("no epoch above those before it was to be had")),
        }
    }
}
