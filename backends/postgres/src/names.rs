//! `application_name`: all that other sessions can read of a holder.
//!
//! `bellwether/<id> <ttl>ms`, in at most 63 bytes of printable ASCII, since the server cuts and replaces the rest. Other bytes
//! of the id are written as `%XX`. An id that does not fit, and an id or ttl of which the session serves several, is written as `~`: what
//! cannot be told is left out, not guessed.

use std::time::Duration;

use bellwether_core::CandidateId;

/// The server's limit (`NAMEDATALEN` − 1).
const NAME_MAX_BYTES: usize = 63;
const PROGRAM: &str = "bellwether/";
const UNTOLD: &str = "~";

/// What a session is called.
pub(crate) fn write(id: Option<&CandidateId>, ttl: Option<Duration>) -> String {
    let ttl = ttl.map_or_else(|| UNTOLD.to_owned(), |ttl| format!("{}ms", millis(ttl)));
    let told = |id: &str| format!("{PROGRAM}{id} {ttl}");
    let name = id.map(|id| told(&escape(id.as_str())));
    name.filter(|name| name.len() <= NAME_MAX_BYTES).unwrap_or_else(|| told(UNTOLD))
}

/// Who holds a session of this name, as far as that is told, and its ttl.
pub(crate) fn read(name: &str) -> (Option<CandidateId>, Option<Duration>) {
    let Some((id, ttl)) = name.strip_prefix(PROGRAM).and_then(|rest| rest.split_once(' ')) else {
        return (None, None);
    };
    let id = if id == UNTOLD { None } else { unescape(id).and_then(|id| CandidateId::new(id).ok()) };
    let ttl = ttl.strip_suffix("ms").and_then(|ttl| ttl.parse().ok()).map(Duration::from_millis);
    (id, ttl)
}

/// Whether a session of this name is a candidate's of ours.
pub(crate) fn is_ours(name: &str) -> bool {
    name.starts_with(PROGRAM)
}

/// Whole milliseconds, rounded up: a lease that the server ends early would be worse than one it ends late.
pub(crate) fn millis(ttl: Duration) -> i64 {
    i64::try_from(ttl.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}

pub(crate) fn escape(id: &str) -> String {
    let mut text = String::new();
    for byte in id.bytes() {
        match byte {
            b'%' | b'~' | b' ' | b'\'' | b'\\' => text.push_str(&format!("%{byte:02X}")),
            0x21..=0x7e => text.push(char::from(byte)),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

pub(crate) fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_back_as_they_were_or_not_at_all() {
        let ttl = Duration::from_millis(1500);
        for (id, told) in
            [("host-1", true), ("a b/c%~'", true), ("\u{1F411}", true), (&*"x".repeat(60), false)]
        {
            let id = CandidateId::new(id).unwrap();
            let name = write(Some(&id), Some(ttl));
            assert!(name.len() <= NAME_MAX_BYTES && name.is_ascii(), "{name}");
            assert_eq!(read(&name), (told.then_some(id), Some(ttl)), "{name}");
        }
        assert_eq!(read(&write(None, Some(ttl))), (None, Some(ttl)));
        assert_eq!(read(&write(None, None)), (None, None));
    }

    #[test]
    fn what_others_call_themselves_is_nobody_s_id() {
        for name in ["", "psql", "bellwether/", "bellwether/% 1ms", "bellwether/%zz 1ms"] {
            assert_eq!(read(name).0, None, "{name}");
        }
    }
}
