//! Long random logs: the same on every node, through snapshots, and what always holds.

use bellwether_core::Rng;

use super::*;

/// A random command, mostly about things that exist.
fn draw(rng: &mut Rng, at: At, state: &State) -> Vec<u8> {
    let sessions: Vec<SessionId> = state.sessions().map(|(id, ..)| id).collect();
    let session = match sessions.len() {
        0 => SessionId(rng.below(9)),
        some => sessions[rng.below(some as u64) as usize],
    };
    let name = ElectionName::new(["e", "f", "g"][rng.below(3) as usize]).unwrap();
    let who = ["a", "b", "c"][rng.below(3) as usize];
    let start = u128::from(rng.below(4));
    let view = state.view(&name);
    let current = view.holder.as_ref().map_or(Incarnation::from_bits(start), |holder| holder.who.incarnation);
    let act = match rng.below(6) {
        0..3 => Act::Campaign(Campaign {
            on: name.clone(),
            priority: rng.below(3) as i32,
            floor: Epoch::new(rng.below(400)).unwrap(),
            cooldown: rng.one_in(2).then_some(TTL),
            ..bid(who, start)
        }),
        3 => Act::Retire {
            on: name.clone(),
            incarnation: current,
            cancels: vec![Sequence(rng.below(200)), Sequence(at.index)],
        },
        4 => Act::Resign {
            on: name.clone(),
            epoch: view.epoch,
            incarnation: current,
            reserve_for: if rng.one_in(2) { reserve_for("b") } else { None },
            cooldown: rng.one_in(2).then_some(TTL),
        },
        _ => Act::Proclaim {
            on: name.clone(),
            epoch: view.epoch,
            incarnation: current,
            metadata: [(who.to_owned(), start.to_string())].into(),
        },
    };
    let since = state.reservations().map(|kept| kept.since).next().unwrap_or(rng.below(at.index + 1));
    let command = match rng.below(24) {
        0 => Command::OpenSession { nonce: u128::from(rng.below(12)), ttl: TTL, label: who.to_owned() },
        1 => Command::CloseSession(session),
        2 => Command::ExpireSession { session, term: at.term - rng.below(2) },
        3 => Command::EndReservation { on: name, since },
        4 => Command::EndCooldown { on: name, id: id(who), since: rng.below(at.index + 1) },
        5 => Command::Request { on: name, epoch: view.epoch, ask: AskLine::StepDown { to: None } },
        6 => Command::CreateOnce { name, bytes: who.into() },
        7 if rng.one_in(4) => Command::DangerDiscard { on: name },
        8 if rng.one_in(4) => Command::DangerForceRelease { on: name, epoch: view.epoch },
        9 => {
            let mut bytes = Command::CloseSession(session).encode();
            bytes[0] = rng.below(256) as u8;
            bytes.extend((0..rng.below(20)).map(|_| rng.below(256) as u8));
            return bytes;
        }
        _ => Command::InSession {
            session,
            sequence: Sequence(at.index - rng.below(3)),
            answered_below: Sequence(at.index.saturating_sub(9)),
            act,
        },
    };
    command.encode()
}

fn snapshot_after(state: &mut State, at: At, bytes: &[u8], expected: &Applied) -> Vec<u8> {
    assert_eq!(state.step(at, bytes), *expected);
    state.snapshot()
}

fn check(state: &State, epochs: &mut BTreeMap<ElectionName, Epoch>) {
    for (on, election) in &state.elections {
        for session in election.sessions() {
            let open = state.sessions.get(&session).expect("whoever leads or waits has an open session");
            assert!(open.elections.contains(on), "and the session knows of it");
        }
        let highest = epochs.entry(on.clone()).or_default();
        assert!(election.epoch >= *highest, "epochs rise");
        *highest = election.epoch;
        let queue = state.waiting(on);
        assert!(queue.is_sorted_by_key(|waiting| std::cmp::Reverse(waiting.priority)));
    }
    epochs.retain(|on, _| state.elections.contains_key(on));
    assert_eq!(state.waiting, state.elections.values().map(Election::queue_length).sum::<usize>());
    assert_eq!(state.nonces.len(), state.sessions.len());
}

#[test]
fn random_logs_keep_what_always_holds_and_a_snapshot_anywhere_changes_nothing() {
    let mut granted = 0;
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let (mut state, mut other) = (State::new(), State::new());
        let mut epochs = BTreeMap::new();
        for index in 3..800 {
            let at = At { index, term: 1 + index / 100, generation: (index / 300) as u32 };
            let bytes = draw(&mut rng, at, &state);
            let applied = state.step(at, &bytes);
            granted += u32::from(matches!(applied.answer, Answer::Granted { .. }));
            assert_eq!(Answer::decode(&applied.answer.encode()), Ok(applied.answer.clone()));
            if rng.one_in(5) {
                let snapshot = StateMachine::snapshot(&other);
                other.restore(&snapshot).unwrap();
                assert_eq!(state.to_bytes(), snapshot_after(&mut other, at, &bytes, &applied));
            } else {
                assert_eq!(other.step(at, &bytes), applied);
            }
            if matches!(applied.answer, Answer::Refused(Refusal::Malformed(_) | Refusal::OtherTerm)) {
                assert!(applied.changes.is_empty());
            }
            check(&state, &mut epochs);
        }
    }
    assert!(granted > 1_000, "only {granted} grants: the commands are not to the point");
}

#[test]
fn bytes_that_are_no_snapshot_are_refused_and_the_state_stays() {
    let mut stage = Stage::new();
    let session = stage.open(1);
    stage.leads(session, "a", 1);
    stage.denied(session, bid("b", 2));
    let bytes = stage.state.snapshot();
    for length in 0..bytes.len() {
        assert!(stage.state.restore(&bytes[..length]).is_err(), "{length} bytes");
    }
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x55;
        // Some bytes mean something else now; none may panic, and none may give a state that is not what its bytes say.
        let mut other = State::new();
        if other.restore(&damaged).is_ok() {
            assert_eq!(other.snapshot(), damaged);
        }
    }
    assert_eq!(stage.state.snapshot(), bytes);
}
