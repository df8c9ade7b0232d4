//! Records as JSON: the format of every store that has none of its own.
//!
//! Owns both directions. Written is the common lease format `{"holder", "renewTime", "leaseDuration"}`, complete and
//! first, and after it what Bellwether adds, so that tools that know only the three fields read ours. Released is
//! holder `""`.
//!
//! Reading takes any bytes and never fails. Fields are of two kinds:
//!
//! - **What decisions hang on** (holder, epoch, incarnation, leaseDuration, beat): malformed, they make the whole
//!   record [`Record::unreadable`], which counts as held by an unknown for a ttl, and is then replaced.
//! - **What is for readers or for politeness** (times, priority, metadata, request, reserved, paused): malformed, it counts as
//!   absent. Anyone can spoil a request, and that must not depose a leader.
//!
//! Unknown fields are ignored. Leaves to the caller whether the record is of the election it was found under.

use std::collections::BTreeMap;
use std::time::Duration;

use bellwether_core::{
    Ask, CandidateId, ElectionName, Epoch, Holder, Incarnation, Pause, Request, TTL_RANGE, Timing, Wall,
    duration,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::{Record, Reservation};

/// What was read: the record, and the election that it says it is of.
#[derive(Debug, PartialEq, Eq)]
pub struct Read {
    /// The record.
    pub record: Record,
    /// The name that it gives its election; a store that shortens names compares it.
    pub election: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RecordIn {
    holder: Option<String>,
    lease_duration: Option<String>,
    epoch: Option<u64>,
    incarnation: Option<String>,
    beat: u64,
    boot_id: Option<String>,
    election: Option<String>,
    renew_time: Json,
    acquire_time: Json,
    priority: Json,
    request: Json,
    reserved: Json,
    paused: Json,
    metadata: Json,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RecordOut<'a> {
    holder: &'a str,
    renew_time: String,
    lease_duration: String,
    election: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    epoch: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    incarnation: Option<String>,
    beat: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    boot_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    acquire_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<RequestJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reserved: Option<ReservationJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    paused: Option<PauseJson>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metadata: &'a BTreeMap<String, String>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "camelCase")]
enum RequestJson {
    StepDown {
        epoch: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<String>,
    },
    StepDownLater {
        epoch: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<String>,
        after: String,
    },
    Preempt {
        epoch: u64,
        by: String,
        priority: i32,
    },
}

#[derive(Serialize, Deserialize)]
struct ReservationJson {
    r#for: String,
    span: String,
}

#[derive(Serialize, Deserialize)]
struct PauseJson {
    left: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<String>,
}

/// The bytes to write.
pub fn print(on: &ElectionName, record: &Record) -> Vec<u8> {
    serde_json::to_vec(&outgoing(on, record)).expect("a record has nothing in it that JSON cannot say")
}

/// The same as a value, for a store that writes it as part of a record of another shape.
pub fn value(on: &ElectionName, record: &Record) -> Json {
    serde_json::to_value(outgoing(on, record)).expect("a record has nothing in it that JSON cannot say")
}

fn outgoing<'a>(on: &'a ElectionName, record: &'a Record) -> RecordOut<'a> {
    let holder = record.holder.as_ref();
    RecordOut {
        holder: holder.map_or("", |holder| holder.id.as_str()),
        renew_time: record.renewed.unwrap_or_default().to_string(),
        lease_duration: duration::print(record.ttl.unwrap_or_default()),
        election: on.as_str(),
        epoch: record.epoch.map(Epoch::get),
        incarnation: holder.and_then(|holder| holder.incarnation).map(|incarnation| incarnation.to_string()),
        beat: record.beat,
        // Of the holder's machine, so it goes with the holder.
        boot_id: holder.and(record.boot_id.as_deref()),
        acquire_time: record.acquired.map(|acquired| acquired.to_string()),
        priority: record.priority,
        request: record.request.as_ref().map(RequestJson::from),
        reserved: record.reserved.as_ref().map(ReservationJson::from),
        paused: record.paused.as_ref().map(PauseJson::from),
        metadata: &record.metadata,
    }
}

/// What these bytes say, whatever they are.
pub fn read(bytes: &[u8]) -> Read {
    parse(bytes).unwrap_or_else(Read::nonsense)
}

/// What a JSON object says; `None` for any other bytes. An array is none, though serde would take its elements for fields in their order.
pub fn object<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    bytes.trim_ascii_start().starts_with(b"{").then(|| serde_json::from_slice(bytes).ok()).flatten()
}

impl Read {
    /// What makes no sense, and tells no election.
    pub fn nonsense() -> Read {
        Read { record: Record::unreadable(), election: None }
    }
}

fn parse(bytes: &[u8]) -> Option<Read> {
    let incoming: RecordIn = object(bytes)?;
    let ttl = incoming.lease_duration.as_deref().map(duration::parse);
    let ttl = if let Some(ttl) = ttl { Some(ttl?) } else { None };
    let incarnation = incoming.incarnation.as_deref().map(Incarnation::parse);
    let incarnation = if let Some(incarnation) = incarnation { Some(incarnation?) } else { None };
    // No candidate of ours writes a longer one; believing it would wedge the election for as long.
    if incarnation.is_some() && ttl.is_some_and(|ttl| ttl > TTL_RANGE.1) {
        return None;
    }
    let holder = match incoming.holder?.as_str() {
        "" => None,
        id => Some(Holder { id: CandidateId::new(id).ok()?, incarnation }),
    };
    let epoch = if let Some(epoch) = incoming.epoch { Some(Epoch::new(epoch)?) } else { None };
    let wall = |text: Json| Wall::parse(text.as_str()?);
    let record = Record {
        holder,
        epoch,
        ttl,
        beat: incoming.beat,
        boot_id: incoming.boot_id,
        priority: lenient(incoming.priority),
        acquired: wall(incoming.acquire_time),
        renewed: wall(incoming.renew_time),
        request: lenient::<RequestJson>(incoming.request).and_then(RequestJson::read),
        reserved: lenient::<ReservationJson>(incoming.reserved).and_then(ReservationJson::read),
        paused: lenient::<PauseJson>(incoming.paused).and_then(PauseJson::read),
        metadata: lenient(incoming.metadata).unwrap_or_default(),
        broken: false,
    };
    Some(Read { record, election: incoming.election })
}

fn lenient<T: DeserializeOwned>(json: Json) -> Option<T> {
    serde_json::from_value(json).ok()
}

impl From<&Request> for RequestJson {
    fn from(request: &Request) -> RequestJson {
        let epoch = request.epoch.get();
        match &request.what {
            Ask::StepDown { to } => RequestJson::StepDown { epoch, to: to.as_ref().map(ToString::to_string) },
            Ask::StepDownLater { to, after } => {
                let to = to.as_ref().map(ToString::to_string);
                RequestJson::StepDownLater { epoch, to, after: duration::print(*after) }
            }
            Ask::Preempt { by, priority } => {
                RequestJson::Preempt { epoch, by: by.to_string(), priority: *priority }
            }
        }
    }
}

impl RequestJson {
    fn read(self) -> Option<Request> {
        let (epoch, what) = match self {
            RequestJson::StepDown { epoch, to } => (epoch, Ask::StepDown { to: successor(to)? }),
            RequestJson::StepDownLater { epoch, to, after } => {
                (epoch, Ask::StepDownLater { to: successor(to)?, after: duration::parse(&after)? })
            }
            RequestJson::Preempt { epoch, by, priority } => {
                (epoch, Ask::Preempt { by: CandidateId::new(by).ok()?, priority })
            }
        };
        Some(Request { epoch: Epoch::new(epoch)?, what })
    }
}

/// The candidate that is named, if one is; `None` if it is no name.
fn successor(to: Option<String>) -> Option<Option<CandidateId>> {
    match to {
        None => Some(None),
        Some(to) => CandidateId::new(to).ok().map(Some),
    }
}

impl From<&Reservation> for ReservationJson {
    fn from(reserved: &Reservation) -> ReservationJson {
        ReservationJson { r#for: reserved.candidate.to_string(), span: duration::print(reserved.span) }
    }
}

impl ReservationJson {
    fn read(self) -> Option<Reservation> {
        // However long somebody wrote: a reservation is a courtesy and ends soon.
        let span = duration::parse(&self.span)?.min(Timing::reservation(Duration::MAX));
        Some(Reservation { candidate: CandidateId::new(self.r#for).ok()?, span })
    }
}

impl From<&Pause> for PauseJson {
    fn from(pause: &Pause) -> PauseJson {
        let (by, at) = (pause.by.as_ref(), pause.at.as_ref());
        PauseJson {
            left: duration::print(pause.span()),
            by: by.map(ToString::to_string),
            at: at.map(ToString::to_string),
        }
    }
}

impl PauseJson {
    /// However long somebody wrote, it is capped: nobody can end an election for ever by a pause.
    fn read(self) -> Option<Pause> {
        let by = self.by.and_then(|by| CandidateId::new(by).ok());
        let at = self.at.and_then(|at| Wall::parse(&at));
        Pause::new(duration::parse(&self.left)?, by, at)
    }
}

#[cfg(test)]
mod tests;
