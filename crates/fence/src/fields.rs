//! A stamp as two fields beside a value: headers of a message or a request, annotations of an object.
//!
//! ```text
//! Bellwether-Epoch: 7
//! Bellwether-Election: reports
//! ```
//!
//! The name of the election is percent-encoded, because headers take neither every letter nor spaces at an end. Letters, digits and
//! `-._~` stay as they are.

use bellwether_core::{ElectionName, Epoch};

use crate::{Found, Stamp};

/// The header with the epoch.
pub const EPOCH_HEADER: &str = "Bellwether-Epoch";
/// The header with the name of the election.
pub const ELECTION_HEADER: &str = "Bellwether-Election";

/// The epoch and the election, as text.
pub(crate) fn write(stamp: &Stamp) -> (String, String) {
    (stamp.epoch.to_string(), encode(stamp.election.as_str()))
}

/// What two fields say, each with all the values that it was given.
pub(crate) fn read<'a>(
    epochs: impl Iterator<Item = &'a str>,
    elections: impl Iterator<Item = &'a str>,
) -> Found {
    let (epochs, elections): (Vec<&str>, Vec<&str>) = (epochs.collect(), elections.collect());
    match (&epochs[..], &elections[..]) {
        ([], []) => Found::Unstamped,
        ([epoch], [election]) => match (parse_epoch(epoch), decode(election)) {
            (Some(epoch), Some(election)) => Found::By(Stamp { election, epoch }),
            _ => Found::Unreadable(format!("epoch {epoch:?}, election {election:?}")),
        },
        _ => Found::Unreadable(format!("epochs {epochs:?}, elections {elections:?}")),
    }
}

/// Only the one spelling that we write.
pub(crate) fn parse_epoch(digits: &str) -> Option<Epoch> {
    let number: u64 = digits.parse().ok()?;
    Epoch::new(number).filter(|_| number.to_string() == digits)
}

fn encode(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        if is_plain(byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

/// The name, if this is how [`encode`] writes it.
pub(crate) fn decode(text: &str) -> Option<ElectionName> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let (byte, after) = match first {
            b'%' => {
                let digits = std::str::from_utf8(after.get(..2)?).ok()?;
                (u8::from_str_radix(digits, 16).ok()?, &after[2..])
            }
            byte => (*byte, after),
        };
        bytes.push(byte);
        rest = after;
    }
    let name = ElectionName::new(String::from_utf8(bytes).ok()?).ok()?;
    (encode(name.as_str()) == text).then_some(name)
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_read_back_as_it_was_written() {
        for name in ["reports", "a b", " x ", "naïve job №1", "100%", "a/b", &"x".repeat(253)] {
            for epoch in [0, 7, Epoch::MAX.get()] {
                let stamp = Stamp::new(ElectionName::new(name).unwrap(), Epoch::new(epoch).unwrap());
                let (epoch, election) = write(&stamp);
                assert!(election.bytes().all(|byte| byte.is_ascii_graphic()), "{election}");
                let read = read([epoch.as_str()].into_iter(), [election.as_str()].into_iter());
                assert_eq!(read, Found::By(stamp));
            }
        }
    }

    #[test]
    fn neither_field_is_no_stamp_and_anything_else_is_a_broken_one() {
        let read = |epochs: &[&str], elections: &[&str]| {
            super::read(epochs.iter().copied(), elections.iter().copied())
        };
        assert_eq!(read(&[], &[]), Found::Unstamped);
        for (epochs, elections) in [
            (&["7"][..], &[][..]),
            (&[], &["a"]),
            (&["7", "8"], &["a"]),
            (&["7"], &["a", "a"]),
            (&["9007199254740992"], &["a"]),
            (&["07"], &["a"]),
            (&["+7"], &["a"]),
            (&["-1"], &["a"]),
            (&[""], &["a"]),
            (&["7"], &[""]),
            (&["7"], &["a b"]),
            (&["7"], &["a%"]),
            (&["7"], &["a%2"]),
            (&["7"], &["%61"]),
            (&["7"], &["%ff"]),
            (&["7"], &["%2f"]),
            (&["7"], &["%0A"]),
        ] {
            let found = read(epochs, elections);
            assert!(matches!(found, Found::Unreadable(_)), "{epochs:?} {elections:?}: {found:?}");
        }
    }
}
