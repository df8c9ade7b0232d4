//! What fuzzing asks of the parsers of this crate, and of the state machine behind them. Each function takes any bytes, and panics where a
//! promise is broken; `fuzz` has the list. Those with a sibling `…_examples` read bytes that nobody writes by hand.

use std::collections::BTreeMap;
use std::time::Duration;

use bellwether_cluster::{At, StateMachine};
use bellwether_core::{Candidate, CandidateId, ElectionName, Epoch, Incarnation, Wall};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::answer::{Answer, Refusal};
use crate::command::{Act, AskLine, Campaign, Command, PastLine, ReserveFor, Sequence, SessionId};
use crate::limits::COMMAND_MAX_BYTES;
use crate::protocol::{
    ClientRequest, Finding, Followed, Led, News, Query, Question, Reply, Subscription, Text, decode, encode,
};
use crate::state::State;

/// A log: commands, each behind its length in two bytes. Whatever stands in it, the state machine goes on, and its snapshot is its state.
pub fn raft_log(bytes: &[u8]) {
    let mut state = State::new();
    let mut epochs: BTreeMap<ElectionName, Epoch> = BTreeMap::new();
    for (index, command) in commands(bytes).enumerate() {
        let at = At { index: index as u64 + 1, term: 1, generation: 0 };
        let (before, parsed) = (state.snapshot(), Command::decode(command));
        if let Ok(command) = &parsed {
            assert_eq!(Command::decode(&command.encode()).as_ref(), Ok(command));
        }
        let applied = state.step(at, command);
        let refused = matches!(applied.answer, Answer::Refused(_));
        let forgets = matches!(applied.answer, Answer::Refused(Refusal::Malformed(_))) && parsed.is_err();
        assert!(
            !forgets || (applied.changes.is_empty() && state.snapshot() == before),
            "what is no command changes nothing"
        );
        assert!(!refused || applied.changes.is_empty(), "what is refused changes no election");
        assert_eq!(Answer::decode(&applied.answer.encode()).as_ref(), Ok(&applied.answer));
        for on in state.elections() {
            let view = state.view(on);
            let highest = epochs.entry(on.clone()).or_default();
            assert!(view.epoch >= *highest, "epochs of {on} rise");
            *highest = view.epoch;
            let open = |session| state.session_ttl(session).is_some();
            assert!(view.holder.is_none_or(|holder| open(holder.session)), "whoever leads has a session");
            assert!(state.waiting(on).iter().all(|waiting| open(waiting.session)));
        }
        epochs.retain(|on, _| state.elections().any(|other| other == on));
    }
    restored(&state.snapshot());
}

/// Every command, in an order in which most of them do something.
pub fn raft_log_examples() -> Vec<Vec<u8>> {
    let (on, ttl) = (election(), Duration::from_secs(10));
    let act = |session: u64, sequence: u64, act: Act| Command::InSession {
        session: SessionId(session),
        sequence: Sequence(sequence),
        answered_below: Sequence(sequence),
        act,
    };
    let campaign = |id: &str, start: u128| {
        Act::Campaign(Campaign {
            on: election(),
            who: Candidate { id: candidate(id), incarnation: Incarnation::from_bits(start) },
            floor: Epoch::ZERO,
            priority: -3,
            metadata: [("zone".to_owned(), "b".to_owned())].into(),
            cooldown: Some(ttl),
            danger_reclaim: false,
            wall: Wall::from_unix_nanos(-1),
        })
    };
    let epoch = Epoch::new(3).expect("a small number");
    let incarnation = Incarnation::from_bits(7);
    let past = PastLine {
        epoch,
        id: candidate("a"),
        incarnation: Some(incarnation),
        since: Wall::default(),
        until: None,
        ended: Some("released".to_owned()),
    };
    let reserve_for = Some(ReserveFor { id: candidate("b"), span: Duration::from_secs(1) });
    let resign = Act::Resign { on: on.clone(), epoch, incarnation, reserve_for, cooldown: Some(ttl) };
    let whole = [
        Command::OpenSession { nonce: 5, ttl, label: "host 7".to_owned() },
        Command::OpenSession { nonce: 6, ttl, label: String::new() },
        act(1, 1, campaign("a", 7)),
        act(2, 1, campaign("b", 8)),
        act(1, 2, Act::Proclaim { on: on.clone(), epoch, incarnation, metadata: BTreeMap::new() }),
        Command::Request { on: on.clone(), epoch, ask: AskLine::StepDown { to: Some(candidate("b")) } },
        Command::Remember { on: on.clone(), past },
        act(1, 3, resign),
        Command::EndReservation { on: on.clone(), since: 8 },
        Command::EndCooldown { on: on.clone(), id: candidate("a"), since: 8 },
        act(
            2,
            2,
            Act::Retire {
                on: on.clone(),
                incarnation: Incarnation::from_bits(8),
                cancels: vec![Sequence(1)],
            },
        ),
        Command::CreateOnce { name: on.clone(), bytes: b"once".to_vec() },
        Command::DangerForceRelease { on: on.clone(), epoch },
        Command::ExpireSession { session: SessionId(2), term: 1 },
        Command::CloseSession(SessionId(1)),
        Command::DangerDiscard { on },
    ];
    vec![log(&whole), log(&whole[..4])]
}

fn log(all: &[Command]) -> Vec<u8> {
    let with_length = |command: &Command| {
        let bytes = command.encode();
        [&u16::try_from(bytes.len()).expect("short").to_be_bytes()[..], &bytes].concat()
    };
    all.iter().flat_map(with_length).collect()
}

/// The last one may be cut off.
fn commands(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = bytes.split_first_chunk()?;
        let length = usize::from(u16::from_be_bytes(*length)).min(rest.len()).min(COMMAND_MAX_BYTES + 1);
        let (command, rest) = rest.split_at(length);
        bytes = rest;
        Some(command)
    })
}

/// A snapshot of the elections.
pub fn raft_state(bytes: &[u8]) {
    restored(bytes);
}

/// The states after the examples of [`raft_log`].
pub fn raft_state_examples() -> Vec<Vec<u8>> {
    let state = |log: Vec<u8>| {
        let mut state = State::new();
        for (index, command) in commands(&log).enumerate() {
            state.step(At { index: index as u64 + 1, term: 1, generation: 0 }, command);
        }
        state.snapshot()
    };
    raft_log_examples().into_iter().map(state).collect()
}

/// One state has one sequence of bytes, and can be looked at from all sides.
fn restored(bytes: &[u8]) {
    let mut state = State::new();
    if state.restore(bytes).is_err() {
        return;
    }
    assert_eq!(state.snapshot(), bytes);
    for on in state.elections() {
        let view = state.view(on);
        assert!(view.seen().epoch.is_none_or(|epoch| epoch == view.epoch));
        assert!(state.history(on).len() + state.waiting(on).len() <= bytes.len());
    }
    for (session, ..) in state.sessions() {
        assert!(state.led_by(session).is_some());
    }
    assert!(state.reservations().count() + state.cooldowns().count() <= bytes.len());
}

/// What clients and nodes say to each other. The first byte chooses who says it.
pub fn raft_message(bytes: &[u8]) {
    let Some((who, message)) = bytes.split_first() else { return };
    match who % 4 {
        0 => reread::<ClientRequest>(message),
        1 => reread::<Reply>(message),
        2 => reread::<Subscription>(message),
        _ => reread::<News>(message),
    }
}

/// A message of every kind.
pub fn raft_message_examples() -> Vec<Vec<u8>> {
    let state = raft_state_examples().pop().expect("there are some");
    let mut led = State::new();
    led.restore(&state).expect("its own snapshot");
    let (on, limit) = (election(), Duration::from_secs(3));
    let ask = |what| [vec![0], encode(&ClientRequest::new(what, limit))].concat();
    let reply = |reply: Reply| [vec![1], encode(&reply)].concat();
    let subscription = Subscription {
        sessions: vec![SessionId(1)],
        elections: vec![Followed { on: on.clone(), known: 3, known_request: 0 }],
    };
    let request = Some((6, AskLine::Preempt { by: candidate("b"), priority: 9 }));
    let news = News { on: on.clone(), view: led.view(&on), request };
    let finding = Finding::Queue(vec![Text(candidate("b"))]);
    let epoch = led.view(&on).epoch;
    vec![
        ask(Question::KeepAlive(SessionId(1))),
        ask(Question::Read(Query::History(on.clone()))),
        ask(Question::Propose(Command::CloseSession(SessionId(1)).encode())),
        reply(Reply::Applied(Answer::Done.encode())),
        reply(Reply::Kept { led: vec![Led { on: on.clone(), epoch }] }),
        reply(Reply::Read(Finding::Election(Box::new(led.view(&on))))),
        reply(Reply::ReadHere { finding, age_millis: Some(7) }),
        reply(Reply::NotLeader { leader: Some("app-0".to_owned()) }),
        [vec![2], encode(&subscription)].concat(),
        [vec![3], encode(&news)].concat(),
    ]
}

/// What can be read can be written, and is read the same again.
fn reread<T: DeserializeOwned + Serialize + std::fmt::Debug>(bytes: &[u8]) {
    let Ok(message) = decode::<T>(bytes) else { return };
    let written = encode(&message);
    assert!(written.len() <= bytes.len(), "{} bytes became {}", bytes.len(), written.len());
    let again = decode::<T>(&written).expect("what was written");
    assert_eq!(format!("{again:?}"), format!("{message:?}"));
}

fn election() -> ElectionName {
    ElectionName::new("e").expect("a letter is a name")
}

fn candidate(text: &str) -> CandidateId {
    CandidateId::new(text).expect("a letter is a name")
}
