//! Epochs from the server's own counters.
//!
//! `timeline << 40 | xid`. The transaction id only goes up on one timeline, and a promotion begins a new one: old and new
//! primary were seen to hand out the same xid. 13 bits of timeline and 40 of xid stay below 2^53; the one lasts for 8,191
//! promotions, the other for a trillion transactions, and past either the claim is refused instead of wrapping.
//!
//! Others read a leader's epoch from the *mark*, a lock of one number whose low 40 bits are the transaction id. Its timeline
//! is the server's present one: every session of a primary was opened on it.

use bellwether_core::{Epoch, ErrorKind, StoreError};
use tokio_postgres::Row;

use crate::errors::BACKEND;
use crate::sql;

const XID_BITS: u32 = 40;

pub(crate) fn epoch(timeline: i32, xid: i64) -> Result<Epoch, StoreError> {
    let parts = (u64::try_from(timeline).ok(), u64::try_from(xid).ok());
    let (Some(timeline), Some(xid)) = parts else { return Err(too_far(timeline, xid)) };
    let fits = xid < 1 << XID_BITS && timeline < 1 << (53 - XID_BITS);
    let epoch = if fits { Epoch::new(timeline << XID_BITS | xid) } else { None };
    epoch.ok_or_else(|| too_far(timeline as i32, xid as i64))
}

/// The epoch that the mark of a lock's holder shows.
pub(crate) fn marked_epoch(row: &Row) -> Option<Epoch> {
    let xid: Option<i64> = row.get("marked_xid");
    epoch(row.get::<_, Option<i32>>("marked_timeline")?, xid?).ok()
}

/// Whether the holder's claim is still being made durable.
pub(crate) fn is_claiming(row: &Row) -> bool {
    row.get::<_, Option<i64>>("marked_xid") == Some(sql::UNFINISHED)
}

fn too_far(timeline: i32, xid: i64) -> StoreError {
    let sentence = format!(
        "timeline {timeline} and transaction id {xid} do not fit into an epoch below 2^53; move the elections to \
         a freshly initialised server"
    );
    StoreError::new(ErrorKind::Misconfigured, BACKEND, sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promotion_counts_for_more_than_any_transaction() {
        let (old, new) = (epoch(1, (1 << 40) - 1).unwrap(), epoch(2, 3).unwrap());
        assert!(new > old);
        assert_eq!(epoch(8191, (1 << 40) - 1).unwrap(), Epoch::MAX);
        assert!(epoch(8192, 1).is_err() && epoch(1, 1 << 40).is_err() && epoch(-1, 1).is_err());
    }
}
