//! Looking writes nothing: neither `observe`, nor a watch, nor the look of an attempt.

use super::{Finding, Verdict};
use crate::parcel::{Ask, Purpose};

const NAME: &str = "looking";

/// Judges a call that leaves a process.
pub fn check(purpose: Purpose, ask: &Ask) -> Verdict {
    match (purpose, ask) {
        (Purpose::Look, Ask::Write { .. } | Ask::WriteNote(..)) => {
            Err(Finding::new(NAME, "a look wrote to the store"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bellwether_backend::Record;

    #[test]
    fn a_look_that_writes_is_found() {
        assert_eq!(check(Purpose::Look, &Ask::Load), Ok(()));
        assert!(check(Purpose::Look, &Ask::Write { at: None, record: Box::new(Record::default()) }).is_err());
    }
}
