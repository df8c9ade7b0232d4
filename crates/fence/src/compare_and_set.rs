//! The loop of every resource that is asked over a network: look, judge, write over the very version that was judged.
//!
//! Owns nothing. Assumes that a place writes at the version it was given or not at all; leaves each call's bound to the place.

use bellwether_backend::Write;
use bellwether_core::{ErrorKind, StoreError};

use crate::{Failure, FenceError, Found, Stamp};

/// How often a writer looks again because another was faster. Each time somebody's write was done, so only a crowd gets here.
const ROUNDS: usize = 64;

/// Where one value lies.
pub(crate) trait Place {
    /// The value.
    type Value;
    /// What a write is compared with.
    type Version;

    /// The name used in errors.
    const BACKEND: &'static str;

    /// What is there now: never by a replica that may be behind.
    async fn look(&self) -> Result<(Found, Option<Self::Value>, Self::Version), StoreError>;

    /// Replaces that version, and returns what lies there now.
    async fn write(
        &self,
        at: &Self::Version,
        stamp: &Stamp,
        value: Option<Self::Value>,
    ) -> Write<Option<Self::Value>>;
}

/// A rule of [`crate::admit`]'s kind.
pub(crate) type Rule = fn(&Found, &Stamp) -> Result<(), FenceError>;

/// Writes what `next` makes of what is there, and returns it.
pub(crate) async fn replace<P: Place>(
    place: &P,
    stamp: &Stamp,
    rule: Rule,
    mut next: impl FnMut(Option<P::Value>) -> Option<P::Value>,
) -> Result<Option<P::Value>, FenceError> {
    for _ in 0..ROUNDS {
        let (found, before, version) = place.look().await.map_err(Failure::Store)?;
        rule(&found, stamp)?;
        match place.write(&version, stamp, next(before)).await {
            Write::Done(after) => return Ok(after),
            Write::Conflict => {}
            Write::Unknown(error) => return Err(FenceError::Unknown(error)),
            Write::Refused(error) => return Err(Failure::Store(error).into()),
        }
    }
    let sentence = "others write the value faster than this process does";
    Err(Failure::Store(StoreError::new(ErrorKind::Unavailable, P::BACKEND, sentence)).into())
}
