//! A small campaign on every change; the large one is `cargo xtask sim`.

use bellwether_core::{Bug, Planted};
use bellwether_sim::options::StoreKind;
use bellwether_sim::{bugs, campaign, run};

#[test]
fn sixty_worlds_break_no_rule() {
    let summary = campaign::run(1, 60, None, 2, |_| {});
    assert_eq!(summary.seeds, 60);
    assert!(summary.violations.is_empty(), "{:#?}", summary.violations);
    assert!(
        summary.tally.elections > 1_000 && summary.tally.handovers > 100,
        "worlds in which nothing happens"
    );
    // A bound that no world comes near would let an election pass that takes several times as long as it should.
    assert!(summary.tally.recovery_share_max > 800, "{}", summary.tally.recovery_share_max);
    for (fault, count) in summary.tally.faults() {
        assert!(count > 0, "no {fault} in sixty worlds");
    }
}

#[test]
fn worlds_with_sessions_break_no_rule_and_excuse_nothing() {
    let summary = campaign::run(61, 60, Some(StoreKind::Session), 2, |_| {});
    assert_eq!(summary.seeds, 20);
    assert!(summary.violations.is_empty(), "{:#?}", summary.violations);
    assert!(summary.tally.elections > 300 && summary.tally.handovers > 30, "worlds in which nothing happens");
    assert_eq!(summary.tally.excused, 0);
}

#[test]
fn every_world_lasts_ten_minutes_and_more() {
    for seed in 1..=4 {
        let outcome = run(seed, Planted::default(), false);
        assert!(outcome.tally.virtual_time > 600 * 1_000_000_000, "{seed}");
    }
}

#[test]
fn the_same_seed_gives_the_same_world_and_another_seed_another() {
    let hashes: Vec<u64> = (100..140).map(|seed| run(seed, Planted::default(), false).hash).collect();
    let again: Vec<u64> = (100..140).map(|seed| run(seed, Planted::default(), false).hash).collect();
    assert_eq!(hashes, again);
    let mut distinct = hashes;
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), 40);
}

#[test]
fn telling_the_story_does_not_change_it() {
    let (told, untold) = (run(7, Planted::default(), true), run(7, Planted::default(), false));
    assert_eq!(told.hash, untold.hash);
    assert!(told.story.len() > 100 && untold.story.is_empty());
}

#[test]
fn bugs_of_every_kind_are_caught() {
    let known = [
        (Bug::NoMargin, "exclusion"),
        (Bug::ClockStopsInSuspend, "exclusion"),
        (Bug::VanishedIsFree, "exclusion"),
        (Bug::ReleaseBeforeWorkEnds, "work before release"),
        (Bug::BlindRenew, "stale writes"),
        (Bug::EpochResetOnDelete, "epochs up"),
        (Bug::LateClaimIgnored, "grants"),
        (Bug::ConflictIsTransient, "conflict is the end"),
        (Bug::RequestCountsAsRenewal, "recovery"),
        (Bug::GoneIgnored, "conflict is the end"),
        (Bug::PresenceIgnored, "exclusion"),
        (Bug::RestartIgnored, "exclusion"),
        (Bug::LockBeforePresence, "work before release"),
        (Bug::EpochBeforeLock, "epochs up"),
        (Bug::EpochFloorForgotten, "epochs up"),
        (Bug::ToldAbsenceIsFree, "exclusion"),
        (Bug::EarlyRequestLost, "requests"),
        (Bug::RequestUnheard, "requests"),
        (Bug::ReservationIgnored, "reservations"),
        (Bug::CooldownIgnored, "cooldown"),
        (Bug::HealthIgnored, "health"),
        (Bug::WaitsTwice, "recovery"),
        (Bug::BeatIsCount, "clones"),
    ];
    for (bug, invariant) in known {
        let caught = bugs::hunt(bug, 300).unwrap_or_else(|| panic!("{bug:?} was not caught"));
        assert_eq!(caught.violation.finding.invariant, invariant, "{bug:?}: {}", caught.violation);
    }
    // Of two clones that lead, the one may lead on under its old epoch, or under a new one beside the other.
    let clones = bugs::hunt(Bug::CloneUnnoticed, 300).expect("it is caught").violation;
    assert!(["clones", "exclusion"].contains(&clones.finding.invariant), "{clones}");
}
