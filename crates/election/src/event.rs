//! Events with everything that tells them apart: election, candidate, epoch, attempt, two clocks.

use bellwether_core::{Boot, Candidate, ElectionName, Epoch, Wall, What};
use serde_json::{Value, json};

/// Something happened to a candidate in an election.
#[derive(Clone, Debug)]
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
