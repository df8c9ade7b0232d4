//! A paused election: nobody begins to lead, whoever leads goes on, and nobody asks to be let in.

use super::script::{Kind, Script, boot, held_by, held_by_me, id, ms, released};
use crate::{Boot, CandidateId, Options, Paused, Proof, Seen};

/// As it is seen, and paused until then.
fn paused(until: u64, seen: Seen) -> Seen {
    let paused = Paused { until: boot(until), left: ms(0), by: CandidateId::new("ops").ok(), at: None };
    Seen { paused: Some(Box::new(paused)), ..seen }
}

fn preempting(options: &mut Options) {
    (options.priority, options.preempt) = (9, true);
}

#[test]
fn a_follower_sleeps_until_the_pause_ends_and_claims_at_once_when_it_is_ended_early() {
    let mut script = Script::acquiring(|_| {});
    script.denied(paused(40_000, released(4)));
    assert_eq!((script.state(), script.wakes()), ("follower", Some(40_000)));
    script.at(39_999);
    assert_eq!(script.calls(Kind::Claim), 1);
    script.at(40_000);
    assert_eq!(script.calls(Kind::Claim), 2);
    script.denied(paused(90_000, released(4)));
    script.at(50_000).changed(released(4));
    assert_eq!(script.calls(Kind::Claim), 3, "news of an unpause");
}

#[test]
fn during_a_long_pause_it_looks_once_a_minute() {
    let mut script = Script::acquiring(|_| {});
    let day = 24 * 3_600_000;
    script.denied(paused(day, released(4)));
    assert_eq!(script.wakes(), Some(60_000));
    script.changed(paused(day, released(4)));
    assert_eq!(script.wakes(), Some(60_000));
}

#[test]
fn a_leader_that_falls_silent_is_not_replaced_before_the_pause_ends() {
    let mut script = Script::acquiring(|_| {});
    let silent = Seen { free_at: Some(boot(15_000)), ..held_by("b", 4) };
    script.denied(paused(40_000, silent.clone()));
    assert_eq!(script.wakes(), Some(40_000));
    script.changed(paused(10_000, silent.clone()));
    assert_eq!(script.wakes(), Some(15_000), "a pause shortens no wait");
    script.changed(paused(40_000, Seen { proof: Proof::Dead, ..silent }));
    assert_eq!(script.wakes(), Some(40_000), "nor does proof that it is dead");
}

#[test]
fn the_named_successor_waits_as_well() {
    let mut script = Script::acquiring(|_| {});
    script.denied_by("b");
    let kept = Seen { reserved_for: Some(id("a")), free_at: Some(boot(1_000)), ..released(9) };
    script.changed(paused(40_000, kept));
    assert_eq!((script.state(), script.wakes()), ("follower", Some(40_000)));
}

#[test]
fn nobody_is_asked_to_make_room_while_it_could_not_be_taken() {
    let led = Seen { priority: Some(1), free_at: Some(boot(15_000)), ..held_by("b", 4) };
    let mut script = Script::acquiring(preempting);
    script.denied(paused(40_000, led.clone())).changed(paused(40_000, led.clone()));
    assert_eq!(script.calls(Kind::Request), 0);
    script.changed(led);
    assert_eq!(script.calls(Kind::Request), 1);
}

#[test]
fn a_leader_goes_on() {
    let mut script = Script::leading(|_| {});
    let before = script.leads();
    script.changed(paused(40_000, held_by_me(before.unwrap().0)));
    assert_eq!(script.leads(), before);
}

/// An unknown claim was written, and the election was paused before this candidate knew.
#[test]
fn a_record_in_its_own_name_is_given_back_and_not_led_on() {
    for by_news in [false, true] {
        let mut script = Script::acquiring(|_| {});
        let mine = paused(40_000, Seen { free_at: Some(boot(15_000)), ..held_by_me(4) });
        if by_news {
            script.denied_by("b").changed(mine);
        } else {
            script.unknown().looked(mine);
        }
        assert_eq!((script.calls(Kind::Claim), script.calls(Kind::Release)), (1, 1), "by news: {by_news}");
        assert_eq!((script.state(), script.wakes()), ("follower", Some(40_000)));
    }
}

#[test]
fn when_a_claim_makes_sense_is_the_later_of_the_two_and_unknown_under_a_leader_that_only_news_can_end() {
    let at = |free_at: Option<u64>, seen: Seen| Seen { free_at: free_at.map(boot), ..seen };
    let claimable = |seen: Seen| seen.claimable_at().map(Boot::as_nanos).map(|nanos| nanos / 1_000_000);
    assert_eq!(claimable(paused(9, at(None, released(1)))), Some(9));
    assert_eq!(claimable(paused(9, at(Some(5), held_by("b", 1)))), Some(9));
    assert_eq!(claimable(paused(5, at(Some(9), held_by("b", 1)))), Some(9));
    assert_eq!(claimable(paused(9, at(None, held_by("b", 1)))), None);
    assert_eq!(claimable(at(Some(3), released(1))), Some(3));
}
