//! Staggering: a follower that lost a race for a free record lets others go first, for a moment.

use super::script::{Kind, Script, boot, held_by, id, ms, released};
use crate::{Options, Proof, Seen, Signal};

/// Follows `b`, after that many races lost to it. Its latest epoch is 9 more than that.
fn loser(races: u64, change: impl FnOnce(&mut Options)) -> Script {
    let mut script = Script::acquiring(change);
    script.core.stagger_claims();
    script.denied_by("b");
    for epoch in 9..9 + races {
        script.changed(released(epoch));
        claims(&mut script);
        script.denied(held_by("b", epoch + 1));
    }
    script.told();
    script
}

/// Goes on until it claims.
fn claims(script: &mut Script) {
    while script.state() == "follower" {
        script.at(script.wakes().expect("it waits for an instant") + 1);
    }
}

/// How long it waits, in milliseconds, after each of many releases that somebody else is quicker to answer.
fn waits(script: &mut Script) -> Vec<u64> {
    let wait = |epoch| {
        script.changed(released(epoch));
        let wait = if script.state() == "follower" { script.waits().unwrap() } else { 0 };
        script.changed(held_by("c", epoch + 1));
        wait
    };
    (20..420).map(wait).collect()
}

#[test]
fn a_follower_claims_a_free_record_at_once_until_it_has_lost_a_race() {
    let mut script = loser(0, |_| {});
    script.changed(released(9));
    assert_eq!(script.state(), "acquiring", "the claim at the start was no race");
    let mut script = loser(1, |_| {});
    assert_eq!(waits(&mut script).into_iter().max(), Some(1), "a share of 2 ms");
}

#[test]
fn waits_grow_with_races_lost_up_to_the_longest() {
    for (races, most) in [(2, 3), (3, 7), (4, 15), (5, 31), (6, 49), (60, 49)] {
        let waits = waits(&mut loser(races, |_| {}));
        let (least, longest) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
        assert!(*least <= 1 && *longest == most, "{races} races: {least} to {longest}");
    }
    // A candidate that stepped down comes back after the retry interval; the others have claimed by then.
    let waits = waits(&mut loser(6, |options| options.timing.retry = Some(ms(30))));
    assert_eq!(waits.into_iter().max(), Some(14));
}

#[test]
fn a_follower_that_hears_of_another_winner_makes_no_claim() {
    let mut script = loser(6, |_| {});
    let before = script.calls(Kind::Claim);
    assert!(waits(&mut script).into_iter().all(|wait| wait < 50));
    assert_eq!((script.calls(Kind::Claim), script.waits()), (before, Some(2_000)));
}

#[test]
fn a_race_that_is_won_halves_the_wait() {
    let mut script = loser(1, |_| {});
    script.changed(released(10));
    claims(&mut script);
    script.granted(11).signal(Signal::Gone).work_ended(11);
    script.denied(held_by("b", 12)).changed(released(12));
    assert_eq!(script.state(), "acquiring");
}

#[test]
fn news_that_the_record_is_still_free_does_not_begin_the_wait_anew() {
    for free in [released(15), Seen { free_at: Some(boot(1_000)), ..held_by("b", 15) }] {
        let mut script = loser(6, |_| {});
        script.at(1_000).changed(free.clone());
        let wakes = script.wakes().unwrap();
        let mut now = 1_000;
        while script.state() == "follower" {
            now += 1;
            script.at(now).changed(free.clone());
        }
        assert!(now <= wakes + 1, "{now} {wakes}");
    }
}

#[test]
fn the_named_successor_does_not_wait() {
    let mut script = loser(6, |_| {});
    let kept = Seen { reserved_for: Some(id("a")), free_at: Some(boot(1_000)), ..released(15) };
    script.changed(kept);
    assert_eq!(script.state(), "acquiring");
}

#[test]
fn the_wait_is_added_to_every_instant_at_which_a_record_becomes_free_for_all() {
    let mut script = loser(6, |_| {});
    let held = Seen { free_at: Some(boot(7_000)), ..held_by("b", 15) };
    let kept = Seen { reserved_for: Some(id("c")), free_at: Some(boot(7_000)), ..released(15) };
    let dead = Seen { proof: Proof::Dead, free_at: Some(boot(7_000)), ..held_by("b", 15) };
    for seen in [held.clone(), kept, dead] {
        let mut wakes: Vec<u64> = (0..100)
            .map(|_| {
                script.changed(seen.clone());
                script.wakes().unwrap()
            })
            .collect();
        wakes.sort_unstable();
        assert!((7_000..7_010).contains(&wakes[0]) && (7_040..7_050).contains(&wakes[99]), "{wakes:?}");
    }
    script.at(script.wakes().unwrap() + 1).denied(Seen { free_at: Some(boot(9_000)), ..held.clone() });
    assert!((9_000..9_050).contains(&script.wakes().unwrap()) && script.wakes() != Some(9_000));
}

#[test]
fn a_denial_that_another_winner_does_not_explain_is_no_race_lost() {
    // It tries again after the retry interval, and learns of a new leader that way.
    let mut script = loser(0, |_| {});
    script.at(2_000).denied(held_by("c", 12)).changed(released(12));
    assert_eq!(script.state(), "acquiring");
    // The leader whose record seemed to have expired has renewed it.
    let mut script = loser(0, |_| {});
    script.changed(Seen { free_at: Some(boot(1_000)), ..held_by("b", 9) }).at(1_000);
    script.denied(held_by("b", 9)).changed(released(9));
    assert_eq!(script.state(), "acquiring");
}

#[test]
fn a_race_for_an_expired_record_counts() {
    let mut script = loser(0, |_| {});
    script.changed(Seen { free_at: Some(boot(1_000)), ..held_by("b", 9) }).at(1_000);
    script.denied(held_by("c", 10));
    assert_eq!(waits(&mut script).into_iter().max(), Some(1));
}

#[test]
fn nobody_waits_where_claims_are_not_staggered() {
    let mut script = Script::acquiring(|_| {});
    script.denied_by("b");
    for epoch in 9..20 {
        script.changed(released(epoch)).denied(held_by("b", epoch + 1));
        assert_eq!(script.calls(Kind::Claim) as u64, epoch - 7);
    }
}
