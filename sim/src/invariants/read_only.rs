//! Looking writes nothing: neither `observe`, nor a watch, nor the look of an attempt.

use super::{BrokenInvariant, Verdict};
use crate::call::{Purpose, RegisterCall};
use crate::session::wire::Statement;

const NAME: &str = "read only";

/// Judges a call that leaves a process.
pub fn check(purpose: Purpose, ask: &RegisterCall) -> Verdict {
    match (purpose, ask) {
        (Purpose::Look, RegisterCall::Write { .. } | RegisterCall::WriteNote(..)) => {
            Err(BrokenInvariant::new(NAME, "a look wrote to the store"))
        }
        _ => Ok(()),
    }
}

/// Judges a statement that leaves a process.
pub fn check_asked(purpose: Purpose, statement: &Statement) -> Verdict {
    match (purpose, statement) {
        (Purpose::Look, Statement::Open(_) | Statement::Close | Statement::Look(_)) => Ok(()),
        (Purpose::Look, other) => Err(BrokenInvariant::new(NAME, format!("a look asked for {other:?}"))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::ElectionKey;
    use bellwether_backend::Record;

    #[test]
    fn a_look_that_writes_is_found() {
        assert_eq!(check_asked(Purpose::Look, &Statement::Look(Vec::new())), Ok(()));
        assert!(check_asked(Purpose::Look, &Statement::Undo(ElectionKey(0))).is_err());
        assert_eq!(check(Purpose::Look, &RegisterCall::Load), Ok(()));
        assert!(
            check(Purpose::Look, &RegisterCall::Write { at: None, record: Box::new(Record::default()) })
                .is_err()
        );
    }
}
