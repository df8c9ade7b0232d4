//! What fuzzing asks of the parsers of this crate: Leases, as they are read and watched, and URLs. Each function takes any bytes, and panics
//! where a promise is broken; `fuzz` has the list.

use std::time::Duration;

use bellwether_backend::Record;
use bellwether_backend::fuzz::{same, whole};
use bellwether_core::{CandidateId, ElectionName, Epoch, Holder, Incarnation, Wall};
use kube::core::WatchEvent;

use crate::lease_object::{LeaseObject, LeaseVersion};
use crate::{Config, names};

/// A Lease, or what a watch tells of one.
pub fn kubernetes_lease(bytes: &[u8]) {
    if let Ok(WatchEvent::Added(lease) | WatchEvent::Modified(lease)) = serde_json::from_slice(bytes) {
        judge(&lease);
    }
    let Ok(lease) = serde_json::from_slice::<LeaseObject>(bytes) else { return };
    judge(&lease);
    let mine = mine();
    let written = lease.with_record(&on(), &mine, Some("pod-0"));
    let json = serde_json::to_value(&written).expect("what was JSON is JSON again");
    // Twice what was read, for numbers that are printed in full, and the record.
    assert!(json.to_string().len() <= 4 * bytes.len() + 2_048);
    let again: LeaseObject = serde_json::from_value(json.clone()).expect("what was written");
    same(&again.record(), &mine);
    assert_eq!(again.election(), Some(on().as_str()));
    // What this crate has no meaning for is as it was.
    let Some(before) = whole(bytes) else { return };
    for field in before.as_object().into_iter().flat_map(|fields| fields.keys()) {
        assert!(["metadata", "spec"].contains(&field.as_str()) || json[field] == before[field], "{field}");
    }
    assert_eq!(json["metadata"]["labels"], before["metadata"]["labels"]);
    assert_eq!(json["spec"]["strategy"], before["spec"]["strategy"]);
}

/// Whoever is named holds it, whatever else is written.
fn judge(lease: &LeaseObject) {
    let record = lease.record();
    let named = lease.spec.holder_identity.as_deref().unwrap_or_default();
    assert!(record.is_held() || named.is_empty(), "{named:?} holds it: {record:?}");
    if let Some(Holder { id, incarnation }) = &record.holder {
        let identity = incarnation.map_or(id.to_string(), |incarnation| format!("{id}_{incarnation}"));
        assert_eq!(identity, named);
    }
    if let Some(pod) = lease.pod() {
        assert!(names::is_subdomain(pod) && !pod.contains(['/', '?', '%']), "{pod}");
    }
    if let Ok(version) = LeaseVersion::of(lease.clone()) {
        let least = Epoch::new(7).expect("a small number");
        assert!(version.next_epoch(least) >= least);
        assert!(record.epoch.is_none_or(|epoch| epoch == Epoch::MAX || version.next_epoch(least) > epoch));
    }
}

/// `kubernetes://NAMESPACE?…`.
pub fn kubernetes_url(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let said = Config::from_url(text).map_or_else(|error| error.to_string(), |config| format!("{config:?}"));
    assert!(said.len() <= 8 * text.len() + 1_024);
    if let Ok(name) = ElectionName::new(text) {
        let (lease, notes) = (names::lease(&name), names::notes(&name));
        assert!(names::is_subdomain(&lease) && names::is_subdomain(&notes) && notes.len() <= 253, "{lease}");
        assert!(names::label(&name).len() <= 63);
    }
}

fn mine() -> Record {
    let id = CandidateId::new("a").expect("a letter is a name");
    Record {
        holder: Some(Holder { id, incarnation: Some(Incarnation::from_bits(7)) }),
        epoch: Epoch::new(204),
        ttl: Some(Duration::from_secs(15)),
        beat: 9,
        acquired: Some(Wall::from_unix_nanos(1_000_000)),
        renewed: Some(Wall::from_unix_nanos(2_000_000)),
        ..Record::default()
    }
}

fn on() -> ElectionName {
    ElectionName::new("e").expect("a letter is a name")
}
