//! What becomes of every world when nothing goes wrong any more: a cluster of all nodes, or one of a few states that a person resolves.
//! `docs/formation.md` says for each of these what to do.

use std::collections::{BTreeMap, BTreeSet};

use crate::exhaustive::CALM;
use crate::explore::explore;
use crate::liveness::{End, end_of};
use crate::rules::Rules;
use crate::steps::Play;
use crate::world::Bounds;

const PAGE: &str = include_str!("../../../../docs/formation.md");

const MOST_STATES: usize = 2_000_000;

fn ends(bounds: Bounds) -> BTreeSet<End> {
    let play = Play { bounds, rules: Rules { bug: None } };
    let mut ends = BTreeMap::<End, usize>::new();
    let found = explore(&play, MOST_STATES, |world| *ends.entry(end_of(&play, world)).or_default() += 1);
    println!("{bounds}\n  {found}: {ends:?}");
    assert!(found.is_complete && found.broken.is_none(), "{found}");
    ends.into_keys().collect()
}

#[test]
fn one_seed_whose_nodes_keep_their_disks_always_gets_its_cluster() {
    assert_eq!(ends(Bounds { proposals: 4, ..CALM }), BTreeSet::from([End::Formed]));
    assert_eq!(ends(Bounds { proposals: 2, removals: 1, returns: 1, ..CALM }), BTreeSet::from([End::Formed]));
}

#[test]
fn a_second_seed_can_leave_voters_that_consented_to_it_behind() {
    let expected = [End::Formed, End::VoterGone, End::VoterConsentedElsewhere];
    assert_eq!(ends(Bounds { seeds: 2, proposals: 2, ..CALM }), BTreeSet::from(expected));
}

#[test]
fn a_disk_that_is_lost_before_raft_begins_leaves_the_others_bound() {
    let expected =
        [End::Formed, End::MajorityLost, End::VoterGone, End::VoterConsentedElsewhere, End::SeedGone];
    assert_eq!(ends(Bounds { proposals: 2, wipes: 2, ..CALM }), BTreeSet::from(expected));
}

#[test]
fn a_second_process_of_one_name_can_leave_nodes_bound_to_two_clusters() {
    let ends = ends(Bounds { proposals: 2, wipes: 1, replacements: 1, ..CALM });
    assert!(ends.is_superset(&BTreeSet::from([End::TwoUnfinished, End::BoundElsewhere])), "{ends:?}");
    assert!(!ends.contains(&End::Unexplained));
}

#[test]
fn a_ledger_leaves_a_record_without_a_cluster_or_a_cluster_without_its_majority() {
    let expected = [End::Formed, End::MajorityLost, End::RecordedSeedGone, End::RecordedTooLate];
    let bounds = Bounds { seeds: 2, proposals: 2, wipes: 3, has_ledger: true, ..CALM };
    assert_eq!(ends(bounds), BTreeSet::from(expected));
}

#[test]
fn every_state_that_a_person_resolves_is_in_the_documentation() {
    let all = [
        End::MajorityLost,
        End::VoterGone,
        End::VoterConsentedElsewhere,
        End::SeedGone,
        End::TwoUnfinished,
        End::BoundElsewhere,
        End::RecordedSeedGone,
        End::RecordedTooLate,
    ];
    for end in all {
        assert!(PAGE.contains(&format!("`{end:?}`")), "docs/formation.md does not say what to do: {end:?}");
    }
}
