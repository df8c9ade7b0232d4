//! Names of elections and ids of candidates as keys of a bucket.
//!
//! Owns the mapping, which is part of what lies in the bucket and never changes:
//!
//! - Letters, digits, `-`, `_` and single dots inside, at most 100 bytes: used as it is.
//! - Any other becomes a readable prefix, a `=`, and a hash (see [`shortened`]); the record has the full name.
//!
//! ```text
//! election.<name>        the lease
//! history.<name>         past leaderships
//! cooldown.<name>/<id>   until when an id stays away
//! once.<name>            a create-once note, which belongs to no election
//!
//! cluster.history.<name>                 notes on elections that are held elsewhere:
//! leader.history.<bucket>/<key>          by the profile, and in the profile leader by bucket and key
//! leader.cooldown.<bucket>/<key>/<id>
//! ```
//!
//! `=` and `/` are in a bucket's alphabet and not in that of names used as they are, so no two of these can meet.

use bellwether_backend::Note;
use bellwether_backend::names::shortened;
use bellwether_core::ElectionName;

/// Longest name used as it is, in bytes.
const PLAIN_MAX_BYTES: usize = 100;

/// All leases, as a filter.
pub(crate) const LEASES: &str = "election.>";

const LEASE: &str = "election.";

/// What the bucket of an election begins with in the profile `cluster`.
pub(crate) const CLUSTER: &str = "cluster-";

pub(crate) fn lease(on: &ElectionName) -> String {
    format!("{LEASE}{}", name(on.as_str()))
}

pub(crate) fn note(on: &ElectionName, note: &Note) -> String {
    of(&name(on.as_str()), note)
}

/// A note on an election of the profile `cluster`.
pub(crate) fn cluster_note(on: &ElectionName, note: &Note) -> String {
    format!("cluster.{}", of(&name(on.as_str()), note))
}

/// A note on the election under this key of this bucket, in the profile `leader`.
pub(crate) fn leader_note(bucket: &str, key: &str, note: &Note) -> String {
    format!("leader.{}", of(&format!("{bucket}/{}", name(key)), note))
}

fn of(place: &str, note: &Note) -> String {
    match note {
        Note::History => format!("history.{place}"),
        Note::Cooldown(id) => format!("cooldown.{place}/{}", name(id.as_str())),
        Note::Once => format!("once.{place}"),
    }
}

/// The election that a key is of: by the name in its record, or by the key itself where that is a name.
pub(crate) fn election(key: &str, in_record: Option<&str>) -> Option<ElectionName> {
    let short = key.strip_prefix(LEASE)?;
    let told = in_record.filter(|full| name(full) == short);
    let plain = (name(short) == short).then_some(short);
    told.or(plain).and_then(|name| ElectionName::new(name).ok())
}

/// Whether every client takes this as a key.
pub(crate) fn is_key(key: &str) -> bool {
    let wrong = key.is_empty() || key.starts_with('.') || key.ends_with('.') || key.contains("..");
    !wrong && key.chars().all(|c| in_alphabet(c) || matches!(c, '.' | '/' | '='))
}

/// The name of an election as a key, where no prefix sets elections apart from what else is in the bucket.
pub(crate) fn bare(on: &ElectionName) -> String {
    let name = on.as_str();
    if is_key(name) { name.to_owned() } else { short(name) }
}

fn name(name: &str) -> String {
    let plain = name.len() <= PLAIN_MAX_BYTES && is_key(name) && !name.contains(['/', '=']);
    if plain { name.to_owned() } else { short(name) }
}

fn short(name: &str) -> String {
    shortened(name, '=', |c| if in_alphabet(c) { c } else { '-' })
}

fn in_alphabet(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
}

#[cfg(test)]
mod tests {
    use bellwether_core::CandidateId;

    use super::*;

    fn on(name: &str) -> ElectionName {
        ElectionName::new(name).unwrap()
    }

    #[test]
    fn this_mapping_is_in_buckets_and_never_changes() {
        for (name, key) in [
            ("reports", "election.reports"),
            ("Job-7.prod_eu", "election.Job-7.prod_eu"),
            ("foobar ", "election.foobar-=3452fca7168b58d8"),
            (".a", "election.-a=07da4b07b4a09270"),
        ] {
            assert_eq!(lease(&on(name)), key, "{name}");
        }
        assert_eq!(note(&on("a.b"), &Note::History), "history.a.b");
        let id = Note::Cooldown(CandidateId::new("host-1").unwrap());
        assert_eq!(note(&on("a.b"), &id), "cooldown.a.b/host-1");
        assert_eq!(note(&on("a.b"), &Note::Once), "once.a.b");
        assert_eq!(cluster_note(&on("a"), &Note::History), "cluster.history.a");
        assert_eq!(leader_note("b", "jobs.eu", &Note::History), "leader.history.b/jobs.eu");
        assert_eq!(
            leader_note("b", "leaders/control", &id),
            "leader.cooldown.b/leaders-control=fbba2a8fbc3b1ca3/host-1"
        );
    }

    #[test]
    fn no_note_lies_where_another_does() {
        let ids = ["a", "b/c", "d.e"].map(|id| Note::Cooldown(CandidateId::new(id).unwrap()));
        let notes: Vec<&Note> = ids.iter().chain([&Note::History, &Note::Once]).collect();
        let mut keys = Vec::new();
        for name in ["a", "a.b", "b/a", "history.a", "leader.history.b/a", "a/a", "naïve"] {
            keys.push(lease(&on(name)));
            for kept in &notes {
                keys.extend([note(&on(name), kept), cluster_note(&on(name), kept)]);
                keys.extend(["a", "b", "history"].map(|bucket| leader_note(bucket, &bare(&on(name)), kept)));
            }
        }
        assert!(keys.iter().all(|key| is_key(key)), "{keys:?}");
        let count = keys.len();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), count, "two are the same");
    }

    #[test]
    fn odd_names_are_keys_of_their_own() {
        let long = "x".repeat(253);
        let odd = ["..", ".", "a..b", "a.", "*", ">", "a b", "a=b", "a/b", "naïve №1", "🐑", &long];
        let keys: Vec<String> = odd.iter().map(|name| lease(&on(name))).collect();
        for (at, key) in keys.iter().enumerate() {
            assert!(key.is_ascii() && key.len() < 120 && !key.contains([' ', '*', '>']), "{key}");
            assert!(!key.contains("..") && !key.ends_with('.'), "{key}");
            assert!(!keys[..at].contains(key), "{key} twice");
            assert_eq!(election(key, Some(odd[at])), Some(on(odd[at])));
            assert_eq!(election(key, None), None, "a hash is nobody's name");
        }
        assert_eq!(election("election.a.b", Some("other")), Some(on("a.b")));
        assert_eq!(election("history.a", None), None);
    }
}
