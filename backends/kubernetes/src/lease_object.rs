//! A Lease as the API server has it, and as a record of an election.
//!
//! Owns both directions. The spec is written as client-go writes it, so that its candidates and ours exclude each other. What client-go has
//! no field for is the annotation `bellwether/record`: the same JSON that other stores hold. It counts only while `holderIdentity` is the
//! one that was written with it, because a client-go candidate that takes over keeps annotations as they are. The epoch in it always
//! counts as a floor: one leadership of client-go in between must not set epochs back.
//!
//! A Lease that names nobody is free if its holder released it, or if somebody has led since: client-go counts its leaderships in
//! `leaseTransitions`. Otherwise somebody else emptied it, and its holder may not know yet. Such a Lease counts as held for a whole ttl.
//! A leader of client-go does that to its successor: cut off for longer than its lease, with `ReleaseOnCancel`, it releases whatever it
//! finds when it is back.
//!
//! Fields that this crate has no meaning for are kept as they were read, so that other people's labels, annotations and owner
//! references survive every write.

mod fields;

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use bellwether_backend::{Record, json};
use bellwether_core::{CandidateId, ElectionName, Epoch, Holder, StoreError, Wall};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub(crate) use self::fields::Fields;
use crate::errors::misconfigured;
use crate::names;

/// The full name of the election, which the name of a Lease may be too narrow for.
pub(crate) const ELECTION: &str = "bellwether/election";
/// What client-go has no field for.
const RECORD: &str = "bellwether/record";
/// The epoch once more, for people and scripts.
pub(crate) const EPOCH: &str = "bellwether/epoch";
/// `leaseTransitions` as it was written with the record: whoever leads without us counts further.
const TRANSITIONS: &str = "bellwether/transitions";
/// The leader's pod, where that carries a label: its successor removes it.
const POD: &str = "bellwether/pod";

/// A Lease.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LeaseObject {
    pub(crate) metadata: Metadata,
    #[serde(default)]
    pub(crate) spec: Spec,
    #[serde(flatten)]
    other: Fields<Value>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metadata {
    pub(crate) name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) uid: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) resource_version: String,
    #[serde(default, skip_serializing_if = "Fields::is_empty")]
    pub(crate) annotations: Fields<String>,
    /// Who wrote which field: large, and the server's own to keep.
    #[serde(default, rename = "managedFields", skip_serializing)]
    _managed_fields: Skipped,
    #[serde(flatten)]
    other: Fields<Value>,
}

/// Read and forgotten.
#[derive(Clone, Debug, Default)]
struct Skipped;

impl<'de> Deserialize<'de> for Skipped {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Skipped, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Skipped)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Spec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) holder_identity: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lease_duration_seconds: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    acquire_time: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    renew_time: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lease_transitions: Option<i32>,
    #[serde(flatten)]
    other: Fields<Value>,
}

/// What a write is compared with: the Lease as it was read, by its resource version. Versions grow with every write of any Lease, also
/// through deletions.
#[derive(Clone, Debug)]
pub struct LeaseVersion {
    number: u64,
    object: Arc<LeaseObject>,
}

impl LeaseVersion {
    pub(crate) fn of(object: LeaseObject) -> Result<LeaseVersion, StoreError> {
        Ok(LeaseVersion { number: number(&object.metadata.resource_version)?, object: Arc::new(object) })
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn object(&self) -> &LeaseObject {
        &self.object
    }

    /// The epoch of a claim that replaces this: its own number, which no other claim can have replaced, or more where the annotations or
    /// the caller know of a higher epoch.
    pub(crate) fn next_epoch(&self, least: Epoch) -> Epoch {
        let floor = self.object.floor().and_then(Epoch::next).unwrap_or(Epoch::ZERO);
        Epoch::new(self.number).unwrap_or(Epoch::ZERO).max(floor).max(least)
    }
}

/// The number of a resource version. The server defines it as a decimal number that grows.
pub(crate) fn number(resource_version: &str) -> Result<u64, StoreError> {
    resource_version.parse().map_err(|_| {
        misconfigured(format!(
            "the resource version {resource_version:?} is not a number: this is not a Kubernetes API server"
        ))
    })
}

impl PartialEq for LeaseVersion {
    fn eq(&self, other: &LeaseVersion) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for LeaseVersion {}

impl PartialOrd for LeaseVersion {
    fn partial_cmp(&self, other: &LeaseVersion) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for LeaseVersion {
    fn cmp(&self, other: &LeaseVersion) -> Ordering {
        let uid = |version: &LeaseVersion| version.object.metadata.uid.clone();
        self.number.cmp(&other.number).then_with(|| uid(self).cmp(&uid(other)))
    }
}

impl LeaseObject {
    /// A Lease that nobody holds.
    pub(crate) fn new(name: &str, on: &ElectionName) -> LeaseObject {
        let mut annotations = Fields::default();
        annotations.insert(ELECTION, on.to_string());
        let metadata = Metadata { name: name.to_owned(), annotations, ..Metadata::default() };
        let mut other = Fields::default();
        other.insert("apiVersion", "coordination.k8s.io/v1".into());
        other.insert("kind", "Lease".into());
        LeaseObject { metadata, spec: Spec::default(), other }
    }

    /// The election that this Lease says it is of.
    pub(crate) fn election(&self) -> Option<&str> {
        self.metadata.annotations.get(ELECTION).map(String::as_str)
    }

    /// That this Lease is of this election, or of none that it names.
    pub(crate) fn check_election(&self, on: &ElectionName) -> Result<(), StoreError> {
        match self.election() {
            Some(other) if other != on.as_str() => Err(misconfigured(format!(
                "the Lease {} of the election {on} says that it is of the election {other:?}: it was copied, or their names have the \
                 same hash; choose another name",
                self.metadata.name
            ))),
            _ => Ok(()),
        }
    }

    /// What this Lease says about the election.
    pub(crate) fn record(&self) -> Record {
        let identity = self.spec.holder_identity.as_deref().unwrap_or_default();
        let seconds = self.spec.lease_duration_seconds.map(Duration::from_secs);
        let wall = |text: &Option<String>| text.as_deref().and_then(Wall::parse);
        let renewed = wall(&self.spec.renew_time);
        let annotated = self.annotated();
        let emptied = annotated.as_ref().filter(|last| identity.is_empty() && self.is_emptied(last));
        if let Some(last) = emptied {
            return Record { ttl: last.ttl.max(seconds), ..Record::unreadable() };
        }
        let written = annotated.filter(|record| holder_identity(record) == identity);
        if let Some(mut record) = written {
            // The longer of the two: somebody may have edited the seconds, and the holder goes by its own word.
            record.ttl = record.ttl.max(seconds);
            // A candidate of client-go may have led since, and released.
            let is_last = record.renewed == renewed;
            record.reserved = record.reserved.filter(|_| record.holder.is_none() && is_last);
            record.paused = record.paused.filter(|_| record.holder.is_some() || is_last);
            return record;
        }
        let foreign =
            Record { ttl: seconds, renewed, acquired: wall(&self.spec.acquire_time), ..Record::default() };
        match CandidateId::new(identity) {
            Ok(id) => Record { holder: Some(Holder { id, incarnation: None }), ..foreign },
            Err(_) if identity.is_empty() => foreign,
            // Whoever calls itself that holds it all the same.
            Err(_) => Record { broken: true, ..foreign },
        }
    }

    /// The pod that was labelled as the leader's, if any was. Whoever may update the Lease may have written this, and it becomes part of a
    /// path: what could lead to anything but a pod is none.
    pub(crate) fn pod(&self) -> Option<&str> {
        self.metadata.annotations.get(POD).map(String::as_str).filter(|pod| names::is_subdomain(pod))
    }

    /// Whether this record, written here, begins a leadership.
    pub(crate) fn is_taken_by(&self, record: &Record) -> bool {
        let identity = holder_identity(record);
        !identity.is_empty() && self.spec.holder_identity.as_deref() != Some(&*identity)
    }

    /// This Lease with another record in it, and the pod that leads from now on if it is to be labelled.
    pub(crate) fn with_record(&self, on: &ElectionName, record: &Record, pod: Option<&str>) -> LeaseObject {
        let text = String::from_utf8_lossy(&json::print(on, record)).into_owned();
        let mut new = self.clone();
        let mut annotate = |key: &str, value: String| new.metadata.annotations.insert(key, value);
        annotate(ELECTION, on.to_string());
        annotate(RECORD, text);
        if let Some(epoch) = record.epoch {
            annotate(EPOCH, epoch.to_string());
        }
        let is_taken = self.is_taken_by(record);
        if let Some(pod) = pod.filter(|_| is_taken) {
            annotate(POD, pod.to_owned());
        }
        let spec = &mut new.spec;
        if is_taken {
            spec.lease_transitions = Some(spec.lease_transitions.map_or(0, |count| count.saturating_add(1)));
        }
        if let Some(count) = spec.lease_transitions {
            new.metadata.annotations.insert(TRANSITIONS, count.to_string());
        }
        spec.holder_identity = Some(holder_identity(record));
        spec.lease_duration_seconds = record.ttl.map(whole_seconds);
        spec.acquire_time = record.acquired.map(|wall| wall.to_string());
        spec.renew_time = record.renewed.map(|wall| wall.to_string());
        new
    }

    fn annotated(&self) -> Option<Record> {
        let text = self.metadata.annotations.get(RECORD)?;
        Some(json::read(text.as_bytes()).record).filter(|record| !record.broken)
    }

    /// Whether the holder that wrote this last is named no more, and nobody has led after it.
    fn is_emptied(&self, last: &Record) -> bool {
        let written: Option<i32> =
            self.metadata.annotations.get(TRANSITIONS).and_then(|text| text.parse().ok());
        last.holder.is_some() && written.is_none_or(|written| self.spec.lease_transitions <= Some(written))
    }

    /// The highest epoch that the annotations know of, whoever holds the Lease.
    fn floor(&self) -> Option<Epoch> {
        let plain = self.metadata.annotations.get(EPOCH).and_then(|text| Epoch::new(text.parse().ok()?));
        plain.max(self.annotated().and_then(|record| record.epoch))
    }
}

/// `<id>_<incarnation>`, as client-go's own candidates call themselves by convention; empty where nobody holds it.
fn holder_identity(record: &Record) -> String {
    record.holder.as_ref().map_or_else(String::new, |holder| match holder.incarnation {
        Some(incarnation) => format!("{}_{incarnation}", holder.id),
        None => holder.id.to_string(),
    })
}

/// At least one, rounded up: what the API takes.
fn whole_seconds(ttl: Duration) -> u64 {
    let up = u64::from(ttl.subsec_nanos() > 0);
    ttl.as_secs().saturating_add(up).clamp(1, i32::MAX as u64)
}

#[cfg(test)]
mod tests;
