//! Events: all of them, in order, in the shape that scripts rely on, and at nobody's expense.

mod common;

use bellwether_backend::MemoryStore;
use bellwether_core::{Boot, Candidate, ErrorKind, Incarnation, Wall};
use bellwether_election::{
    CandidateId, EVENTS_WAITING_MAX, Epoch, Event, HookError, Hooks, Leadership, On, Reason, StateName, What,
};
use common::*;

#[tokio::test]
async fn the_whole_story_of_a_leadership_is_told_in_order() {
    let store = MemoryStore::default();
    let election = candidate(&store, "a").start().await.unwrap();
    soon(election.wait_for_leadership()).await.unwrap();
    let mut events = election.events();
    soon(election.stop()).await.unwrap();
    let told = words_until(&mut events, "stopped").await;
    assert_eq!(told, ["state_changed", "released", "leader_changed", "state_changed", "stopped"]);
    election.start().await.unwrap();
    let told = words_until(&mut events, "leader_changed").await;
    assert_eq!(told, ["state_changed", "state_changed", "state_changed", "acquired", "leader_changed"]);
}

#[tokio::test]
async fn beginnings_and_ends_alternate_and_epochs_rise_however_it_flaps() {
    let store = MemoryStore::default();
    let election = candidate(&store, "a").retry_interval(ms(1)).start().await.unwrap();
    let mut events = election.events();
    soon(election.wait_for_leadership()).await.unwrap();
    for turn in 0..40 {
        if turn % 4 == 3 {
            soon(election.stop()).await.unwrap();
            election.start().await.unwrap();
        } else {
            soon(election.step_down()).await.unwrap();
        }
        soon(election.wait_for_leadership()).await.unwrap();
    }
    soon(election.stop()).await.unwrap();
    let mut leading: Option<Epoch> = None;
    let (mut last, mut at, mut ends) = (Epoch::ZERO, Boot::default(), 0);
    while let Some(event) = events.try_next() {
        assert!(event.boot >= at, "order by time");
        at = event.boot;
        match event.what {
            What::Acquired { epoch, .. } => {
                // The first was acquired before we listened, or is the first we hear of.
                assert!(leading.replace(epoch).is_none() && epoch > last);
                last = epoch;
            }
            What::Released { epoch, .. } => {
                assert!(leading.take().is_none_or(|now| now == epoch));
                ends += 1;
            }
            What::Missed { .. } => panic!("missed"),
            _ => {}
        }
    }
    assert_eq!((ends, leading), (41, None));
}

#[tokio::test]
async fn every_event_has_the_fields_that_scripts_rely_on() {
    let candidate =
        Candidate { id: CandidateId::new("a").unwrap(), incarnation: Incarnation::from_bits(0xab) };
    let epoch = Epoch::new(7).unwrap();
    let deadline = Boot::from_nanos(99);
    let id = || CandidateId::new("b").unwrap();
    let error = bellwether_core::Error::new(ErrorKind::TimedOut, "memory", "no answer");
    let cases = [
        (
            What::StateChanged { from: StateName::Follower, to: StateName::Acquiring },
            r#""from":"follower","to":"acquiring""#,
        ),
        (What::Acquired { epoch, deadline }, r#""deadline_boot_ns":99"#),
        (What::Resumed { epoch, deadline }, r#""deadline_boot_ns":99"#),
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
            election: name(),
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

#[tokio::test]
async fn a_subscriber_that_reads_nothing_misses_the_middle_and_delays_nobody() {
    let store = MemoryStore::default();
    let election = candidate(&store, "a").retry_interval(ms(1)).start().await.unwrap();
    let mut unread = election.events();
    let mut read = election.events();
    let mut told = 0;
    // Read before each turn, so that one subscriber keeps up and counts what the other should have got.
    while told < 2 * EVENTS_WAITING_MAX {
        soon(election.wait_for_leadership()).await.unwrap();
        soon(election.step_down()).await.unwrap();
        while read.try_next().is_some() {
            told += 1;
        }
    }
    soon(election.stop()).await.unwrap();
    while read.try_next().is_some() {
        told += 1;
    }
    let (mut got, mut missed, mut last) = (0, None, None);
    while let Some(event) = unread.try_next() {
        match event.what {
            What::Missed { count, state } => assert!(missed.replace((count, state)).is_none(), "one for all"),
            what => {
                got += 1;
                last = Some(what);
            }
        }
    }
    let (count, state) = missed.unwrap();
    assert_eq!((got + 1, got as u64 + count), (EVENTS_WAITING_MAX, told as u64));
    assert_eq!(state, StateName::Stopped, "how it stands now");
    assert!(matches!(last, Some(What::Stopped)));
}

struct Hanging;

impl Hooks for Hanging {
    async fn on_become_leader(&self, _: Leadership) -> Result<(), HookError> {
        std::future::pending().await
    }

    async fn on_leader_change(&self, _: Option<CandidateId>) -> Result<(), HookError> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn hooks_callbacks_and_subscribers_that_hang_cost_no_renewal() {
    let store = MemoryStore::default();
    let (puppet, builder) = puppet(&store, "a");
    let builder = builder.ttl(ms(600)).hooks(Hanging);
    let election = builder.on_async(On::Any, |_| std::future::pending::<()>()).start().await.unwrap();
    let _unread = election.events();
    let leadership = soon(election.wait_for_leadership()).await.unwrap();
    // Five times a third of the ttl: long after the first grant would have run out.
    puppet.log.until("answered renew", 5).await;
    assert!(leadership.is_valid());
    soon(election.stop()).await.unwrap();
    assert_eq!(puppet.log.count("answered release"), 1, "and none of them holds the release up");
}
