//! Create-once notes: rows of the table `once`, which are inserted and never changed.
//!
//! Candidates have no right to update or delete there. Schemas that an earlier version made lack the table, and the error says so.

use bellwether_backend::Creation;
use bellwether_core::{ElectionName, ErrorKind, StoreError};

use crate::errors::{BACKEND, misconfigured, unavailable};
use crate::record_sql::{CREATE_ONCE, READ_ONCE};
use crate::records::Records;
use crate::session::PgSession;
use crate::store::PgStore;

impl PgStore {
    pub(crate) async fn create_note(
        &self,
        beside: &PgSession,
        name: &ElectionName,
        bytes: &[u8],
    ) -> Creation {
        match self.records(beside).await {
            Ok(Some(records)) => records.create_once(name, bytes).await,
            Ok(None) => Creation::Refused(without_schema()),
            Err(error) => Creation::failed(error),
        }
    }

    pub(crate) async fn read_note(
        &self,
        beside: &PgSession,
        name: &ElectionName,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        match self.records(beside).await? {
            Some(records) => records.read_once(name).await,
            None => Err(without_schema()),
        }
    }
}

/// Not reached where callers go by the capability.
fn without_schema() -> StoreError {
    let sentence = "create-once notes are kept in tables: name their schema in the URL (schema=)";
    StoreError::new(ErrorKind::Unsupported, BACKEND, sentence)
}

impl Records {
    pub(crate) async fn create_once(&self, name: &ElectionName, bytes: &[u8]) -> Creation {
        // Refused before it comes here if it is not.
        let text = String::from_utf8_lossy(bytes);
        match self.rows(CREATE_ONCE, &[&name.as_str(), &text.as_ref()]).await {
            Ok(rows) if rows.is_empty() => {}
            Ok(_) => return Creation::Created,
            Err(error) => return Creation::failed(without_table(error)),
        }
        // By a statement of its own: the one that met the row may have begun before the row was committed.
        match self.read_once(name).await {
            Ok(Some(bytes)) => Creation::Exists(bytes),
            Ok(None) => Creation::Unknown(unavailable("somebody removed the note just now; try again")),
            Err(error) => Creation::failed(error),
        }
    }

    pub(crate) async fn read_once(&self, name: &ElectionName) -> Result<Option<Vec<u8>>, StoreError> {
        let rows = self.rows(READ_ONCE, &[&name.as_str()]).await;
        let rows = rows.map_err(without_table)?;
        Ok(rows.first().map(|row| row.get::<_, String>(0).into_bytes()))
    }
}

fn without_table(error: StoreError) -> StoreError {
    if error.kind() != ErrorKind::Misconfigured {
        return error;
    }
    let sentence = "the table once cannot be used: have the schema's owner run `bellwether postgres init` again, which adds it to \
                    tables of an earlier version";
    misconfigured(sentence).caused_by(error)
}
