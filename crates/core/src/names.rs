//! Names of elections and candidates, checked once, where they come in.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

/// A name that cannot be used, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadName {
    what: &'static str,
    why: String,
}

impl fmt::Display for BadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.what, self.why)
    }
}

impl std::error::Error for BadName {}

/// A name that was checked already is never bad.
impl From<Infallible> for BadName {
    fn from(never: Infallible) -> BadName {
        match never {}
    }
}

/// The longest name of an election and the longest id of a candidate, in bytes. A DNS name has the same limit, so common names
/// fit every store as they are.
pub const NAME_MAX_BYTES: usize = 253;

fn check(what: &'static str, text: &str) -> Result<(), BadName> {
    let why = if text.is_empty() {
        "must not be empty".to_owned()
    } else if text.len() > NAME_MAX_BYTES {
        format!("must have at most {NAME_MAX_BYTES} bytes, and this one has {}: shorten it", text.len())
    } else if let Some(bad) = text.chars().find(|c| c.is_control()) {
        format!("must not contain control characters, and this one has {bad:?}: remove it")
    } else {
        return Ok(());
    };
    Err(BadName { what, why })
}

/// The name of an election: UTF-8, 1 to 253 bytes, no control characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ElectionName(Arc<str>);

/// The stable name of a candidate: UTF-8, 1 to 253 bytes, no control characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CandidateId(Arc<str>);

macro_rules! name {
    ($type:ident, $what:literal) => {
        impl $type {
            /// Checks the text.
            pub fn new(text: impl AsRef<str>) -> Result<$type, BadName> {
                check($what, text.as_ref())?;
                Ok($type(Arc::from(text.as_ref())))
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl std::str::FromStr for $type {
            type Err = BadName;
            fn from_str(text: &str) -> Result<$type, BadName> {
                $type::new(text)
            }
        }

        impl TryFrom<&str> for $type {
            type Error = BadName;
            fn try_from(text: &str) -> Result<$type, BadName> {
                $type::new(text)
            }
        }

        impl TryFrom<String> for $type {
            type Error = BadName;
            fn try_from(text: String) -> Result<$type, BadName> {
                $type::new(text)
            }
        }

        impl From<&$type> for $type {
            fn from(name: &$type) -> $type {
                name.clone()
            }
        }
    };
}

name!(ElectionName, "the election's name");
name!(CandidateId, "the candidate's id");

/// One start of one candidate: 128 random bits, new at each start, so that two processes with one id differ.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(u128);

impl Incarnation {
    /// From bits that the caller drew at random.
    pub const fn from_bits(bits: u128) -> Incarnation {
        Incarnation(bits)
    }

    /// The bits that it was made from.
    pub const fn bits(self) -> u128 {
        self.0
    }

    /// Parses what `Display` writes: 32 lower-case hexadecimal digits.
    pub fn parse(text: &str) -> Option<Incarnation> {
        let well_formed = text.len() == 32 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if !well_formed {
            return None;
        }
        u128::from_str_radix(text, 16).ok().map(Incarnation)
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.8}…", self.to_string())
    }
}

/// A process that takes part in an election.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Candidate {
    /// The stable name.
    pub id: CandidateId,
    /// This start of the candidate.
    pub incarnation: Incarnation,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_but_legal_names_are_taken_as_they_are() {
        for name in ["reports", "a/b", "..", "naïve job №1", "with space", "-x", "*", "\u{1F411}"] {
            assert_eq!(ElectionName::new(name).unwrap().as_str(), name);
        }
    }

    #[test]
    fn names_that_no_store_could_carry_are_refused_with_the_reason() {
        let long = "x".repeat(254);
        for (name, part) in [("", "empty"), (long.as_str(), "254"), ("a\nb", "control"), ("a\0b", "control")]
        {
            let said = CandidateId::new(name).unwrap_err().to_string();
            assert!(said.contains(part), "{said}");
        }
    }

    #[test]
    fn an_incarnation_is_read_back_exactly_or_not_at_all() {
        let one = Incarnation::from_bits(0x00ff);
        assert_eq!(Incarnation::parse(&one.to_string()), Some(one));
        for text in ["", "ff", "+0000000000000000000000000000ff", &"F".repeat(32), &"0".repeat(33)] {
            assert_eq!(Incarnation::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_longest_name_is_accepted_and_names_print_as_they_are() {
        let name: ElectionName = "x".repeat(NAME_MAX_BYTES).parse().unwrap();
        assert_eq!(name.to_string().len(), NAME_MAX_BYTES);
        assert!("x".repeat(NAME_MAX_BYTES + 1).parse::<ElectionName>().is_err());
        let id = CandidateId::new("a b").unwrap();
        assert_eq!((id.to_string(), format!("{id:?}")), ("a b".to_owned(), "\"a b\"".to_owned()));
    }

    #[test]
    fn an_incarnation_is_shortened_for_logs() {
        let one = Incarnation::from_bits(0xabcd_ef01 << 96 | 7);
        assert_eq!(one.to_string(), "abcdef01000000000000000000000007");
        assert_eq!(format!("{one:?}"), "abcdef01…");
        assert_eq!(Incarnation::from_bits(one.bits()), one);
    }
}
