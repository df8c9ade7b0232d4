//! openraft's suite for storage.

use openraft::StorageError;
use openraft::testing::log::{StoreBuilder, Suite};
use tempfile::TempDir;

use super::super::log_store::LogStore;
use super::super::machine::Machine;
use super::super::types::Types;
use super::open;

struct Builder;

impl StoreBuilder<Types, LogStore, Machine, TempDir> for Builder {
    async fn build(&self) -> Result<(TempDir, LogStore, Machine), StorageError<Types>> {
        let directory = TempDir::new().unwrap();
        let storage = open(directory.path()).unwrap();
        Ok((directory, storage.log, storage.machine))
    }
}

#[tokio::test]
async fn openrafts_suite_passes() {
    Suite::test_all(Builder).await.unwrap();
}
