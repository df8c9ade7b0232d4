//! What is written is read back, and whatever else is read makes sense or none, without a panic.

use bellwether_core::{
    Ask, CandidateId, ElectionName, Epoch, Holder, Incarnation, PAUSE_MAX, Pause, Request, Rng, Wall,
};
use std::time::Duration;

use super::{Read, print, read};
use crate::{Record, Reservation};

fn id(text: &str) -> CandidateId {
    CandidateId::new(text).unwrap()
}

fn full() -> Record {
    Record {
        holder: Some(Holder { id: id("näme \"1\""), incarnation: Some(Incarnation::from_bits(7)) }),
        epoch: Epoch::new(41),
        ttl: Some(Duration::from_nanos(1_900_000_001)),
        beat: u64::MAX,
        boot_id: Some("boot".into()),
        priority: Some(-3),
        acquired: Wall::parse("2026-01-31T08:00:00.000001Z"),
        renewed: Wall::parse("2026-01-31T08:00:01Z"),
        request: Some(Request { epoch: Epoch::new(41).unwrap(), what: Ask::StepDown { to: Some(id("b")) } }),
        reserved: None,
        paused: Pause::new(
            Duration::from_millis(90_001),
            Some(id("ops")),
            Wall::parse("2026-01-31T08:00:00.5Z"),
        ),
        metadata: [("url".to_owned(), "http://[::1]/\\".to_owned())].into(),
        broken: false,
    }
}

fn reread(record: &Record) -> Read {
    let on = ElectionName::new("Reports №1").unwrap();
    read(&print(&on, record))
}

fn of(text: &str) -> Record {
    read(text.as_bytes()).record
}

#[test]
fn what_is_written_is_read_back() {
    let held = full();
    assert_eq!(reread(&held), Read { record: held.clone(), election: Some("Reports №1".into()) });
    let what = Ask::Preempt { by: id("c"), priority: 9 };
    let asked = Record { request: Some(Request { epoch: Epoch::ZERO, what }), ..held.clone() };
    assert_eq!(reread(&asked).record, asked);
    let plain = Request { epoch: Epoch::ZERO, what: Ask::StepDown { to: None } };
    let asked = Record { request: Some(plain), ..held.clone() };
    assert_eq!(reread(&asked).record, asked);
    let reserved = Some(Reservation { candidate: id("b"), span: Duration::from_millis(200) });
    let released = Record { holder: None, boot_id: None, request: None, reserved, ..held };
    assert_eq!(reread(&released).record, released);
}

#[test]
fn the_three_common_fields_come_first_and_are_spelled_as_everybody_spells_them() {
    let on = ElectionName::new("r").unwrap();
    let text = String::from_utf8(print(&on, &full())).unwrap();
    let start =
        r#"{"holder":"näme \"1\"","renewTime":"2026-01-31T08:00:01.000000Z","leaseDuration":"1.900000001s","#;
    assert!(text.starts_with(start), "{text}");
    let released = Record { holder: None, ..full() };
    let text = String::from_utf8(print(&on, &released)).unwrap();
    assert!(text.starts_with(r#"{"holder":"","#) && !text.contains("bootId"), "{text}");
}

#[test]
fn a_record_of_another_program_has_a_holder_that_is_nobody_of_ours() {
    let seed =
        of(r#"{"holder":"pod-1","renewTime":"2026-01-01T00:00:00Z","leaseDuration":"10s","more":[1]}"#);
    assert_eq!(seed.holder, Some(Holder { id: id("pod-1"), incarnation: None }));
    assert_eq!((seed.epoch, seed.ttl, seed.broken), (None, Some(Duration::from_secs(10)), false));
    let free = of(r#"{"holder":"","renewTime":"x","leaseDuration":"10s"}"#);
    assert!(!free.is_held());
    // Its own long lease is its own business.
    assert!(!of(r#"{"holder":"pod-1","leaseDuration":"200h"}"#).broken);
}

#[test]
fn what_decisions_hang_on_is_understood_or_the_record_is_not() {
    let long = format!(r#"{{"holder":"{}"}}"#, "x".repeat(300));
    for text in [
        "",
        "{}",
        "null",
        "[]",
        "\u{feff}{\"holder\":\"a\"}",
        r#"{"holder":"a"} {"holder":"a"}"#,
        r#"{"holder":"a","holder":"b"}"#,
        r#"{"holder":null}"#,
        r#"{"holder":7}"#,
        r#"{"holder":"a\nb"}"#,
        &long,
        r#"{"holder":"a","leaseDuration":10}"#,
        r#"{"holder":"a","leaseDuration":"soon"}"#,
        r#"{"holder":"a","epoch":-1}"#,
        r#"{"holder":"a","epoch":9007199254740992}"#,
        r#"{"holder":"a","epoch":1.5}"#,
        r#"{"holder":"a","incarnation":"me"}"#,
        r#"{"holder":"a","beat":"1"}"#,
        r#"{"holder":"a","incarnation":"00000000000000000000000000000001","leaseDuration":"200h"}"#,
        &"[".repeat(60_000),
    ] {
        let shown: String = text.chars().take(80).collect();
        assert_eq!(of(text), Record::unreadable(), "{shown}");
    }
    assert!(Read::nonsense().record.broken);
}

#[test]
fn what_is_only_for_readers_or_for_politeness_is_left_out_when_it_makes_no_sense() {
    let record = of(r#"{"holder":"a","renewTime":7,"acquireTime":"then","priority":"high","metadata":[1],
        "request":{"ask":"dance","epoch":1},"reserved":{"for":"","span":"1s"}}"#);
    assert_eq!(
        record,
        Record { holder: Some(Holder { id: id("a"), incarnation: None }), ..Record::default() }
    );
    let kept = of(r#"{"holder":"","reserved":{"for":"b","span":"24h"}}"#).reserved.unwrap();
    assert_eq!(kept.span, Duration::from_secs(1), "nobody is kept out for a day by a courtesy");
}

#[test]
fn a_list_is_no_record_whatever_is_in_it() {
    assert!(of(r#"["a","10s",7,"00000000000000000000000000000007"]"#).broken);
    assert!(!of(" \n\t{\"holder\":\"a\"}").broken);
}

#[test]
fn no_bytes_make_it_panic() {
    let on = ElectionName::new("r").unwrap();
    let good = print(&on, &full());
    let mut rng = Rng::new(20_260_131);
    let spice = b"\"\\{}[]:,0-9.eE\xff\0";
    let mut sensible = 0;
    for _ in 0..20_000 {
        let mut bytes = good.clone();
        for _ in 0..1 + rng.next_u64() % 4 {
            let at = (rng.next_u64() as usize) % bytes.len().max(1);
            match rng.next_u64() % 4 {
                0 => bytes.truncate(at),
                1 if !bytes.is_empty() => bytes[at] = rng.next_u64() as u8,
                2 if !bytes.is_empty() => drop(bytes.remove(at)),
                _ => bytes.insert(at.min(bytes.len()), spice[rng.below(spice.len() as u64) as usize]),
            }
        }
        sensible += u32::from(!read(&bytes).record.broken);
    }
    assert!(sensible > 100, "mutations that keep the record whole are tried too: {sensible}");
}

#[test]
fn a_pause_that_makes_no_sense_is_none_and_a_long_one_is_capped() {
    let paused = |pause: &str| of(&format!(r#"{{"holder":"","paused":{pause}}}"#)).paused;
    for nonsense in [r#""10m""#, "7", "null", "{}", r#"{"left":7}"#, r#"{"left":"-1s"}"#, r#"{"left":"0s"}"#]
    {
        assert_eq!(paused(nonsense), None, "{nonsense}");
    }
    for long in [r#"{"left":"8760h"}"#, r#"{"left":"2562047h"}"#] {
        assert_eq!(paused(long), Pause::new(PAUSE_MAX, None, None), "{long}");
    }
    // Beyond what a duration can say is no duration.
    assert_eq!(paused(r#"{"left":"99999999999999999999h"}"#), None);
    let odd = paused(r#"{"left":"5m","by":"","at":"yesterday","more":1}"#).unwrap();
    assert_eq!(odd, Pause::new(Duration::from_secs(300), None, None).unwrap());
}
