//! What sessions tell each other by NOTIFY: a word, the election's keys, and what belongs to it.
//!
//! ```text
//! release KEY1 KEY2                              released
//! reserve KEY1 KEY2 MILLISECONDS ID              about to be released, and reserved for that candidate
//! claim KEY1 KEY2 PROCESS ID EPOCH               taken by that process of the server
//! ask KEY1 KEY2 EPOCH step-down [ID]             to the leader of that epoch and no other
//! ask KEY1 KEY2 EPOCH preempt PRIORITY ID
//! ```
//!
//! Any role that may connect can send any of these, so each is a hint. The process and the epoch of a claim are read only by earlier
//! versions.
//!
//! Ids are escaped as in `application_name`, and an id of the greatest length fits the server's 8,000 bytes three times over.
//! What cannot be read is a later version's, or nobody's, and is left alone.

use std::time::Duration;

use bellwether_backend::SessionNotice;
use bellwether_backend::url::unescape;
use bellwether_core::{Ask, CandidateId, Epoch, Request};

use crate::Keys;
use crate::names::{escape, millis};

/// As it is sent. A claim is told by the statement that makes it ([`claimed`]).
pub(crate) fn write(notice: &SessionNotice<Keys>) -> String {
    match notice {
        SessionNotice::Released(Keys(one, two)) => format!("release {one} {two}"),
        SessionNotice::Reserved(Keys(one, two), span, id) => {
            format!("reserve {one} {two} {} {}", millis(*span), escape(id.as_str()))
        }
        SessionNotice::Claimed(keys, id) => format!("{}0", claimed(*keys, 0, id)),
        SessionNotice::Requested(Keys(one, two), Request { epoch, what }) => {
            let what = match what {
                Ask::StepDown { to: None } => "step-down".to_owned(),
                Ask::StepDown { to: Some(to) } => format!("step-down {}", escape(to.as_str())),
                Ask::StepDownLater { to: None, after } => format!("step-down-later {}", millis(*after)),
                Ask::StepDownLater { to: Some(to), after } => {
                    format!("step-down-later {} {}", millis(*after), escape(to.as_str()))
                }
                Ask::Preempt { by, priority } => format!("preempt {priority} {}", escape(by.as_str())),
            };
            format!("ask {one} {two} {epoch} {what}")
        }
    }
}

/// What was sent, if it makes sense.
pub(crate) fn read(payload: &str) -> Option<SessionNotice<Keys>> {
    let mut words = payload.split(' ');
    let kind = words.next()?;
    let keys = Keys(words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let rest: Vec<&str> = words.collect();
    match (kind, &rest[..]) {
        ("release", []) => Some(SessionNotice::Released(keys)),
        ("reserve", [millis, id]) => Some(SessionNotice::Reserved(keys, span(millis)?, candidate(id)?)),
        ("claim", [_, id, _]) => Some(SessionNotice::Claimed(keys, candidate(id)?)),
        ("ask", [epoch, what @ ..]) => {
            let what = match what {
                ["step-down"] => Ask::StepDown { to: None },
                ["step-down", to] => Ask::StepDown { to: Some(candidate(to)?) },
                ["step-down-later", after] => Ask::StepDownLater { to: None, after: span(after)? },
                ["step-down-later", after, to] => {
                    Ask::StepDownLater { to: Some(candidate(to)?), after: span(after)? }
                }
                ["preempt", priority, by] => {
                    Ask::Preempt { by: candidate(by)?, priority: priority.parse().ok()? }
                }
                _ => return None,
            };
            Some(SessionNotice::Requested(keys, Request { epoch: number(epoch)?, what }))
        }
        _ => None,
    }
}

/// The notice of a claim but for the epoch, which the server adds.
pub(crate) fn claimed(Keys(one, two): Keys, pid: i32, id: &CandidateId) -> String {
    format!("claim {one} {two} {pid} {} ", escape(id.as_str()))
}

fn candidate(text: &str) -> Option<CandidateId> {
    CandidateId::new(unescape(text)?).ok()
}

fn span(millis: &str) -> Option<Duration> {
    Some(Duration::from_millis(millis.parse().ok()?))
}

fn number(text: &str) -> Option<Epoch> {
    Epoch::new(text.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_come_back_as_they_were_and_fit() {
        let odd = CandidateId::new("näme with \"quotes\", a \\ and a /").unwrap();
        let long = CandidateId::new("\u{1F411}".repeat(bellwether_core::NAME_MAX_BYTES / 4)).unwrap();
        let (keys, epoch) = (Keys(-5, i32::MAX), Epoch::new(1 << 40 | 77).unwrap());
        let ask = |what| SessionNotice::Requested(keys, Request { epoch, what });
        for id in [odd, long] {
            for note in [
                SessionNotice::Released(keys),
                SessionNotice::Reserved(keys, Duration::from_millis(200), id.clone()),
                SessionNotice::Claimed(keys, id.clone()),
                ask(Ask::StepDown { to: None }),
                ask(Ask::StepDown { to: Some(id.clone()) }),
                ask(Ask::StepDownLater { to: None, after: Duration::from_millis(1) }),
                ask(Ask::StepDownLater { to: Some(id.clone()), after: Duration::from_secs(90) }),
                ask(Ask::Preempt { by: id.clone(), priority: -3 }),
            ] {
                let text = write(&note);
                assert!(text.len() < 8_000, "{text}");
                assert_eq!(read(&text), Some(note), "{text}");
            }
        }
    }

    #[test]
    fn what_makes_no_sense_is_nobody_s() {
        for text in
            ["", "release 1", "release 1 x", "release 1 2 3", "ask 1 2 3", "ask 1 2 3 dance", "claim 1 2 3 a"]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
