//! The bootstrap ledger of a cluster, on any store that keeps create-once notes.

use std::pin::Pin;
use std::sync::Arc;

use bellwether_backend::{Backend, Creation};
use bellwether_cluster::formation::Formed;
use bellwether_cluster::{
    BootstrapLedger, ClusterError, ClusterId, ErrorKind as ClusterErrorKind, Recording, parse_formed,
    print_formed,
};
use bellwether_core::{ElectionName, ErrorKind, StoreError};

/// A [`BootstrapLedger`] as one create-once note of a store: in a directory, a NATS bucket, a Kubernetes Lease, or PostgreSQL's tables.
///
/// Elections on the same store do not touch it, not even one of the same name.
///
/// A record is never changed. A cluster that takes the place of another, by a recovery or because the old one was given up, has a record
/// that is named after the old one ([`after`](BackendLedger::after)); whoever reads follows these to the last.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use bellwether::ElectionName;
/// use bellwether::cluster::{BackendLedger, BootstrapLedger as _};
///
/// let store = bellwether::memory(); // or a directory, a database, a cluster
/// let ledger = BackendLedger::new(store.backend().clone(), ElectionName::new("orders")?)?;
/// assert_eq!(ledger.read().await?, None, "no cluster was formed");
/// # Ok(())
/// # }
/// ```
pub struct BackendLedger {
    backend: Arc<dyn Backend>,
    name: ElectionName,
    after: Option<ClusterId>,
}

/// Clusters that took the place of others under one name. More is a mistake in the records.
const SUCCESSORS_MAX: usize = 1_000;

impl std::fmt::Debug for BackendLedger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (backend, name) = (self.backend.name(), &self.name);
        f.debug_struct("BackendLedger").field("backend", &backend).field("name", name).finish()
    }
}

type Fut<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

impl BackendLedger {
    /// The ledger of the cluster of this name. Clusters that share a store have names of their own.
    ///
    /// # Errors
    /// When the store keeps no create-once notes.
    pub fn new(backend: Arc<dyn Backend>, name: ElectionName) -> Result<BackendLedger, StoreError> {
        if !backend.capabilities().create_once {
            let sentence = "this store cannot keep a bootstrap ledger: use file, Kubernetes, NATS, or PostgreSQL with tables (schema= \
                            in the URL)";
            return Err(StoreError::new(ErrorKind::Unsupported, backend.name(), sentence));
        }
        Ok(BackendLedger { backend, name, after: None })
    }

    /// The ledger for a cluster that takes the place of this one: what came before it does not count, and what is created is recorded as its
    /// successor. There is one successor at most.
    #[must_use]
    pub fn after(self, cluster: ClusterId) -> BackendLedger {
        BackendLedger { after: Some(cluster), ..self }
    }

    /// The last record that counts, and the name of the one that would come next.
    async fn last(&self) -> Result<(Option<Formed>, ElectionName), ClusterError> {
        let (mut note, mut found, mut is_passed) = (self.name.clone(), None, self.after.is_none());
        for _ in 0..SUCCESSORS_MAX {
            let read = self.backend.read_once(&note).await;
            let Some(bytes) = read.map_err(|error| self.failed("read", &error))? else {
                return match found {
                    Some(formed) if !is_passed => Err(self.other_cluster(&formed)),
                    found => Ok((found, note)),
                };
            };
            let formed = parse_formed(&bytes)?;
            note = self.successor(formed.cluster)?;
            if self.after == Some(formed.cluster) {
                (found, is_passed) = (None, true);
            } else {
                found = Some(formed);
            }
        }
        let sentence = format!("the bootstrap ledger {} has no end: its records are mixed up", self.name);
        Err(ClusterError::new(ClusterErrorKind::Corrupt, sentence))
    }

    fn successor(&self, of: ClusterId) -> Result<ElectionName, ClusterError> {
        ElectionName::new(format!("{}:after:{of}", self.name)).map_err(|error| {
            ClusterError::new(ClusterErrorKind::InvalidInput, format!("the ledger's name: {error}"))
        })
    }

    fn other_cluster(&self, formed: &Formed) -> ClusterError {
        let after = self.after.map(|id| id.to_string()).unwrap_or_default();
        ClusterError::new(
            ClusterErrorKind::Refused,
            format!(
                "the bootstrap ledger {} does not know cluster {after}; it says that cluster {} was formed on {}: check which is meant",
                self.name, formed.cluster, formed.time
            ),
        )
    }

    fn failed(&self, doing: &str, error: &StoreError) -> ClusterError {
        let kind = match error.is_retryable() {
            true => ClusterErrorKind::SeedUnavailable,
            false => ClusterErrorKind::Refused,
        };
        ClusterError::new(kind, format!("cannot {doing} the bootstrap ledger {}: {error}", self.name))
    }
}

impl BootstrapLedger for BackendLedger {
    fn read(&self) -> Fut<'_, Result<Option<Formed>, ClusterError>> {
        Box::pin(async {
            let (found, _) = self.last().await?;
            Ok(found)
        })
    }

    fn create<'a>(&'a self, formed: &'a Formed) -> Fut<'a, Recording> {
        Box::pin(async {
            let note = match self.last().await {
                Ok((None, note)) => note,
                Ok((Some(found), _)) if found == *formed => return Recording::Recorded,
                Ok((Some(found), _)) => return Recording::Exists(found),
                Err(error) if error.kind() == ClusterErrorKind::SeedUnavailable => {
                    return Recording::Unknown(ClusterError::new(
                        ClusterErrorKind::Unknown,
                        error.to_string(),
                    ));
                }
                Err(error) => return Recording::Refused(error),
            };
            match self.backend.create_once(&note, &print_formed(formed)).await {
                Creation::Created => Recording::Recorded,
                Creation::Exists(bytes) => match parse_formed(&bytes) {
                    // Cluster ids are random, so an equal record is ours: the answer to an earlier call was lost.
                    Ok(found) if found == *formed => Recording::Recorded,
                    Ok(found) => Recording::Exists(found),
                    Err(error) => Recording::Refused(error),
                },
                Creation::Unknown(error) => {
                    let error = self.failed("write", &error);
                    Recording::Unknown(ClusterError::new(ClusterErrorKind::Unknown, error.to_string()))
                }
                Creation::Refused(error) => Recording::Refused(self.failed("write", &error)),
            }
        })
    }
}
