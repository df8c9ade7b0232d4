//! Names of elections as names of Leases.
//!
//! Owns the mapping, which is part of what lies in the cluster and never changes:
//!
//! - A DNS subdomain (RFC 1123) of at most 200 bytes is used as it is, unless it could be mistaken for one of the next two.
//! - Any other becomes a readable prefix, a `-`, and a hash (see [`shortened`]); an annotation has the full name.
//! - The notes on an election are in the Lease `<name>.notes`.

use bellwether_backend::names::shortened;
use bellwether_core::{CandidateId, ElectionName};

/// Leaves room for the suffix of notes in the 253 bytes of a name.
const PLAIN_MAX_BYTES: usize = 200;
const HASH_DIGITS: usize = 16;
pub(crate) const NOTES: &str = ".notes";
/// Longest name of a namespace, a Service, or a label or annotation behind its prefix.
const LABEL_MAX_BYTES: usize = 63;
/// Longest name of an annotation behind its prefix, less what stands before the id.
const ID_MAX_BYTES: usize = 50;

pub(crate) fn lease(on: &ElectionName) -> String {
    let name = on.as_str();
    if is_plain(name) { name.to_owned() } else { hashed(name) }
}

pub(crate) fn notes(on: &ElectionName) -> String {
    lease(on) + NOTES
}

/// An id as part of an annotation's name.
pub(crate) fn id(id: &CandidateId) -> String {
    let id = id.as_str();
    let fits = id.len() <= ID_MAX_BYTES && is_subdomain(id) && !looks_hashed(id);
    if fits { id.to_owned() } else { hashed(id) }
}

/// An election as part of a label's name.
pub(crate) fn label(on: &ElectionName) -> String {
    let lease = lease(on);
    if lease.len() <= LABEL_MAX_BYTES { lease } else { hashed(on.as_str()) }
}

/// Whether this may be the name of a namespace, a Service or a port.
pub(crate) fn is_label(name: &str) -> bool {
    name.len() <= LABEL_MAX_BYTES && is_subdomain(name) && !name.contains('.')
}

fn is_plain(name: &str) -> bool {
    name.len() <= PLAIN_MAX_BYTES && is_subdomain(name) && !name.ends_with(NOTES) && !looks_hashed(name)
}

pub(crate) fn is_subdomain(name: &str) -> bool {
    let ends = |label: &str| label.starts_with('-') || label.ends_with('-') || label.is_empty();
    name.chars().all(|c| in_alphabet(c) || c == '.') && !name.split('.').any(ends)
}

/// So that a name that somebody chose never meets one that was made here.
fn looks_hashed(name: &str) -> bool {
    let hash = name.rsplit('-').next().unwrap_or(name);
    hash.len() == HASH_DIGITS && hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

fn hashed(name: &str) -> String {
    let spell = |c: char| Some(c.to_ascii_lowercase()).filter(|c| in_alphabet(*c)).unwrap_or('-');
    shortened(name, '-', spell).trim_start_matches('-').to_owned()
}

fn in_alphabet(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(name: &str) -> ElectionName {
        ElectionName::new(name).unwrap()
    }

    #[test]
    fn this_mapping_is_in_clusters_and_never_changes() {
        for (name, expected) in [
            ("reports", "reports"),
            ("job-7.prod", "job-7.prod"),
            ("Reports", "reports-884bcdca26998a48"),
            (".a", "a-07da4b07b4a09270"),
        ] {
            assert_eq!(lease(&on(name)), expected, "{name}");
        }
        assert_eq!(notes(&on("a.b")), "a.b.notes");
        assert_eq!(label(&on("job-7.prod")), "job-7.prod");
        let long = label(&on(&"x".repeat(64)));
        assert!(long.len() <= LABEL_MAX_BYTES && looks_hashed(&long), "{long}");
    }

    #[test]
    fn odd_names_are_leases_of_their_own() {
        let long = "x".repeat(253);
        let odd = [
            "..",
            ".",
            "a..b",
            "a.",
            "-a",
            "a-",
            "A",
            "a b",
            "a_b",
            "naïve №1",
            "🐑",
            "🐏",
            &long,
            "a.notes",
            "0123456789abcdef",
            "a-0123456789abcdef",
        ];
        let leases: Vec<String> = odd.iter().map(|name| lease(&on(name))).collect();
        for (at, lease) in leases.iter().enumerate() {
            assert!(is_subdomain(lease) && lease.len() < 100, "{lease}");
            assert!(looks_hashed(lease), "{lease} could be a name that somebody chose");
            assert!(!leases[..at].contains(lease), "{lease} twice");
        }
        assert_ne!(lease(&on("a.notes")), notes(&on("a")), "an election never lies where notes do");
    }

    #[test]
    fn ids_are_parts_of_annotations() {
        let short = |text: &str| id(&CandidateId::new(text).unwrap());
        assert_eq!(short("reports-7f9c-x2"), "reports-7f9c-x2");
        for odd in ["a b", "A", &"x".repeat(51), &"x".repeat(253)] {
            assert!(short(odd).len() <= 63 && is_subdomain(&short(odd)), "{}", short(odd));
        }
    }
}
