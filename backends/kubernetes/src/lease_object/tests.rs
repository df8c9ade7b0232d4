//! What a Lease says to candidates of client-go and to ours.

use bellwether_core::Incarnation;
use std::collections::BTreeMap;

use super::*;

fn on() -> ElectionName {
    ElectionName::new("reports").unwrap()
}

fn wall(seconds: i64) -> Wall {
    Wall::from_unix_nanos(seconds * 1_000_000_000)
}

fn held() -> Record {
    let holder = Holder { id: CandidateId::new("a").unwrap(), incarnation: Some(Incarnation::from_bits(7)) };
    Record {
        holder: Some(holder),
        epoch: Epoch::new(204),
        ttl: Some(Duration::from_secs(15)),
        beat: 9,
        priority: Some(1),
        acquired: Some(wall(1_000)),
        renewed: Some(wall(1_005)),
        metadata: BTreeMap::from([("zone".to_owned(), "b".to_owned())]),
        ..Record::default()
    }
}

/// As the server has it: somebody else's label and annotation, and who wrote which field.
fn stored() -> LeaseObject {
    serde_json::from_value(serde_json::json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": "reports", "namespace": "jobs", "uid": "u1", "resourceVersion": "204",
            "labels": { "team": "x" }, "annotations": { "theirs": "kept" },
            "ownerReferences": [{ "kind": "Pod" }], "managedFields": [{ "manager": "m" }],
        },
        "spec": { "leaseTransitions": 3, "strategy": "OldestEmulationVersion" },
    }))
    .unwrap()
}

#[test]
fn a_record_is_read_back_as_it_was_written() {
    let written = stored().with_record(&on(), &held(), None);
    assert_eq!(written.record(), held());
    let released = Record { holder: None, ..held() };
    assert_eq!(written.with_record(&on(), &released, None).record(), released);
}

#[test]
fn the_spec_says_what_client_go_reads() {
    let written = serde_json::to_value(stored().with_record(&on(), &held(), None)).unwrap();
    let spec = serde_json::json!({
        "holderIdentity": "a_00000000000000000000000000000007",
        "leaseDurationSeconds": 15,
        "acquireTime": "1970-01-01T00:16:40.000000Z",
        "renewTime": "1970-01-01T00:16:45.000000Z",
        "leaseTransitions": 4,
        "strategy": "OldestEmulationVersion",
    });
    assert_eq!(written["spec"], spec);
}

#[test]
fn what_others_wrote_survives_a_write() {
    let written = serde_json::to_value(stored().with_record(&on(), &held(), None)).unwrap();
    let metadata = &written["metadata"];
    assert_eq!(metadata["labels"]["team"], "x");
    assert_eq!(metadata["annotations"]["theirs"], "kept");
    assert_eq!(metadata["ownerReferences"][0]["kind"], "Pod");
    assert_eq!((&metadata["uid"], &metadata["resourceVersion"]), (&"u1".into(), &"204".into()));
    assert!(metadata.get("managedFields").is_none(), "the server's own");
}

#[test]
fn transitions_count_leaders_and_not_renewals() {
    let first = LeaseObject::new("reports", &on()).with_record(&on(), &held(), None);
    assert_eq!(first.spec.lease_transitions, Some(0));
    let renewed = first.with_record(&on(), &Record { beat: 10, ..held() }, None);
    assert_eq!(renewed.spec.lease_transitions, Some(0));
    let released = renewed.with_record(&on(), &Record { holder: None, ..held() }, None);
    assert_eq!(released.spec.lease_transitions, Some(0));
    assert_eq!(released.with_record(&on(), &held(), None).spec.lease_transitions, Some(1));
}

#[test]
fn annotations_count_only_with_the_holder_that_they_were_written_with() {
    let mut taken = stored().with_record(&on(), &held(), None);
    taken.spec.holder_identity = Some("host_6f1c".into());
    taken.spec.lease_duration_seconds = Some(10);
    let record = taken.record();
    let holder = record.holder.as_ref().unwrap();
    assert_eq!((holder.id.as_str(), holder.incarnation), ("host_6f1c", None));
    assert_eq!((record.epoch, record.beat, record.priority), (None, 0, None));
    assert_eq!(record.ttl, Some(Duration::from_secs(10)));
    let version = LeaseVersion::of(LeaseObject {
        metadata: Metadata { resource_version: "3".into(), ..taken.metadata },
        ..taken
    });
    let epoch = version.unwrap().next_epoch(Epoch::ZERO);
    assert_eq!(epoch, Epoch::new(205).unwrap(), "the epoch there is a floor all the same");
}

#[test]
fn an_epoch_is_the_version_that_its_claim_replaces() {
    let version = LeaseVersion::of(stored()).unwrap();
    assert_eq!(version.next_epoch(Epoch::ZERO), Epoch::new(204).unwrap());
    assert_eq!(version.next_epoch(Epoch::new(900).unwrap()), Epoch::new(900).unwrap());
    let odd = LeaseObject {
        metadata: Metadata { resource_version: "abc".into(), ..Metadata::default() },
        ..stored()
    };
    assert!(LeaseVersion::of(odd).is_err());
}

#[test]
fn seconds_that_somebody_shortened_shorten_nobody_s_lease() {
    let mut edited = stored().with_record(&on(), &held(), None);
    edited.spec.lease_duration_seconds = Some(1);
    assert_eq!(edited.record().ttl, Some(Duration::from_secs(15)));
    edited.spec.lease_duration_seconds = Some(60);
    assert_eq!(edited.record().ttl, Some(Duration::from_secs(60)));
}

#[test]
fn a_spoilt_annotation_leaves_the_lease_with_whoever_holds_it() {
    let mut spoilt = stored().with_record(&on(), &held(), None);
    spoilt.metadata.annotations.insert(RECORD, "{".into());
    let record = spoilt.record();
    assert!(record.is_held() && record.holder.unwrap().incarnation.is_none());
    let mut odd = stored();
    odd.spec.holder_identity = Some("a\nb".into());
    assert!(odd.record().broken, "held by somebody without a name");
}

#[test]
fn an_empty_holder_is_nobody() {
    for identity in [None, Some(String::new())] {
        let mut free = stored();
        free.spec.holder_identity = identity;
        assert!(!free.record().is_held());
    }
}

#[test]
fn a_lease_that_somebody_else_emptied_counts_as_held_unless_somebody_has_led_since() {
    let mut emptied = stored().with_record(&on(), &held(), None);
    emptied.spec.holder_identity = Some(String::new());
    emptied.spec.lease_duration_seconds = Some(1);
    let record = emptied.record();
    assert!(record.is_held() && record.holder.is_none(), "{record:?}");
    assert_eq!(record.ttl, held().ttl, "its holder goes by its own word");
    for unknown in [None, Some(0)] {
        let mut emptied = emptied.clone();
        emptied.spec.lease_transitions = unknown;
        assert!(emptied.record().is_held());
    }
    // As a candidate of client-go leaves it that has led and released.
    emptied.spec.lease_transitions = emptied.spec.lease_transitions.map(|count| count + 1);
    assert!(!emptied.record().is_held());
}

#[test]
fn a_reservation_ends_with_the_next_leadership_of_client_go() {
    let reserved = bellwether_backend::Reservation {
        candidate: CandidateId::new("b").unwrap(),
        span: Duration::from_secs(1),
    };
    let released = Record { holder: None, reserved: Some(reserved), ..held() };
    let mut lease = stored().with_record(&on(), &released, None);
    assert_eq!(lease.record(), released);
    lease.spec.renew_time = Some(wall(2_000).to_string());
    assert_eq!(lease.record().reserved, None);
}

#[test]
fn a_ttl_is_written_in_whole_seconds_and_never_less_than_it_is() {
    for (millis, seconds) in [(1, 1), (1_000, 1), (1_001, 2), (15_000, 15), (u64::MAX, i32::MAX as u64)] {
        assert_eq!(whole_seconds(Duration::from_millis(millis)), seconds, "{millis}");
    }
}

#[test]
fn a_lease_of_another_election_is_told_apart() {
    let mut copied = stored().with_record(&on(), &held(), None);
    assert!(copied.check_election(&on()).is_ok());
    copied.metadata.annotations.insert(ELECTION, "other".into());
    assert!(copied.check_election(&on()).unwrap_err().to_string().contains("\"other\""));
    assert!(stored().check_election(&on()).is_ok(), "one that somebody else made names none");
}

#[test]
fn the_pod_of_the_leader_is_named_by_its_claim_and_by_nothing_else() {
    let led = stored().with_record(&on(), &held(), Some("a"));
    assert_eq!(led.pod(), Some("a"));
    assert!(stored().is_taken_by(&held()) && !led.is_taken_by(&held()));
    let asked = led.with_record(&on(), &Record { beat: 10, ..held() }, Some("somebody-who-asks"));
    assert_eq!(asked.pod(), Some("a"), "a request is written by others");
    let released = asked.with_record(&on(), &Record { holder: None, ..held() }, Some("a"));
    assert_eq!(released.pod(), Some("a"), "its successor has to know");
}

#[test]
fn a_pod_that_a_stranger_named_leads_to_a_pod_or_to_nothing() {
    for odd in ["", ".", "..", "../secrets/a", "a/status", "a?force=true", "a#b", "A", "a%2fb", "a b"] {
        let led = stored().with_record(&on(), &held(), Some(odd));
        assert_eq!(led.pod(), None, "{odd}");
    }
}

#[test]
fn an_annotation_that_is_there_twice_is_refused() {
    let twice = r#"{"metadata":{"name":"e","annotations":{"a":"1","b":"2","a":"3"}}}"#;
    let error = serde_json::from_str::<LeaseObject>(twice).unwrap_err();
    assert!(error.to_string().contains("\"a\" is there twice"), "{error}");
}
