//! Events with everything that tells them apart: election, candidate, epoch, attempt, two clocks.

use bellwether_core::{
    Boot, Candidate, CandidateId, CoreEvent, ElectionName, Epoch, ErrorKind, Reason, StateName, StoreError,
    Wall,
};
use bellwether_deadman::boot_id;
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

/// What happened.
///
/// ```
/// use bellwether_election::What;
///
/// for what in What::examples() {
///     println!("{}: {}", what.as_str(), what.meaning());
/// }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum What {
    /// The candidate went from one state to another.
    StateChanged {
        /// The state before.
        from: StateName,
        /// The state from now on.
        to: StateName,
    },
    /// A leadership began.
    Acquired {
        /// Its epoch.
        epoch: Epoch,
        /// It ends then, unless renewed.
        deadline: Boot,
    },
    /// The leader gave the leadership up.
    Released {
        /// The epoch that ended.
        epoch: Epoch,
        /// Whether the store acknowledged the release. If not, the record expires by itself.
        confirmed: bool,
    },
    /// The leadership ended against the leader's will.
    Lost {
        /// The epoch that ended.
        epoch: Epoch,
        /// Why.
        reason: Reason,
        /// The latest instant at which it ended, which may be long before the process was awake to say so.
        deadline: Boot,
        /// Whether the store acknowledged a release: the work had ended, and others need not wait for the ttl.
        released: bool,
    },
    /// Leadership is uncertain and has ended; it may resume under a new epoch.
    Suspended {
        /// The epoch that ended.
        epoch: Epoch,
        /// Why.
        reason: Reason,
        /// The latest instant at which it ended.
        deadline: Boot,
    },
    /// A new leadership began after a suspension.
    Resumed {
        /// Its epoch.
        epoch: Epoch,
        /// It ends then, unless renewed.
        deadline: Boot,
    },
    /// The store denied a claim.
    AcquireFailed {
        /// The holder, where the store can tell.
        holder: Option<CandidateId>,
    },
    /// Somebody else leads, or nobody.
    LeaderChanged {
        /// The leader as far as the store shows.
        leader: Option<CandidateId>,
        /// The leader's epoch, where the store shows it.
        epoch: Option<Epoch>,
    },
    /// The leadership was renewed, or it has just begun. Only for subscribers that ask for it:
    /// [`Events::with_renewals`](crate::Events::with_renewals).
    Renewed {
        /// The leadership.
        epoch: Epoch,
        /// It ends then, unless renewed again.
        deadline: Boot,
    },
    /// A renewal is overdue by half the time that is left until the work is told to stop.
    Danger {
        /// The leadership in danger.
        epoch: Epoch,
        /// When it ends, unless renewed.
        deadline: Boot,
    },
    /// The leader's work is a process, which was started. Sent by [`Election::report`](crate::Election::report).
    ChildStarted {
        /// Its process id.
        pid: u32,
    },
    /// The process and everything that it started have ended. Sent by [`Election::report`](crate::Election::report).
    ChildExited {
        /// Its exit code; 128 + n for signal n.
        code: u8,
    },
    /// Something went wrong. A leadership ends only where another event says so.
    Error(StoreError),
    /// This subscriber was too slow, and events were dropped here.
    Missed {
        /// How many.
        count: u64,
        /// The state after them.
        state: StateName,
    },
    /// The candidate stopped.
    Stopped,
}

impl What {
    /// One of each, for tables.
    pub fn examples() -> Vec<What> {
        let (epoch, deadline) = (Epoch::ZERO, Boot::default());
        let (reason, state) = (Reason::Deadline, StateName::Stopped);
        vec![
            What::StateChanged { from: state, to: state },
            What::Acquired { epoch, deadline },
            What::Released { epoch, confirmed: true },
            What::Lost { epoch, reason, deadline, released: false },
            What::Suspended { epoch, reason, deadline },
            What::Resumed { epoch, deadline },
            What::AcquireFailed { holder: None },
            What::LeaderChanged { leader: None, epoch: None },
            What::Renewed { epoch, deadline },
            What::Danger { epoch, deadline },
            What::ChildStarted { pid: 0 },
            What::ChildExited { code: 0 },
            What::Error(StoreError::new(ErrorKind::Unavailable, "store", "an example")),
            What::Missed { count: 0, state },
            What::Stopped,
        ]
    }

    /// The word used in events and logs.
    pub const fn as_str(&self) -> &'static str {
        self.describe().0
    }

    /// What it means, for tables.
    pub const fn meaning(&self) -> &'static str {
        self.describe().1
    }

    /// Its word, and what it means.
    const fn describe(&self) -> (&'static str, &'static str) {
        match self {
            What::StateChanged { .. } => (
                "state_changed",
                "the candidate went from one state to another: `stopped`, `follower`, `acquiring`, `leader`, `reconnecting`, `releasing`",
            ),
            What::Acquired { .. } => ("acquired", "a leadership began"),
            What::Released { .. } => {
                ("released", "the leader gave the leadership up; whether the store acknowledged it")
            }
            What::Lost { .. } => (
                "lost",
                "the leadership was lost, and why; the latest instant at which it ended; whether the store acknowledged a release",
            ),
            What::Suspended { .. } => (
                "suspended",
                "leadership is uncertain and has ended; it may resume under a new epoch within the grace",
            ),
            What::Resumed { .. } => ("resumed", "a new leadership began after a suspension"),
            What::AcquireFailed { .. } => {
                ("acquire_failed", "the store denied a claim; the holder, where the store can tell")
            }
            What::LeaderChanged { .. } => ("leader_changed", "somebody else leads, or nobody (null)"),
            What::Renewed { .. } => (
                "renewed",
                "the leadership was renewed, or has just begun; only with `--events-renewals`, and for a hook that names it",
            ),
            What::Danger { .. } => {
                ("danger", "a renewal is overdue by half the time left until the work is told to stop")
            }
            What::ChildStarted { .. } => ("child_started", "COMMAND was started; its process id"),
            What::ChildExited { .. } => (
                "child_exited",
                "COMMAND and everything that it started have ended; its exit code, 128 + n for signal n",
            ),
            What::Error(_) => {
                ("error", "something went wrong; it ends a leadership only where another event says so")
            }
            What::Missed { .. } => {
                ("missed", "the reader was too slow: `count` events were dropped here; the state after them")
            }
            What::Stopped => ("stopped", "the candidate stopped"),
        }
    }

    /// The leadership it is about, if it is about one.
    pub const fn epoch(&self) -> Option<Epoch> {
        match self {
            What::Acquired { epoch, .. }
            | What::Released { epoch, .. }
            | What::Lost { epoch, .. }
            | What::Suspended { epoch, .. }
            | What::Resumed { epoch, .. }
            | What::Renewed { epoch, .. }
            | What::Danger { epoch, .. } => Some(*epoch),
            What::LeaderChanged { epoch, .. } => *epoch,
            What::StateChanged { .. }
            | What::AcquireFailed { .. }
            | What::ChildStarted { .. }
            | What::ChildExited { .. }
            | What::Error(_)
            | What::Missed { .. }
            | What::Stopped => None,
        }
    }
}

impl From<CoreEvent> for What {
    fn from(event: CoreEvent) -> What {
        match event {
            CoreEvent::StateChanged { from, to } => What::StateChanged { from, to },
            CoreEvent::Acquired { epoch, deadline } => What::Acquired { epoch, deadline },
            CoreEvent::Released { epoch, confirmed } => What::Released { epoch, confirmed },
            CoreEvent::Lost { epoch, reason, deadline, released } => {
                What::Lost { epoch, reason, deadline, released }
            }
            CoreEvent::Suspended { epoch, reason, deadline } => What::Suspended { epoch, reason, deadline },
            CoreEvent::Resumed { epoch, deadline } => What::Resumed { epoch, deadline },
            CoreEvent::AcquireFailed { holder } => What::AcquireFailed { holder },
            CoreEvent::LeaderChanged { leader, epoch } => What::LeaderChanged { leader, epoch },
            CoreEvent::Danger { epoch, deadline } => What::Danger { epoch, deadline },
            CoreEvent::Error(error) => What::Error(error),
            CoreEvent::Stopped => What::Stopped,
        }
    }
}

fn details(what: &What) -> Vec<(&'static str, Value)> {
    match what {
        What::StateChanged { from, to } => vec![("from", from.as_str().into()), ("to", to.as_str().into())],
        What::Acquired { deadline, .. } | What::Resumed { deadline, .. } => {
            vec![("deadline_boot_ns", deadline.as_nanos().into()), ("boot_id", boot_id().into())]
        }
        What::Renewed { deadline, .. } | What::Danger { deadline, .. } => {
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
        What::Stopped => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use bellwether_core::Incarnation;

    use super::*;

    #[test]
    fn every_event_has_the_fields_that_scripts_rely_on() {
        let candidate =
            Candidate { id: CandidateId::new("a").unwrap(), incarnation: Incarnation::from_bits(0xab) };
        let epoch = Epoch::new(7).unwrap();
        let deadline = Boot::from_nanos(99);
        let id = || CandidateId::new("b").unwrap();
        let error = StoreError::new(ErrorKind::TimedOut, "memory", "no answer");
        let began = format!(r#""deadline_boot_ns":99,"boot_id":{}"#, json!(boot_id()));
        let cases = [
            (
                What::StateChanged { from: StateName::Follower, to: StateName::Acquiring },
                r#""from":"follower","to":"acquiring""#,
            ),
            (What::Acquired { epoch, deadline }, &began),
            (What::Resumed { epoch, deadline }, &began),
            (What::Renewed { epoch, deadline }, r#""deadline_boot_ns":99"#),
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
