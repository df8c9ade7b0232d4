//! Who follows an election, for people to read.

use std::fmt;

use bellwether_core::CandidateId;

/// The candidates of an election that wait for it to be free, as a store shows them.
///
/// A hint: it may be a second old, and whoever may connect to the store may be able to add to it. Nothing is decided by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Followers {
    /// Their ids, sorted, each once.
    pub ids: Vec<CandidateId>,
    /// False when the store shows that there may be more, whose ids it cannot tell.
    pub is_complete: bool,
}

/// As a list: `b, c`, `none`, `b and others that the store cannot name`.
impl fmt::Display for Followers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const OTHERS: &str = "others that the store cannot name";
        let ids: Vec<&str> = self.ids.iter().map(CandidateId::as_str).collect();
        match (ids.is_empty(), self.is_complete) {
            (true, true) => f.write_str("none"),
            (true, false) => f.write_str(OTHERS),
            (false, true) => f.write_str(&ids.join(", ")),
            (false, false) => write!(f, "{} and {OTHERS}", ids.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_reads_as_a_sentence_does() {
        let followers = |ids: &[&str], is_complete| {
            let ids = ids.iter().map(|id| CandidateId::new(*id).unwrap()).collect();
            Followers { ids, is_complete }.to_string()
        };
        assert_eq!(followers(&["b", "c"], true), "b, c");
        assert_eq!(followers(&["b"], false), "b and others that the store cannot name");
        assert_eq!(followers(&[], true), "none");
        assert_eq!(followers(&[], false), "others that the store cannot name");
    }
}
