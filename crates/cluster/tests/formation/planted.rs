//! Every bug that can be planted in the rules is found, and as what it is.

use crate::exhaustive::CALM;
use crate::explore::{explore, explore_from};
use crate::invariants::Broken;
use crate::liveness::formed;
use crate::rules::{Bug, Rules};
use crate::steps::{Play, Step};
use crate::walk::walk;
use crate::world::Bounds;

/// A bug, a bound within which it shows, and the invariant that it breaks first.
///
/// Bugs about consent break no cluster: that every voter is bound before Raft begins would still keep them apart, and they are found by the
/// invariants of consent itself.
const BUGS: &[(Bug, Bounds, &str)] = &[
    (Bug::ConsentMovesDown, TWO_SEEDS, "ConsentMovedDown"),
    (Bug::AnswerBeforePersist, CALM, "AnsweredAheadOfDisk"),
    (Bug::SilenceIsConsent, CALM, "WithoutConsent"),
    (Bug::OldAnswersCount, Bounds { proposals: 2, ..CALM }, "WithoutConsent"),
    (Bug::SeedIgnoresItsConsent, TWO_SEEDS, "BoundAgainstConsent"),
    (Bug::FrameWithoutConsent, TWO_SEEDS, "BoundAgainstConsent"),
    (Bug::BoundNodeConsents, TWO_SEEDS, "Unbound"),
    (Bug::StartOverWritesOldPhase, TWO_SEEDS, "ConsentMovedDown"),
    (Bug::SilentNodesLeftOut, TWO_SEEDS, "TwoMajorities"),
    (Bug::MajorityBegins, Bounds { proposals: 3, wipes: 2, ..CALM }, "TwoClusters"),
    (Bug::VoteBeforePersist, Bounds { proposals: 2, wipes: 1, ..CALM }, "TwoClustersOfOneNode"),
    (Bug::NodeIdReused, Bounds { wipes: 1, ..CALM }, "ForgotItsVotes"),
    (Bug::ClusterIdReused, Bounds { proposals: 2, wipes: 1, ..CALM }, "TwoVoterSets"),
    (Bug::RemovalUnbinds, Bounds { removals: 1, returns: 1, ..CALM }, "Unbound"),
    (Bug::LedgerIgnored, Bounds { proposals: 2, wipes: 1, has_ledger: true, ..CALM }, "BesideTheLedger"),
];

const TWO_SEEDS: Bounds = Bounds { seeds: 2, proposals: 2, ..CALM };

/// More than the bug that hides best needs.
const MOST_STATES: usize = 4_000_000;

#[test]
fn every_planted_bug_breaks_the_invariant_that_is_about_it() {
    for (bug, bounds, expected) in BUGS {
        let play = Play { bounds: *bounds, rules: Rules { bug: Some(*bug) } };
        let found = explore(&play, MOST_STATES, |_| {});
        let (broken, way) = found.broken.as_ref().unwrap_or_else(|| panic!("{bug:?} is not found: {found}"));
        println!("{bug:?}: {broken} after {} steps, {} states", way.len(), found.states);
        let kind = broken.to_string();
        assert_eq!(kind.split('(').next(), Some(*expected), "{bug:?}: {way:#?}");
    }
}

#[test]
fn a_removed_member_that_joins_any_cluster_is_found_beside_one_that_formed_after_its_own_was_lost() {
    let bounds = Bounds { proposals: 2, wipes: 2, replacements: 1, removals: 1, returns: 1, ..CALM };
    let play = Play { bounds, rules: Rules { bug: Some(Bug::RemovedJoinsAny) } };
    // The cluster formed, and removed a member whose name another process then took over.
    let mut world = formed(&play);
    for step in [Step::Remove { cluster: 0, voter: 1 }, Step::Return { node: 1 }, Step::Replace { node: 1 }] {
        world = play.after(&world, step).unwrap();
    }
    let found = explore_from(&play, world.clone(), MOST_STATES, |_| {});
    let (broken, way) = found.broken.expect("the bug is found");
    println!("RemovedJoinsAny: {broken} after {} further steps, {} states", way.len(), found.states);
    assert!(matches!(broken, Broken::Unbound(_)), "{broken} after {way:#?}");
    let found = explore_from(&Play { bounds, rules: Rules { bug: None } }, world, MOST_STATES, |_| {});
    assert!(found.is_complete && found.broken.is_none(), "{found}");
}

#[test]
fn a_walk_that_finds_a_bug_finds_it_again_by_its_number() {
    let bounds = Bounds { seeds: 2, nodes: 5, proposals: 4, wipes: 2, ..CALM };
    let play = Play { bounds, rules: Rules { bug: Some(Bug::SilentNodesLeftOut) } };
    let first = walk(&play, 1, 1_000_000).broken.expect("the bug is found");
    let (broken, number, way) = &first;
    println!("SilentNodesLeftOut: {broken} in walk {number}, after {} steps", way.len());
    assert_eq!(walk(&play, *number, 1).broken, Some(first));
}

#[test]
fn without_the_bug_the_same_bounds_break_nothing() {
    for (bug, bounds, _) in BUGS {
        let found = explore(&Play { bounds: *bounds, rules: Rules { bug: None } }, MOST_STATES, |_| {});
        assert!(found.is_complete && found.broken.is_none(), "{bug:?}: {found}");
    }
}
