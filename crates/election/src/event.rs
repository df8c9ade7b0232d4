//! Events with everything that tells them apart: election, candidate, epoch, attempt, two clocks.

use bellwether_core::{Boot, Candidate, ElectionName, Epoch, Wall, What};
use serde_json::{Value, json};

/// Something happened to a candidate in an election.
///
/// ```
/// use bellwether_election::{Election, On, What};
///
/// let builder = Election::builder("reports").on(On::Any, |event| match event.what {
///     What::Acquired { epoch, .. } => println!("leading under epoch {epoch}"),
///     What::Lost { reason, .. } => println!("lost: {}", reason.as_str()),
///     _ => {}
/// });
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Event {
    /// When, by the wall clock.
    pub time: Wall,
    /// When, by the boot-time clock: events of several processes on one machine can be ordered by it.
    pub boot: Boot,
    /// The election.
    pub election: ElectionName,
    /// Who it happened to.
    pub candidate: Candidate,
    /// The leadership it is about, or the one held when it happened.
    pub epoch: Option<Epoch>,
    /// One number from a claim to its outcome.
    pub attempt: u64,
    /// What happened.
    pub what: What,
}

impl Event {
    /// The event as one JSON object, in the shape that scripts rely on.
    pub fn to_json(&self) -> Value {
        Value::Object(self.fields().into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }

    /// The event as one line of JSON, without the newline, what people look for first at its beginning.
    pub fn to_json_line(&self) -> String {
        let fields: Vec<String> =
            self.fields().into_iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
        format!("{{{}}}", fields.join(","))
    }

    /// The names of the fields that such an event has in JSON, beside those that all have.
    pub fn own_fields(what: &What) -> Vec<&'static str> {
        details(what).into_iter().map(|(name, _)| name).collect()
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        let mut fields = vec![
            ("time", self.time.to_string().into()),
            ("boot_ns", self.boot.as_nanos().into()),
            ("election", self.election.as_str().into()),
            ("id", self.candidate.id.as_str().into()),
            ("incarnation", self.candidate.incarnation.to_string().into()),
            ("event", self.what.as_str().into()),
            ("epoch", self.epoch.map(Epoch::get).into()),
        ];
        fields.extend(details(&self.what));
        fields.push(("attempt", self.attempt.into()));
        fields
    }
}

fn details(what: &What) -> Vec<(&'static str, Value)> {
    match what {
        What::StateChanged { from, to } => vec![("from", from.as_str().into()), ("to", to.as_str().into())],
        What::Acquired { deadline, .. } | What::Resumed { deadline, .. } | What::Danger { deadline, .. } => {
            vec![("deadline_boot_ns", deadline.as_nanos().into())]
        }
        What::Released { confirmed, .. } => vec![("confirmed", (*confirmed).into())],
        What::Lost { reason, deadline, released, .. } => vec![
            ("reason", reason.as_str().into()),
            ("deadline_boot_ns", deadline.as_nanos().into()),
            ("released", (*released).into()),
        ],
        What::Suspended { reason, deadline, .. } => {
            vec![("reason", reason.as_str().into()), ("deadline_boot_ns", deadline.as_nanos().into())]
        }
        What::AcquireFailed { holder } => vec![("holder", json!(holder.as_ref().map(|id| id.as_str())))],
        What::LeaderChanged { leader, .. } => vec![("leader", json!(leader.as_ref().map(|id| id.as_str())))],
        What::Error(error) => {
            vec![("error", error.to_string().into()), ("kind", error.kind().as_str().into())]
        }
        What::ChildStarted { pid } => vec![("pid", (*pid).into())],
        What::ChildExited { code } => vec![("code", (*code).into())],
        What::Missed { count, state } => vec![("count", (*count).into()), ("state", state.as_str().into())],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use bellwether_core::{CandidateId, ErrorKind, Incarnation, Reason, StateName, StoreError};

    use super::*;

    #[test]
    fn every_event_has_the_fields_that_scripts_rely_on() {
        let candidate =
            Candidate { id: CandidateId::new("a").unwrap(), incarnation: Incarnation::from_bits(0xab) };
        let epoch = Epoch::new(7).unwrap();
        let deadline = Boot::from_nanos(99);
        let id = || CandidateId::new("b").unwrap();
        let error = StoreError::new(ErrorKind::TimedOut, "memory", "no answer");
        let cases = [
            (
                What::StateChanged { from: StateName::Follower, to: StateName::Acquiring },
                r#""from":"follower","to":"acquiring""#,
            ),
            (What::Acquired { epoch, deadline }, r#""deadline_boot_ns":99"#),
            (What::Resumed { epoch, deadline }, r#""deadline_boot_ns":99"#),
            (What::Danger { epoch, deadline }, r#""deadline_boot_ns":99"#),
            (What::Released { epoch, confirmed: true }, r#""confirmed":true"#),
            (
                What::Lost { epoch, reason: Reason::Conflict, deadline, released: false },
                r#""reason":"conflict","deadline_boot_ns":99,"released":false"#,
            ),
            (
                What::Suspended { epoch, reason: Reason::Connection, deadline },
                r#""reason":"connection","deadline_boot_ns":99"#,
            ),
            (What::AcquireFailed { holder: Some(id()) }, r#""holder":"b""#),
            (What::AcquireFailed { holder: None }, r#""holder":null"#),
            (What::LeaderChanged { leader: Some(id()), epoch: None }, r#""leader":"b""#),
            (What::LeaderChanged { leader: None, epoch: None }, r#""leader":null"#),
            (What::Error(error), r#""error":"memory: no answer","kind":"timed_out""#),
            (What::Missed { count: 3, state: StateName::Leader }, r#""count":3,"state":"leader""#),
            (What::Stopped, ""),
        ];
        for (what, details) in cases {
            let word = what.as_str();
            let event = Event {
                time: Wall::from_unix_nanos(1_000),
                boot: Boot::from_nanos(5),
                election: ElectionName::new("reports").unwrap(),
                candidate: candidate.clone(),
                epoch: what.epoch(),
                attempt: 2,
                what,
            };
            let epoch = event.epoch.map_or("null", |_| "7");
            let comma = if details.is_empty() { "" } else { "," };
            let expected = format!(
                r#"{{"time":"1970-01-01T00:00:00.000001Z","boot_ns":5,"election":"reports","id":"a",
                "incarnation":"000000000000000000000000000000ab","event":"{word}","epoch":{epoch},"attempt":2{comma}{details}}}"#
            );
            assert_eq!(event.to_json(), expected.parse::<serde_json::Value>().unwrap(), "{word}");
        }
    }
}
