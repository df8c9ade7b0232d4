use bellwether_core::{Ask, Incarnation, Request};

use super::*;
use bellwether_core::ErrorKind;

const SHAPE: Cluster = Cluster;

fn on(name: &str) -> ElectionName {
    ElectionName::new(name).unwrap()
}

fn record() -> Record {
    Record {
        holder: Some(Holder {
            id: CandidateId::new("node-1").unwrap(),
            incarnation: Some(Incarnation::from_bits(7)),
        }),
        epoch: Epoch::new(5),
        ttl: Some(Duration::from_secs(10)),
        beat: 3,
        acquired: Some(Wall::from_unix_nanos(1_705_314_590_000_001_000)),
        renewed: Some(Wall::from_unix_nanos(1_705_314_600_000_002_000)),
        priority: Some(1),
        request: Some(Request { epoch: Epoch::new(5).unwrap(), what: Ask::StepDown { to: None } }),
        metadata: [("zone".to_owned(), "eu".to_owned())].into(),
        ..Record::default()
    }
}

fn fields(record: &Record) -> Json {
    serde_json::from_slice(&SHAPE.print(&on("c"), record).unwrap()).unwrap()
}

#[test]
fn the_four_fields_are_as_others_write_them_and_nothing_of_ours_is_lost() {
    let written = fields(&record());
    assert_eq!(written["node_id"], "node-1");
    assert_eq!(written["epoch"], 5);
    // Two ttls after the renewal.
    assert_eq!(written["expires_at"], "2024-01-15T10:30:20.000002000Z");
    assert_eq!(written["acquired_at"], "2024-01-15T10:29:50.000001000Z");
    let bytes = SHAPE.print(&on("c"), &record()).unwrap();
    assert_eq!(SHAPE.read(&on("c"), &bytes).unwrap(), record());
    assert!(bytes.starts_with(br#"{"node_id":"node-1","epoch":5,"expires_at":""#));
}

#[test]
fn a_release_is_a_lease_of_nobody_that_expired_long_ago_and_keeps_the_epoch() {
    let released = Record { holder: None, request: None, ..record() };
    let written = fields(&released);
    assert_eq!((written["node_id"].as_str(), written["epoch"].as_u64()), (Some(""), Some(5)));
    assert_eq!(written["expires_at"], "1970-01-01T00:00:00.000000000Z");
    let bytes = SHAPE.print(&on("c"), &released).unwrap();
    assert_eq!(SHAPE.read(&on("c"), &bytes).unwrap(), released);
}

#[test]
fn what_others_write_is_theirs_even_with_our_fields_left_in() {
    let theirs = br#"{"node_id":"go","epoch":5,"expires_at":"2999-01-15T10:30:00Z","acquired_at":"2024-01-15T10:29:50.5+01:00"}"#;
    let read = SHAPE.read(&on("c"), theirs).unwrap();
    assert_eq!(read.holder, Some(Holder { id: CandidateId::new("go").unwrap(), incarnation: None }));
    assert_eq!((read.epoch, read.ttl, read.beat), (Epoch::new(5), None, 0));
    assert_eq!(read.acquired, Wall::parse("2024-01-15T09:29:50.5Z"));
    for (field, value) in [("node_id", Json::from("go")), ("epoch", 6.into()), ("node_id", "".into())] {
        let mut written = fields(&record());
        written[field] = value;
        let read = SHAPE.read(&on("c"), written.to_string().as_bytes()).unwrap();
        let incarnation = read.holder.as_ref().and_then(|holder| holder.incarnation);
        assert_eq!((incarnation, read.ttl, read.beat, read.broken), (None, None, 0, false), "{field}");
    }
}

#[test]
fn epochs_that_are_none_are_left_out_and_bytes_that_make_no_sense_are_held_by_an_unknown() {
    for epoch in [
        "-1",
        "-9223372036854775808",
        "9007199254740992",
        "9007199254740991",
        "1e300",
        "\"5\"",
        "null",
        "5.5",
    ] {
        let bytes = format!(r#"{{"node_id":"go","epoch":{epoch},"expires_at":"x"}}"#);
        let read = SHAPE.read(&on("c"), bytes.as_bytes()).unwrap();
        assert!(read.is_held() && read.epoch.is_none() && !read.broken, "{epoch}: {read:?}");
    }
    let huge = format!(r#"{{"node_id":"{}"}}"#, "x".repeat(900_000));
    let deep = "[".repeat(100_000);
    for bytes in
        ["", "null", "{}", "[]", "17", "{", "{\"node_id\":7}", "{\"node_id\":\"a\\u0000\"}", &huge, &deep]
    {
        let read = SHAPE.read(&on("c"), bytes.as_bytes()).unwrap();
        assert_eq!(read, Record::unreadable(), "{:.40}", bytes);
    }
    assert_eq!(SHAPE.read(&on("c"), &[0xff, 0, 0xfe]).unwrap(), Record::unreadable());
}

#[test]
fn another_election_in_the_bucket_is_refused() {
    let bytes = SHAPE.print(&on("c"), &record()).unwrap();
    let error = SHAPE.read(&on("d"), &bytes).unwrap_err();
    assert!(error.to_string().contains("choose another name"), "{error}");
}

/// This mapping is in servers and never changes.
#[test]
fn names_that_fit_are_used_as_they_are_and_others_are_shortened() {
    assert_eq!(bucket(&on("my-cluster_1")), "cluster-my-cluster_1");
    assert_eq!(bucket(&on("foobar ")), "cluster-foobar-_3452fca7168b58d8");
    assert_eq!(
        bucket(&on("a.b")),
        format!("cluster-{}", shortened("a.b", '_', |c| if c == '.' { '-' } else { c }))
    );
    assert!(bucket(&on(&"x".repeat(253))).len() < 100);
    let id = |id| CandidateId::new(id).unwrap();
    let note = SHAPE.note(&on("c"), &Note::Cooldown(id("node-1")));
    assert!(matches!(&note, NoteKey::Beside(key) if key == "cooldown-node-1"), "{note:?}");
    let note = SHAPE.note(&on("c"), &Note::History);
    assert!(matches!(&note, NoteKey::Apart(key) if key == "cluster.history.c"), "{note:?}");
    for bad in ["a.b", "a b", "*", "a>", "é", "a/b"] {
        let error = SHAPE.admit(&id(bad)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }
    SHAPE.admit(&id("host-1_B")).unwrap();
}

#[test]
fn an_epoch_out_of_range_beside_a_record_without_one_makes_it_nobody_s_of_ours() {
    let mut written = fields(&record());
    written["epoch"] = (1_u64 << 53).into();
    written["bellwether"].as_object_mut().unwrap().remove("epoch");
    let read = SHAPE.read(&on("c"), written.to_string().as_bytes()).unwrap();
    assert_eq!(read.holder.map(|holder| holder.incarnation), Some(None));
    assert_eq!(read.epoch, None);
}
