//! The first line of every version: who wrote it. The content follows as it is.
//!
//! ```text
//! bellwether-fence/1 epoch=7 present reports
//! bellwether-fence/1 epoch=8 removed reports
//! ```
//!
//! The election's name comes last and ends with the line; no name has a control character.

use bellwether_core::{ElectionName, Epoch};

use crate::{Found, Stamp};

const FORMAT: &str = "bellwether-fence/1 ";
/// What every format begins with, so that a later one is not taken for content.
const ANY_FORMAT: &[u8] = b"bellwether-fence/";
/// No line of ours is longer: the format, an epoch of 16 digits, the longest name.
const LINE_MAX_BYTES: usize = FORMAT.len() + "epoch=9007199254740991 present ".len() + 253;

/// One version: its line, and the content where it has one.
pub(super) fn write(stamp: &Stamp, content: Option<&[u8]>) -> Vec<u8> {
    let state = if content.is_some() { "present" } else { "removed" };
    let mut bytes = format!("{FORMAT}epoch={} {state} {}\n", stamp.epoch, stamp.election).into_bytes();
    bytes.extend_from_slice(content.unwrap_or_default());
    bytes
}

/// What a version says, and its content.
pub(super) fn read(bytes: &[u8]) -> (Found, Option<&[u8]>) {
    if !bytes.starts_with(ANY_FORMAT) {
        return (Found::Unstamped, Some(bytes));
    }
    let unreadable = || {
        let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = &line[..line.len().min(LINE_MAX_BYTES)];
        (Found::Unreadable(format!("its first line is {:?}", String::from_utf8_lossy(line))), None)
    };
    let head = &bytes[..bytes.len().min(LINE_MAX_BYTES + 1)];
    let Some(end) = head.iter().position(|byte| *byte == b'\n') else { return unreadable() };
    let content = &bytes[end + 1..];
    match std::str::from_utf8(&bytes[..end]).ok().and_then(parse) {
        Some((stamp, true)) => (Found::By(stamp), Some(content)),
        Some((stamp, false)) if content.is_empty() => (Found::By(stamp), None),
        _ => unreadable(),
    }
}

/// Only what [`write`] writes, so that nobody else's file is taken for ours.
fn parse(line: &str) -> Option<(Stamp, bool)> {
    let (digits, rest) = line.strip_prefix(FORMAT)?.strip_prefix("epoch=")?.split_once(' ')?;
    let (state, election) = rest.split_once(' ')?;
    let number: u64 = digits.parse().ok().filter(|number: &u64| number.to_string() == digits)?;
    let present = match state {
        "present" => true,
        "removed" => false,
        _ => return None,
    };
    Some((Stamp::new(ElectionName::new(election).ok()?, Epoch::new(number)?), present))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(election: &str, epoch: u64) -> Stamp {
        Stamp::new(ElectionName::new(election).unwrap(), Epoch::new(epoch).unwrap())
    }

    #[test]
    fn a_version_is_read_back_as_it_was_written() {
        for election in ["reports", "a b", "naïve job №1", &"x".repeat(253)] {
            for epoch in [0, 1, Epoch::MAX.get()] {
                for content in
                    [Some(&b""[..]), Some(b"x\ny\n"), Some(b"\0\xff"), Some(b"bellwether-fence/1 "), None]
                {
                    let bytes = write(&stamp(election, epoch), content);
                    assert_eq!(read(&bytes), (Found::By(stamp(election, epoch)), content));
                }
            }
        }
    }

    #[test]
    fn what_begins_otherwise_was_written_by_somebody_else() {
        for bytes in [&b""[..], b"x", b"bellwether", b" bellwether-fence/1 epoch=1 present a\n"] {
            assert_eq!(read(bytes), (Found::Unstamped, Some(bytes)));
        }
    }

    #[test]
    fn a_line_that_is_not_exactly_ours_is_no_epoch_at_all() {
        for line in [
            "bellwether-fence/1 epoch=9007199254740992 present a\n",
            "bellwether-fence/1 epoch=007 present a\n",
            "bellwether-fence/1 epoch=+7 present a\n",
            "bellwether-fence/1 epoch=-7 present a\n",
            "bellwether-fence/1 epoch=7 present \n",
            "bellwether-fence/1 epoch=7 gone a\n",
            "bellwether-fence/1 epoch=7 removed a\nx",
            "bellwether-fence/1 epoch=7 present a",
            "bellwether-fence/1 epoch=7 present a\r\n",
            "bellwether-fence/1  epoch=7 present a\n",
            "bellwether-fence/2 epoch=7 present a\n",
            "bellwether-fence/",
        ] {
            let (found, content) = read(line.as_bytes());
            assert!(matches!(found, Found::Unreadable(_)) && content.is_none(), "{line:?}: {found:?}");
        }
        let long = format!("bellwether-fence/1 epoch=7 present {}\n", "x".repeat(254));
        assert!(matches!(read(long.as_bytes()).0, Found::Unreadable(_)));
    }
}
