//! The bootstrap ledger: a record outside the cluster that says that it was formed.
//!
//! It is created once and never changed, on a store that does not share the fate of the nodes' disks. With it, a seed that lost its disk, and
//! even the loss of all disks, do not lead to a second cluster.
//!
//! Owns the record's format. Silence is not emptiness: whoever cannot read the ledger does not know whether a cluster was formed, and waits.
//! Leaves to [`formation`](crate::formation) what follows from the record, and to implementations where it is kept.

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::error::ClusterError;
use crate::formation::Formed;

/// Where the forming of a cluster is recorded, once.
pub trait BootstrapLedger: Send + Sync + 'static {
    /// The record; `None` only if the store says that there is none.
    ///
    /// # Errors
    /// [`SeedUnavailable`](crate::ErrorKind::SeedUnavailable) when the store cannot be reached, which passes;
    /// [`Corrupt`](crate::ErrorKind::Corrupt) when there is a record that cannot be read;
    /// [`Refused`](crate::ErrorKind::Refused) when the store does not let this node read it, or keeps no ledger.
    fn read(&self) -> BoxFuture<'_, Result<Option<Formed>, ClusterError>>;

    /// Creates the record, unless there is one.
    fn create<'a>(&'a self, formed: &'a Formed) -> BoxFuture<'a, Recording>;
}

/// How the creation of a record ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Recording {
    /// The ledger has exactly this record: from now on, or since an earlier call whose answer was lost.
    Recorded,
    /// It has another: that cluster was formed, and no other will be.
    Exists(Formed),
    /// Perhaps recorded, perhaps not, perhaps later. Create the same record again to find out.
    Unknown(ClusterError),
    /// Not recorded, and trying again will not help.
    Refused(ClusterError),
}

/// The format that is written. A change that older nodes could misread raises it.
const FORMAT: u32 = 1;

/// What to do about a record that makes no sense.
const ADVICE: &str = "somebody else wrote it, or it is damaged: restore it, or remove it by hand if certainly no cluster was formed with it";

#[derive(Serialize, Deserialize)]
struct Written {
    format: u32,
    #[serde(flatten)]
    formed: Formed,
}

/// Read first: what else there is depends on it.
#[derive(Deserialize)]
struct Format {
    format: u32,
}

/// The record as JSON.
pub fn print_formed(formed: &Formed) -> Vec<u8> {
    let written = Written { format: FORMAT, formed: formed.clone() };
    serde_json::to_vec(&written).expect("ids, names and text can always be written")
}

/// The record that these bytes hold.
///
/// # Errors
/// When they hold none that this version can read. That is never the same as no record.
pub fn parse_formed(bytes: &[u8]) -> Result<Formed, ClusterError> {
    let unreadable = |why: String| {
        Err(ClusterError::corrupt(format!("the bootstrap ledger cannot be read ({why}): {ADVICE}")))
    };
    match serde_json::from_slice::<Format>(bytes) {
        Ok(Format { format: FORMAT }) => {}
        Ok(Format { format }) if format > FORMAT => {
            return Err(ClusterError::corrupt(format!(
                "the bootstrap ledger has format {format}, and this version reads up to {FORMAT}: use the version that formed the cluster, or \
                 a later one"
            )));
        }
        Ok(Format { format }) => return unreadable(format!("there is no format {format}")),
        Err(error) => return unreadable(error.to_string()),
    }
    match serde_json::from_slice::<Written>(bytes) {
        Ok(Written { formed, .. }) if formed.voters.is_empty() => {
            unreadable(format!("cluster {} has no voters", formed.cluster))
        }
        Ok(Written { formed, .. }) => Ok(formed),
        Err(error) => unreadable(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::formation::Voter;
    use crate::names::{ClusterId, NodeId, NodeName};

    fn formed() -> Formed {
        let voter = |number: u64| Voter {
            // Above what a reader of JSON that knows only floating point would keep.
            node: NodeId::from_random(u64::MAX - number),
            name: NodeName::new(format!("app-{number}")).unwrap(),
        };
        Formed {
            cluster: ClusterId::from_random(u128::MAX / 3),
            voters: (0..3).map(voter).collect(),
            time: "2026-01-02T03:04:05Z".to_owned(),
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        assert_eq!(parse_formed(&print_formed(&formed())), Ok(formed()));
    }

    #[test]
    fn this_format_is_in_stores_and_never_changes() {
        let printed = String::from_utf8(print_formed(&formed())).unwrap();
        let expected = r#"{"format":1,"cluster":"55555555555555555555555555555555","voters":[{"node":18446744073709551615,"name":"app-0"},{"node":18446744073709551614,"name":"app-1"},{"node":18446744073709551613,"name":"app-2"}],"time":"2026-01-02T03:04:05Z"}"#;
        assert_eq!(printed, expected);
        let with_more = printed.replace("\"time\"", "\"later\":[1],\"time\"");
        assert_eq!(
            parse_formed(with_more.as_bytes()),
            Ok(formed()),
            "what a later version adds is left unread"
        );
    }

    #[test]
    fn what_cannot_be_read_is_an_error_that_says_what_to_do() {
        let good = String::from_utf8(print_formed(&formed())).unwrap();
        let torn = &good[..good.len() / 2];
        let nobody =
            good.replace(&good[good.find("\"voters\"").unwrap()..good.find("],").unwrap()], "\"voters\":[");
        let old = good.replace("\"format\":1", "\"format\":0");
        let bad_id = good.replace("55555555", "x");
        for bad in ["", "{}", "null", "[]", "free", torn, &nobody, &old, &bad_id] {
            let error = parse_formed(bad.as_bytes()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{bad}");
            assert!(error.to_string().contains("restore it"), "{bad}: {error}");
        }
        assert!(parse_formed(&[0xff]).is_err());
        let newer = good.replace("\"format\":1,", "\"format\":2,\"cluster_name\":7,");
        let error = parse_formed(newer.as_bytes()).unwrap_err();
        assert!(error.to_string().contains("has format 2"), "{error}");
    }
}
