//! Create-once notes: written by whoever is first, and then the same for everybody, for good.
//!
//! A note has a name, in a space apart from elections: an election of the same name neither reads nor changes it. There is no way to
//! replace or remove one here. Whoever does that by hand, or loses the store, starts over.
//!
//! For register stores it is one [`Note`] that is only ever written where there is none. Leaves to the store that it keeps the note: one
//! that forgets by age must refuse.

use bellwether_core::{ElectionName, ErrorKind, StoreError};

use crate::{Note, Register, Write};

/// Longest content, in bytes: the founding of a cluster with dozens of voters fits, and so does the content into every store.
pub const ONCE_MAX_BYTES: usize = 16 * 1024;

/// How often a creation that lost against nothing to be seen is tried again.
const TRIES: usize = 4;

/// How the creation of a note ended.
#[derive(Clone, Debug)]
#[must_use]
pub enum Creation {
    /// This call created it.
    Created,
    /// It was there. This is its content; after an earlier [`Unknown`](Creation::Unknown) perhaps one's own.
    Exists(Vec<u8>),
    /// Perhaps created, perhaps not, perhaps later. Create it again with the same content to find out.
    Unknown(StoreError),
    /// Certainly not created, and trying again will not help.
    Refused(StoreError),
}

impl Creation {
    /// Of a call that ended in this error: unknown if trying again can help, refused if not.
    pub fn failed(error: StoreError) -> Creation {
        if error.is_retryable() { Creation::Unknown(error) } else { Creation::Refused(error) }
    }
}

/// The error of a store that keeps no such notes.
pub(crate) fn unsupported(backend: &'static str) -> StoreError {
    let sentence = "this store keeps no create-once notes: use file, Kubernetes, NATS, or PostgreSQL with tables (schema= in the URL)";
    StoreError::new(ErrorKind::Unsupported, backend, sentence)
}

/// Whether every store could keep this content as it is. A store that is no [`Register`] asks this before it creates a note.
///
/// # Errors
/// Why not: it is too long, or no text.
pub fn check_note(bytes: &[u8]) -> Result<(), String> {
    if bytes.len() > ONCE_MAX_BYTES {
        return Err(format!("a create-once note has at most {ONCE_MAX_BYTES} bytes, not {}", bytes.len()));
    }
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(()),
        _ => Err("a create-once note is UTF-8 text without NUL characters".to_owned()),
    }
}

/// [`check_note`], as an error of this store.
pub(crate) fn check(backend: &'static str, bytes: &[u8]) -> Result<(), StoreError> {
    check_note(bytes).map_err(|why| StoreError::new(ErrorKind::InvalidInput, backend, why))
}

pub(crate) async fn create(register: &impl Register, name: &ElectionName, bytes: &[u8]) -> Creation {
    if !register.capabilities().create_once {
        return Creation::Refused(unsupported(register.name()));
    }
    if let Err(error) = check(register.name(), bytes) {
        return Creation::Refused(error);
    }
    for _ in 0..TRIES {
        match register.write_note(name, &Note::Once, None, bytes).await {
            Write::Done(_) => return Creation::Created,
            Write::Unknown(error) => return Creation::Unknown(error),
            Write::Refused(error) => return Creation::Refused(error),
            Write::Conflict => {}
        }
        match register.read_note(name, &Note::Once).await {
            Ok(Some((bytes, _))) => return Creation::Exists(bytes),
            // Two that met may both have lost, as in a directory from which files were deleted by hand.
            Ok(None) => {}
            Err(error) => return Creation::failed(error),
        }
    }
    let sentence = "others keep getting in the way of the note; try again";
    Creation::Unknown(StoreError::new(ErrorKind::Unavailable, register.name(), sentence))
}

pub(crate) async fn read(
    register: &impl Register,
    name: &ElectionName,
) -> Result<Option<Vec<u8>>, StoreError> {
    if !register.capabilities().create_once {
        return Err(unsupported(register.name()));
    }
    Ok(register.read_note(name, &Note::Once).await?.map(|(bytes, _)| bytes))
}
