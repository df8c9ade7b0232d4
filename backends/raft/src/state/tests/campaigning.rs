use super::*;
use crate::command::PastLine;
use crate::limits::{ENDED_MAX_BYTES, QUEUE_MAX};

#[test]
fn one_leads_and_the_others_wait_by_priority_then_by_who_asked_first() {
    let mut stage = Stage::new();
    let session = stage.open(1);
    stage.leads(session, "a", 1);
    stage.denied(session, bid("b", 2));
    stage.denied(session, bid("c", 3));
    stage.denied(session, Campaign { priority: 5, ..bid("d", 4) });
    let view = stage.denied(session, bid("b", 2));
    assert_eq!(view.seen().leader(), Some(&id("a")));
    assert_eq!(stage.queue(), ["d", "b", "c"], "asking again keeps the turn");
    stage.denied(session, Campaign { priority: 9, ..bid("c", 3) });
    assert_eq!(stage.queue(), ["c", "d", "b"]);
    let retire = Act::Retire { on: election(), incarnation: Incarnation::from_bits(4), cancels: Vec::new() };
    assert_eq!(stage.act(session, retire), Answer::Done);
    assert_eq!(stage.queue(), ["c", "b"]);
}

#[test]
fn nobody_leads_unasked_and_whoever_asks_first_leads() {
    let mut stage = Stage::new();
    let session = stage.open(1);
    let epoch = stage.leads(session, "a", 1);
    stage.denied(session, bid("b", 2));
    assert_eq!(stage.resign(session, epoch, 1), Answer::Done);
    let view = stage.state.view(&election());
    assert_eq!((view.holder, view.ended), (None, Some(Ended::Released)), "b has not asked again");
    assert!(stage.leads(session, "b", 2) > epoch);
    assert_eq!(stage.queue(), Vec::<String>::new());
}

#[test]
fn another_start_of_the_same_id_waits_unless_it_reclaims() {
    let mut stage = Stage::new();
    let (old, new) = (stage.open(1), stage.open(2));
    let epoch = stage.leads(old, "a", 1);
    stage.denied(new, bid("a", 2));
    let stranger = Campaign { danger_reclaim: true, ..bid("b", 3) };
    stage.denied(new, stranger);
    match stage.campaign(new, Campaign { danger_reclaim: true, ..bid("a", 2) }) {
        Answer::Granted { epoch: later, .. } => assert!(later > epoch),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_release_names_the_epoch_and_the_start() {
    let mut stage = Stage::new();
    let session = stage.open(1);
    let first = stage.leads(session, "a", 1);
    stage.resign(session, first, 1);
    let second = stage.leads(session, "a", 1);
    for (epoch, start) in [(first, 1), (second, 2)] {
        assert!(matches!(stage.resign(session, epoch, start), Answer::Denied(_)));
        assert!(stage.state.view(&election()).holder.is_some());
    }
    assert_eq!(stage.resign(session, second, 1), Answer::Done);
}

#[test]
fn the_end_of_a_session_ends_its_leadership_and_its_waits_alone() {
    let mut stage = Stage::new();
    let (first, second) = (stage.open(1), stage.open(2));
    stage.leads(first, "a", 1);
    stage.denied(first, bid("b", 2));
    stage.denied(second, bid("c", 3));
    assert_eq!(stage.expire(first), Answer::Done);
    let view = stage.state.view(&election());
    assert_eq!((view.holder, view.ended), (None, Some(Ended::Expired)));
    assert_eq!(stage.queue(), ["c"]);
    assert_eq!(stage.campaign(first, bid("a", 1)), Answer::Refused(Refusal::NoSuchSession));
    stage.leads(second, "c", 3);
    assert_eq!(stage.apply(&Command::CloseSession(second)), Answer::Done);
    assert_eq!(stage.state.view(&election()).ended, Some(Ended::Released));
    assert_eq!(stage.state.waiting, 0);
}

#[test]
fn a_reservation_keeps_others_out_until_it_ends() {
    let mut stage = Stage::new();
    let session = stage.open(1);
    let epoch = stage.leads(session, "a", 1);
    let incarnation = Incarnation::from_bits(1);
    let handover =
        Act::Resign { on: election(), epoch, incarnation, reserve_for: reserve_for("b"), cooldown: None };
    stage.act(session, handover);
    let since = stage.at.index;
    let view = stage.denied(session, bid("c", 3));
    assert_eq!(view.reserved_for, Some(id("b")));
    stage.apply(&Command::EndReservation { on: election(), since: since - 1 });
    stage.denied(session, bid("c", 3));
    let mut later = Stage { state: stage.state.clone(), sequences: stage.sequences.clone(), ..stage };
    stage = Stage { state: later.state.clone(), sequences: later.sequences.clone(), ..later };
    stage.leads(session, "b", 2);
    later.apply(&Command::EndReservation { on: election(), since });
    later.leads(session, "c", 3);
}

#[test]
fn a_cooldown_is_told_once_to_every_later_start_of_the_id() {
    let mut stage = Stage::new();
    let session = stage.open(1);
    let epoch = stage.leads(session, "a", 1);
    let (cooldown, incarnation) = (Some(Duration::from_secs(60)), Incarnation::from_bits(1));
    stage.act(session, Act::Resign { on: election(), epoch, incarnation, reserve_for: None, cooldown });
    let since = stage.at.index;
    let polite = |start| Campaign { cooldown: Some(Duration::from_secs(20)), ..bid("a", start) };
    assert_eq!(
        stage.denied(session, polite(2)).cooldown,
        Some(Duration::from_secs(20)),
        "clipped to its own"
    );
    let epoch = stage.leads(session, "a", 2);
    stage.resign(session, epoch, 2);
    assert!(stage.denied(session, polite(3)).cooldown.is_some());
    stage.apply(&Command::EndCooldown { on: election(), id: id("a"), since });
    assert!(matches!(stage.campaign(session, polite(4)), Answer::Granted { .. }));
}

#[test]
fn epochs_rise_over_floors_and_recoveries_and_end_in_a_refusal() {
    let mut stage = Stage::new();
    let session = stage.open(1);
    let epoch = stage.leads(session, "a", 1);
    assert_eq!(epoch.get(), stage.at.index, "the log index");
    stage.resign(session, epoch, 1);
    let far = Epoch::new(1_000_000).unwrap();
    stage.campaign(session, Campaign { floor: far, ..bid("a", 1) });
    assert_eq!(stage.state.view(&election()).epoch.get(), 1_000_001);
    let again = stage.leads(session, "a", 1);
    assert_eq!(again.get(), 1_000_002, "stored + 1, for a candidate that asks again though it leads");
    stage.resign(session, again, 1);
    stage.at.generation = 3;
    let recovered = stage.leads(session, "a", 1);
    assert_eq!(recovered.get(), 3 << 45 | stage.at.index);
    stage.resign(session, recovered, 1);
    let last = Campaign { floor: Epoch::MAX, ..bid("a", 1) };
    assert_eq!(stage.campaign(session, last), Answer::Refused(Refusal::EpochsSpent));
    stage.at.generation = 256;
    assert_eq!(stage.campaign(session, bid("a", 1)), Answer::Refused(Refusal::EpochsSpent));
    stage.at = At { index: 1 << 45, generation: 1, ..stage.at };
    assert_eq!(stage.campaign(session, bid("a", 1)), Answer::Refused(Refusal::EpochsSpent));
    assert_eq!(stage.state.view(&election()).epoch, recovered);
}

#[test]
fn a_request_reaches_the_leadership_that_it_names() {
    let mut stage = Stage::new();
    let session = stage.open(1);
    let epoch = stage.leads(session, "a", 1);
    let ask =
        |epoch| Command::Request { on: election(), epoch, ask: AskLine::StepDown { to: Some(id("b")) } };
    assert!(matches!(stage.apply(&ask(Epoch::ZERO)), Answer::Denied(_)));
    let before = stage.state.revision();
    assert_eq!(stage.apply(&ask(epoch)), Answer::Done);
    assert_eq!(stage.apply(&ask(epoch)), Answer::Done);
    let told: Vec<_> = stage.state.events_after(before).unwrap().map(|event| event.request.clone()).collect();
    assert_eq!(told.len(), 1, "a retry asks nothing new");
    assert_eq!(told[0].as_ref().map(|request| request.epoch), Some(epoch));
    stage.resign(session, epoch, 1);
    stage.leads(session, "a", 1);
    assert_eq!(stage.state.request(&election()), None, "the next leadership was asked nothing");
    assert!(matches!(stage.apply(&ask(epoch)), Answer::Denied(_)));
}

#[test]
fn a_forced_release_is_told_to_the_next_leader() {
    let mut stage = Stage::new();
    let session = stage.open(1);
    let epoch = stage.leads(session, "a", 1);
    let force = Command::DangerForceRelease { on: election(), epoch };
    assert_eq!(stage.apply(&force), Answer::Done);
    assert!(matches!(stage.apply(&force), Answer::Denied(_)));
    match stage.campaign(session, bid("b", 2)) {
        Answer::Granted { after_crash, .. } => assert!(after_crash),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_leader_replaces_its_metadata_and_too_much_is_refused() {
    let mut stage = Stage::new();
    let session = stage.open(1);
    let epoch = stage.leads(session, "a", 1);
    let proclaim = |epoch, value: &str| Act::Proclaim {
        on: election(),
        epoch,
        incarnation: Incarnation::from_bits(1),
        metadata: [("k".to_owned(), value.to_owned())].into(),
    };
    assert_eq!(stage.act(session, proclaim(epoch, "v")), Answer::Done);
    assert_eq!(stage.state.view(&election()).seen().metadata["k"], "v");
    assert!(matches!(stage.act(session, proclaim(Epoch::ZERO, "w")), Answer::Denied(_)));
    let large = "x".repeat(5_000);
    assert!(matches!(stage.act(session, proclaim(epoch, &large)), Answer::Refused(Refusal::Malformed(_))));
    assert_eq!(stage.state.view(&election()).seen().metadata["k"], "v");
}

#[test]
fn history_is_completed_sorted_and_bounded() {
    let mut stage = Stage::new();
    let past = |epoch: u64, until: Option<i64>, ended: &str| Command::Remember {
        on: election(),
        past: PastLine {
            epoch: Epoch::new(epoch).unwrap(),
            id: id("a"),
            incarnation: None,
            since: Wall::default(),
            until: until.map(Wall::from_unix_nanos),
            ended: Some(ended.to_owned()),
        },
    };
    for epoch in (1..=150).rev() {
        assert_eq!(stage.apply(&past(epoch, None, "")), Answer::Done);
    }
    stage.apply(&past(150, Some(7), "released"));
    stage.apply(&past(150, None, ""));
    let history = stage.state.history(&election());
    assert_eq!(history.len(), bellwether_backend::HISTORY_MAX);
    assert!(history.is_sorted_by_key(|past| past.epoch));
    assert_eq!(history.last().unwrap().ended.as_deref(), Some("released"), "the end stays");
    let long = "x".repeat(ENDED_MAX_BYTES + 1);
    assert!(matches!(stage.apply(&past(151, None, &long)), Answer::Refused(Refusal::Malformed(_))));
    assert_eq!(stage.apply(&Command::DangerDiscard { on: election() }), Answer::Done);
    assert_eq!((stage.state.pasts, stage.state.elections().count()), (0, 0));
}

#[test]
fn a_full_queue_refuses_and_changes_nothing() {
    let mut stage = Stage::new();
    let session = stage.open(1);
    stage.leads(session, "a", 1);
    for start in 0..QUEUE_MAX as u128 {
        stage.denied(session, bid("b", start + 10));
    }
    assert!(matches!(stage.campaign(session, bid("c", 5)), Answer::Refused(Refusal::Limit(_))));
    stage.denied(session, bid("b", 10));
    assert_eq!(stage.state.waiting, QUEUE_MAX);
    assert!(matches!(stage.apply(&Command::DangerDiscard { on: election() }), Answer::Denied(_)));
}

#[test]
fn watchers_that_come_too_late_list_again() {
    let mut stage = Stage::new();
    let session = stage.open(1);
    let start = stage.state.revision();
    for _ in 0..crate::limits::EVENTS_MAX / 2 {
        let epoch = stage.leads(session, "a", 1);
        stage.resign(session, epoch, 1);
    }
    assert_eq!(stage.state.events_after(start).unwrap().count(), crate::limits::EVENTS_MAX);
    let middle = stage.state.revision();
    stage.leads(session, "a", 1);
    assert_eq!(stage.state.events_after(start).err(), Some(Compacted));
    assert_eq!(stage.state.events_after(middle).unwrap().count(), 1);
    let mut restored = State::new();
    restored.restore(&stage.state.snapshot()).unwrap();
    assert_eq!(restored.events_after(middle).err(), Some(Compacted));
    assert_eq!(restored.events_after(restored.revision()).unwrap().count(), 0);
}

#[test]
fn the_first_note_of_a_name_stays() {
    let mut stage = Stage::new();
    let create = |bytes: &[u8]| Command::CreateOnce { name: election(), bytes: bytes.to_vec() };
    assert!(matches!(stage.apply(&create(b"a\0b")), Answer::Refused(Refusal::Malformed(_))));
    assert_eq!(stage.apply(&create(b"one")), Answer::Created);
    assert_eq!(stage.apply(&create(b"two")), Answer::Exists(b"one".to_vec()));
    assert_eq!(stage.state.note(&election()), Some(b"one".as_slice()));
    assert_eq!(stage.state.elections().count(), 0, "notes are no elections");
}
