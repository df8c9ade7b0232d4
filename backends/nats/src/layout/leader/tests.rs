//! Both directions, and whatever else may lie under the key.

use bellwether_backend::Reservation;
use serde_json::json;

use super::*;

fn leader() -> Leader {
    Leader { bucket: "b".to_owned(), group: None }
}

fn on() -> ElectionName {
    ElectionName::new("leaders/control").unwrap()
}

fn id(text: &str) -> CandidateId {
    CandidateId::new(text).unwrap()
}

fn record() -> Record {
    Record {
        holder: Some(Holder { id: id("node-1"), incarnation: Some(Incarnation::from_bits(7 << 64 | 5)) }),
        epoch: Epoch::new(1_767_225_600_000_001),
        ttl: Some(Duration::from_secs(10)),
        beat: 3,
        priority: Some(10),
        renewed: Some(Default::default()),
        metadata: [("region".to_owned(), "eu-west-1".to_owned())].into(),
        ..Record::default()
    }
}

fn printed() -> Json {
    serde_json::from_slice(&leader().print(&on(), &record()).unwrap()).unwrap()
}

#[test]
fn others_read_their_four_fields_and_we_read_all() {
    let json = printed();
    assert_eq!((json["id"].as_str(), json["priority"].as_i64()), (Some("node-1"), Some(10)));
    assert_eq!(json["meta"], json!({ "region": "eu-west-1" }));
    assert_eq!(json["token"].as_str().map(str::len), Some(36));
    let read = leader().read(&on(), &leader().print(&on(), &record()).unwrap()).unwrap();
    assert_eq!(read, record());
}

#[test]
fn a_token_is_of_one_leadership() {
    let of = |bits, epoch| token(Incarnation::from_bits(bits), Epoch::new(epoch).unwrap());
    let all = [of(1, 1), of(1, 2), of(2, 1), of(1 << 127, 1), of(1, 1 << 20)];
    for (at, token) in all.iter().enumerate() {
        assert!(!all[..at].contains(token), "{token} twice");
        let parts: Vec<usize> = token.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12], "{token}");
    }
    assert_eq!(of(1, 1), of(1, 1));
}

#[test]
fn ours_with_another_token_or_id_is_somebody_else_s() {
    for (field, value) in [("token", "0b9f1b7e-0000-4000-8000-000000000000"), ("id", "node-2")] {
        let mut json = printed();
        json[field] = value.into();
        let read = leader().read(&on(), json.to_string().as_bytes()).unwrap();
        let holder = read.holder.clone().unwrap();
        assert_eq!((holder.incarnation, read.epoch, read.ttl), (None, None, None), "{field}");
        assert!(read.is_held());
    }
}

#[test]
fn a_record_of_others_is_held_by_them() {
    for text in [
        r#"{"id":"other","token":"t"}"#,
        r#"{"id":"other","token":"t","priority":3,"meta":{"hostname":"h","n":1},"more":[1,2]}"#,
        r#"{"id":"other"}"#,
        r#"{"id":"other","token":17,"priority":"high","meta":"none","bellwether":"no"}"#,
        r#"{"id":"other","token":"t","bellwether":{"holder":"other","epoch":-1}}"#,
    ] {
        let read = leader().read(&on(), text.as_bytes()).unwrap();
        assert_eq!(read.holder, Some(Holder { id: id("other"), incarnation: None }), "{text}");
        assert_eq!(read.epoch, None);
    }
}

#[test]
fn what_makes_no_sense_is_held_by_nobody_known_and_never_ends_the_reader() {
    let deep = format!("{}1{}", "[".repeat(60_000), "]".repeat(4));
    let nested = format!(r#"{{"id":"a","token":"t","meta":{}}}"#, "[".repeat(50_000));
    let huge = format!(r#"{{"id":"a","token":"t","meta":{{"x":"{}"}}}}"#, "x".repeat(1 << 20));
    let long = format!(r#"{{"id":"{}","token":"t"}}"#, "i".repeat(300));
    for text in [
        "",
        "{",
        "null",
        "[]",
        "17",
        "\"id\"",
        r#"{"id":""}"#,
        r#"{"id":7}"#,
        r#"{"token":"t"}"#,
        &deep,
        &nested,
        &huge,
        &long,
    ] {
        let read = leader().read(&on(), text.as_bytes()).unwrap();
        assert!(read.broken, "{}", &text[..text.len().min(60)]);
        let _ = leader().read_released(&on(), text).unwrap();
        let _ = leader().election("b", "k", text.as_bytes());
    }
    assert!(leader().read(&on(), &[0xff, 0xfe]).unwrap().broken);
}

#[test]
fn what_was_let_go_keeps_its_epoch_and_whom_it_is_kept_for() {
    let reserved = Some(Reservation { candidate: id("käthe"), span: Duration::from_millis(400) });
    let released = Record { holder: None, reserved, priority: None, metadata: BTreeMap::new(), ..record() };
    let said = leader().print_released(&on(), &released).unwrap();
    assert!(!said.contains(['\r', '\n']), "a header is one line: {said}");
    let read = leader().read_released(&on(), &said).unwrap().unwrap();
    assert_eq!((read.epoch, &read.reserved, read.is_held()), (record().epoch, &released.reserved, false));
    // Marks that say what cannot be are marks of any deletion.
    let held = json::print(&on(), &record());
    assert_eq!(leader().read_released(&on(), std::str::from_utf8(&held).unwrap()).unwrap(), None);
    assert_eq!(leader().read_released(&on(), "{}").unwrap(), None);
}

#[test]
fn two_elections_on_one_key_are_refused() {
    let value = leader().print(&on(), &record()).unwrap();
    let error = leader().read(&ElectionName::new("else").unwrap(), &value).unwrap_err();
    assert!(error.to_string().contains("leaders/control"), "{error}");
}

#[test]
fn keys_are_names_as_they_are_and_elections_are_found_by_them() {
    let named = |name: &str| leader().key(&ElectionName::new(name).unwrap());
    assert_eq!(named("leaders/control-manager"), "leaders/control-manager");
    assert_eq!(named("a.b_C=1"), "a.b_C=1");
    assert!(named("two words").starts_with("two-words="));
    let grouped = Leader { group: Some("k".to_owned()), ..leader() };
    assert_eq!(grouped.key(&on()), "k");
    let value = leader().print(&on(), &record()).unwrap();
    assert_eq!(leader().election("b", "leaders/control", &value), Some(on()));
    assert_eq!(grouped.election("b", "k", &value), Some(on()));
    assert_eq!(grouped.election("b", "other", &value), None);
    let foreign = br#"{"id":"x","token":"t"}"#;
    assert_eq!(leader().election("b", "theirs", foreign), Some(ElectionName::new("theirs").unwrap()));
    assert_eq!(
        leader().election("b", "settings", br#"{"id":"x"}"#),
        None,
        "not everything in a bucket is an election"
    );
}
