use bellwether_cluster::At;

use super::*;
use crate::answer::Answer;
use crate::command::{Act, Campaign, ReserveFor, Sequence};
use bellwether_core::{Candidate, Epoch, Incarnation, Wall};

const TTL: Duration = Duration::from_secs(10);

fn at(seconds: u64) -> Boot {
    Boot::from_nanos(seconds * 1_000_000_000)
}

/// A state, and the table of the node that leads it.
struct Leader {
    state: State,
    table: Keepalives,
    index: u64,
    term: u64,
}

impl Leader {
    fn with_session() -> (Leader, SessionId) {
        let mut leader = Leader { state: State::new(), table: Keepalives::new(), index: 0, term: 1 };
        leader.table.became_leader(at(0), 1, &leader.state);
        let open = Command::OpenSession { nonce: 1, ttl: TTL, label: String::new() };
        match leader.apply(at(0), &open) {
            Answer::Opened(session) => (leader, session),
            other => panic!("{other:?}"),
        }
    }

    fn apply(&mut self, now: Boot, command: &Command) -> Answer {
        self.index += 1;
        let place = At { index: self.index, term: self.term, generation: 0 };
        let applied = self.state.step(place, &command.encode());
        self.table.applied(now, &applied.changes);
        applied.answer
    }
}

fn expire(session: SessionId) -> Vec<Command> {
    vec![Command::ExpireSession { session, term: 1 }]
}

#[test]
fn a_keepalive_is_acknowledged_by_a_round_that_began_after_it_arrived() {
    let (mut leader, session) = Leader::with_session();
    let first = leader.table.arrived(at(1), session).unwrap();
    let round = leader.table.begin_round().unwrap();
    let late = leader.table.arrived(at(2), session).unwrap();
    assert_eq!(leader.table.confirmed(round, 1), [first], "the second arrived when the round had begun");
    let round = leader.table.begin_round().unwrap();
    assert_eq!(leader.table.confirmed(round, 1), [late]);
    assert_eq!(leader.table.begin_round(), None, "nobody waits");
}

#[test]
fn a_failed_round_and_one_of_another_term_acknowledge_nothing() {
    let (mut leader, session) = Leader::with_session();
    leader.table.arrived(at(1), session).unwrap();
    let round = leader.table.begin_round().unwrap();
    leader.table.failed(round);
    assert_eq!(leader.table.confirmed(round, 1), []);
    leader.table.arrived(at(1), session).unwrap();
    let round = leader.table.begin_round().unwrap();
    assert_eq!(leader.table.confirmed(round, 2), [], "a majority confirmed another term");
    leader.table.arrived(at(1), session).unwrap();
    let round = leader.table.begin_round().unwrap();
    leader.table.became_leader(at(2), 3, &leader.state);
    assert_eq!(leader.table.confirmed(round, 1), [], "the term of the round is over");
}

#[test]
fn a_session_expires_a_ttl_after_its_last_keepalive_and_not_before() {
    let (mut leader, session) = Leader::with_session();
    assert_eq!(leader.table.poll_timeout(), Some(at(10)));
    leader.table.arrived(at(4), session).unwrap();
    assert_eq!(leader.table.poll_due(at(13)), [], "not even confirmed, it counts");
    assert_eq!(leader.table.poll_timeout(), Some(at(14)));
    assert_eq!(leader.table.poll_due(at(14)), expire(session));
    assert_eq!(leader.table.poll_due(at(99)), [], "proposed once");
    assert_eq!(leader.apply(at(15), &expire(session)[0]), Answer::Done);
    assert_eq!(leader.table.arrived(at(15), session), Err(NotCounted::NoSuchSession));
    assert_eq!(leader.table.poll_timeout(), None);
}

#[test]
fn nothing_is_acknowledged_while_an_expiry_is_proposed() {
    let (mut leader, session) = Leader::with_session();
    leader.table.arrived(at(1), session).unwrap();
    let round = leader.table.begin_round().unwrap();
    assert_eq!(leader.table.poll_due(at(11)), expire(session));
    assert_eq!(leader.table.confirmed(round, 1), [], "it arrived before, but its ttl has passed");
    assert_eq!(leader.table.arrived(at(12), session), Err(NotCounted::Expiring));
    leader.table.dropped(at(13), &expire(session)[0]);
    let ticket = leader.table.arrived(at(13), session).unwrap();
    let round = leader.table.begin_round().unwrap();
    assert_eq!(leader.table.poll_due(at(13)), [], "the keepalive came first");
    assert_eq!(leader.table.confirmed(round, 1), [ticket]);
    assert_eq!(leader.table.poll_due(at(23)), expire(session));
}

#[test]
fn an_expiry_that_was_certainly_dropped_is_proposed_again() {
    let (mut leader, session) = Leader::with_session();
    assert_eq!(leader.table.poll_due(at(10)), expire(session));
    leader.table.dropped(at(11), &expire(session)[0]);
    assert_eq!(leader.table.poll_due(at(11)), expire(session));
    leader.table.dropped(at(12), &Command::ExpireSession { session, term: 9 });
    assert_eq!(leader.table.poll_due(at(12)), [], "another term's is none of ours");
}

#[test]
fn a_new_leader_counts_the_whole_ttl_again() {
    let (mut leader, session) = Leader::with_session();
    leader.table.lost_leadership();
    assert_eq!(leader.table.arrived(at(8), session), Err(NotCounted::NotLeader));
    assert_eq!((leader.table.poll_timeout(), leader.table.term()), (None, None));
    leader.table.became_leader(at(9), 2, &leader.state);
    assert_eq!(leader.table.poll_timeout(), Some(at(19)));
    assert_eq!(leader.table.poll_due(at(18)), []);
    assert_eq!(leader.table.poll_due(at(19)), [Command::ExpireSession { session, term: 2 }]);
}

#[test]
fn an_expiry_of_an_earlier_term_is_refused_where_it_is_applied() {
    let (mut leader, session) = Leader::with_session();
    let decided = leader.table.poll_due(at(10));
    leader.term = 3;
    leader.table.became_leader(at(11), 3, &leader.state);
    let answer = leader.apply(at(12), &decided[0]);
    assert_eq!(answer, Answer::Refused(crate::answer::Refusal::OtherTerm));
    assert!(leader.table.arrived(at(12), session).is_ok());
}

#[test]
fn reservations_and_cooldowns_end_by_the_leaders_clock() {
    let (mut leader, session) = Leader::with_session();
    let on = ElectionName::new("e").unwrap();
    let who = Candidate { id: CandidateId::new("a").unwrap(), incarnation: Incarnation::from_bits(1) };
    let bid = Campaign {
        on: on.clone(),
        who: who.clone(),
        floor: Epoch::ZERO,
        priority: 0,
        metadata: BTreeMap::new(),
        cooldown: None,
        danger_reclaim: false,
        wall: Wall::default(),
    };
    let act = |sequence, act| Command::InSession {
        session,
        sequence: Sequence(sequence),
        answered_below: Sequence(0),
        act,
    };
    let Answer::Granted { epoch, .. } = leader.apply(at(0), &act(1, Act::Campaign(bid))) else {
        panic!("not granted")
    };
    let reserve_for = Some(ReserveFor { id: CandidateId::new("b").unwrap(), span: Duration::from_secs(2) });
    let cooldown = Some(Duration::from_secs(5));
    let resign = Act::Resign { on: on.clone(), epoch, incarnation: who.incarnation, reserve_for, cooldown };
    assert_eq!(leader.apply(at(1), &act(2, resign)), Answer::Done);
    let since = leader.index;
    let half = Duration::from_millis(500);
    assert_eq!(leader.table.reservation_left(at(1) + half, &on), Some(3 * half));
    assert_eq!(leader.table.cooldown_left(at(1) + half, &on, &who.id), Some(9 * half));
    let end = Command::EndReservation { on: on.clone(), since };
    assert_eq!(leader.table.poll_due(at(3)), std::slice::from_ref(&end));
    leader.table.dropped(at(3), &end);
    assert_eq!(leader.table.poll_due(at(3)), std::slice::from_ref(&end));
    leader.apply(at(3), &end);
    assert_eq!(leader.state.view(&on).reserved_for, None);
    // A new leader counts the cooldown from the start.
    leader.table.became_leader(at(4), 2, &leader.state);
    assert_eq!(leader.table.poll_timeout(), Some(at(9)));
    let end = Command::EndCooldown { on, id: who.id, since };
    assert_eq!(leader.table.poll_due(at(9)), std::slice::from_ref(&end));
    leader.apply(at(9), &end);
    assert_eq!(leader.state.cooldowns().count(), 0);
}

#[test]
fn too_many_keepalives_without_an_answer_are_not_counted() {
    let (mut leader, session) = Leader::with_session();
    let tickets: Vec<Ticket> =
        (0..UNANSWERED_MAX).map(|_| leader.table.arrived(at(1), session).unwrap()).collect();
    let round = leader.table.begin_round().unwrap();
    assert_eq!(leader.table.arrived(at(5), session), Err(NotCounted::TooMany));
    leader.table.forget(tickets[0]);
    let ticket = leader.table.arrived(at(5), session).unwrap();
    assert_eq!(leader.table.confirmed(round, 1), tickets[1..]);
    leader.table.forget(ticket);
    assert_eq!(leader.table.begin_round(), None);
}
