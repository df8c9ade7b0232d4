//! Commands are applied once, however often they come.

use super::*;
use crate::limits::IN_FLIGHT_MAX;

fn command(session: SessionId, sequence: u64, answered_below: u64, act: Act) -> Command {
    let (sequence, answered_below) = (Sequence(sequence), Sequence(answered_below));
    Command::InSession { session, sequence, answered_below, act }
}

#[test]
fn a_retried_open_finds_the_session_of_the_first() {
    let mut stage = Stage::new();
    assert_eq!(stage.open(7), stage.open(7));
    let other = stage.open(8);
    assert_ne!(stage.open(7), other);
    let first = stage.open(7);
    stage.expire(first);
    assert_ne!(stage.open(7), first, "an expired session never comes back");
}

#[test]
fn a_retried_campaign_is_told_the_same_epoch() {
    let mut stage = Stage::new();
    let session = stage.open(1);
    let campaign = command(session, 1, 0, Act::Campaign(bid("a", 1)));
    let first = stage.apply(&campaign);
    assert_eq!(stage.apply(&campaign), first);
    let Answer::Granted { epoch, .. } = first else { panic!("{first:?}") };
    let resign = command(session, 2, 0, resign(epoch, 1));
    assert_eq!(stage.apply(&resign), Answer::Done);
    assert_eq!(stage.apply(&resign), Answer::Done, "done before, and not denied now");
    assert!(matches!(stage.apply(&campaign), Answer::Denied(_)), "what has ended is not granted again");
    assert_eq!(stage.state.view(&election()).holder, None);
}

#[test]
fn a_denied_campaign_that_comes_again_is_not_granted_unasked() {
    let mut stage = Stage::new();
    let (a, b) = (stage.open(1), stage.open(2));
    let epoch = stage.leads(a, "a", 1);
    let campaign = command(b, 1, 0, Act::Campaign(bid("b", 2)));
    assert!(matches!(stage.apply(&campaign), Answer::Denied(_)));
    stage.resign(a, epoch, 1);
    assert!(
        matches!(stage.apply(&campaign), Answer::Denied(_)),
        "its client has the answer, and does not ask"
    );
    assert_eq!(stage.state.view(&election()).holder, None);
}

#[test]
fn what_nobody_waits_for_any_more_is_not_applied() {
    let mut stage = Stage::new();
    let session = stage.open(1);
    let retire = |cancels| Act::Retire { on: election(), incarnation: Incarnation::from_bits(1), cancels };
    assert_eq!(stage.apply(&command(session, 2, 0, retire(vec![Sequence(1)]))), Answer::Done);
    let late = command(session, 1, 0, Act::Campaign(bid("a", 1)));
    assert_eq!(stage.apply(&late), Answer::Refused(Refusal::Forgotten), "cancelled");
    stage.apply(&command(session, 4, 4, Act::Campaign(bid("b", 2))));
    let late = command(session, 3, 0, Act::Campaign(bid("a", 1)));
    assert_eq!(stage.apply(&late), Answer::Refused(Refusal::Forgotten), "answered");
}

#[test]
fn an_earlier_campaign_that_comes_late_does_not_replace_a_later_one() {
    let mut stage = Stage::new();
    let session = stage.open(1);
    let later = stage.apply(&command(session, 2, 0, Act::Campaign(bid("a", 1))));
    let Answer::Granted { epoch, .. } = later else { panic!("{later:?}") };
    let earlier = command(session, 1, 0, Act::Campaign(bid("a", 1)));
    assert_eq!(stage.apply(&earlier), Answer::Refused(Refusal::Forgotten));
    assert_eq!(stage.state.view(&election()).epoch, epoch);
    let newer = stage.open(2);
    assert!(stage.leads(newer, "a", 1) > epoch, "in another session it leads anew");
    assert!(matches!(stage.apply(&command(session, 3, 0, Act::Campaign(bid("a", 1)))), Answer::Refused(_)));
    stage.expire(session);
    assert!(stage.state.view(&election()).holder.is_some(), "the old session has nothing any more");
}

#[test]
fn no_more_answers_are_kept_than_may_be_in_flight() {
    let mut stage = Stage::new();
    let session = stage.open(1);
    let retire = Act::Retire { on: election(), incarnation: Incarnation::from_bits(9), cancels: vec![] };
    for sequence in 0..IN_FLIGHT_MAX {
        assert_eq!(stage.apply(&command(session, sequence, 0, retire.clone())), Answer::Done);
    }
    let more = command(session, IN_FLIGHT_MAX, 0, retire.clone());
    assert_eq!(stage.apply(&more), Answer::Refused(Refusal::TooManyInFlight));
    let more = command(session, IN_FLIGHT_MAX, 1, retire.clone());
    assert_eq!(stage.apply(&more), Answer::Done);
    let wrong = command(session, IN_FLIGHT_MAX + 1, IN_FLIGHT_MAX + 2, retire);
    assert!(matches!(stage.apply(&wrong), Answer::Refused(Refusal::Malformed(_))));
}
