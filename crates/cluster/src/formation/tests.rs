//! Each rule by itself. All of them together are explored in `tests/formation`.

use super::*;

fn name(text: &str) -> NodeName {
    NodeName::new(text).unwrap()
}

fn cluster(number: u128) -> ClusterId {
    ClusterId::from_random(number)
}

fn invitation(round: u64, number: u128) -> Invitation {
    Invitation { round, cluster: cluster(number) }
}

fn voter(text: &str, number: u64) -> Voter {
    Voter { node: NodeId::from_random(number), name: name(text) }
}

fn consented(to: Invitation) -> Phase {
    Phase::Unbound { consent: Some(to) }
}

fn bound(number: u128) -> Phase {
    Phase::Bound { cluster: cluster(number), initial: None }
}

const SELF: NodeId = NodeId::from_random(1);

fn formed(number: u128, by: u64) -> Ledger {
    Ledger::Formed(Formed {
        cluster: cluster(number),
        voters: vec![voter("a-0", by)],
        time: "2026-01-01".into(),
    })
}

#[test]
fn a_node_with_state_restarts_whatever_the_flags_and_the_ledger_say() {
    for is_seed in [false, true] {
        for ledger in [Ledger::Unused, Ledger::Empty, formed(9, 9)] {
            for expected in [0, 1, 3] {
                assert_eq!(
                    decide(SELF, &bound(7), is_seed, expected, &ledger),
                    Decision::Restart(cluster(7))
                );
            }
        }
    }
}

#[test]
fn only_the_seed_proposes_and_only_where_no_cluster_is_on_record() {
    let of = |phase: &Phase, is_seed, ledger| decide(SELF, phase, is_seed, 3, &ledger);
    assert_eq!(of(&Phase::FRESH, true, Ledger::Unused), Decision::Propose);
    assert_eq!(of(&Phase::FRESH, true, Ledger::Empty), Decision::Propose);
    assert_eq!(of(&Phase::FRESH, false, Ledger::Empty), Decision::AwaitInvite);
    assert_eq!(of(&Phase::FRESH, true, formed(7, 2)), Decision::Join(cluster(7)), "a wiped seed");
    assert_eq!(of(&Phase::FRESH, false, formed(7, 2)), Decision::Join(cluster(7)));
    assert_eq!(of(&consented(invitation(1, 7)), true, formed(7, 1)), Decision::Propose, "its own record");
    assert_eq!(of(&consented(invitation(1, 8)), true, formed(7, 1)), Decision::Join(cluster(7)));
    assert_eq!(
        decide(SELF, &Phase::FRESH, true, 0, &Ledger::Unused),
        Decision::Refuse(Refusal::NobodyExpected)
    );
}

#[test]
fn a_removed_node_returns_to_its_own_cluster_or_nowhere() {
    let removed = bound(7).removed().unwrap();
    assert_eq!(decide(SELF, &removed, true, 3, &Ledger::Unused), Decision::Join(cluster(7)));
    let other = decide(SELF, &removed, true, 3, &formed(8, 2));
    assert!(matches!(other, Decision::Refuse(Refusal::OtherCluster { .. })));
    assert_eq!(removed.invited(invitation(99, 8)), (None, InviteAnswer::AlreadyIn(cluster(7))));
    assert_eq!(removed.joined(cluster(7)), Ok(Some(bound(7))));
    assert!(removed.joined(cluster(8)).is_err());
    assert!(removed.frame_of(cluster(7)).is_err(), "its old node id takes no part");
}

#[test]
fn consent_moves_upwards_and_never_back() {
    let (low, high) = (invitation(1, 9), invitation(2, 3));
    let (phase, answer) = Phase::FRESH.invited(low);
    assert_eq!((phase.clone(), answer), (Some(consented(low)), InviteAnswer::Consented));
    assert_eq!(consented(low).invited(low), (None, InviteAnswer::Consented), "asked again");
    assert_eq!(consented(low).invited(high), (Some(consented(high)), InviteAnswer::Consented));
    assert_eq!(consented(high).invited(low), (None, InviteAnswer::Higher(2)));
}

#[test]
fn a_proposal_that_is_dropped_undoes_no_consent_and_no_binding() {
    let higher = consented(invitation(2, 3));
    assert_eq!(higher.dropped(), Some(higher.clone()), "what it consented to meanwhile stays");
    assert_eq!(bound(3).dropped(), None);
    assert_eq!(bound(3).removed().unwrap().dropped(), None);
}

#[test]
fn the_first_frame_binds_and_only_to_the_cluster_of_the_last_consent() {
    let (low, high) = (invitation(1, 9), invitation(2, 3));
    assert_eq!(consented(high).frame_of(high.cluster), Ok(Some(bound(3))));
    assert!(consented(high).frame_of(low.cluster).is_err());
    assert!(Phase::FRESH.frame_of(low.cluster).is_err());
    assert_eq!(bound(3).frame_of(high.cluster), Ok(None));
    assert!(bound(3).frame_of(low.cluster).is_err());
    assert_eq!(bound(3).invited(invitation(99, 1)), (None, InviteAnswer::AlreadyIn(cluster(3))));
    assert!(bound(3).joined(low.cluster).is_err());
}

#[test]
fn a_proposal_is_complete_when_every_name_has_consented_to_it() {
    let all = ["a-0", "a-1", "a-2"].map(name);
    let (phase, mut proposal) = Proposal::new(&Phase::FRESH, voter("a-0", 1), all, cluster(5), 0).unwrap();
    let sent = proposal.invitation();
    assert_eq!((phase.clone(), sent), (consented(sent), invitation(1, 5)));
    assert_eq!(proposal.progress(), Progress::Waiting(vec![name("a-1"), name("a-2")]));
    let old = invitation(1, 4);
    let node = NodeId::from_random;
    assert!(
        matches!(proposal.answered(old, &name("a-1"), node(2), InviteAnswer::Consented), Progress::Waiting(left) if left.len() == 2)
    );
    assert!(
        matches!(proposal.answered(sent, &name("b-1"), node(2), InviteAnswer::Consented), Progress::Waiting(left) if left.len() == 2)
    );
    assert!(proposal.bound(&phase).is_none());
    proposal.answered(sent, &name("a-1"), node(2), InviteAnswer::Consented);
    let complete = proposal.answered(sent, &name("a-2"), node(3), InviteAnswer::Consented);
    let voters = vec![voter("a-0", 1), voter("a-1", 2), voter("a-2", 3)];
    assert_eq!(complete, Progress::Complete(voters.clone()));
    assert_eq!(proposal.bound(&phase), Some(Phase::Bound { cluster: cluster(5), initial: Some(voters) }));
    assert!(proposal.bound(&consented(invitation(2, 1))).is_none(), "it consented to another meanwhile");
}

#[test]
fn a_proposal_gives_way_to_a_higher_one_and_to_a_cluster_that_exists() {
    let all = ["a-0", "a-1"].map(name);
    let earlier = consented(invitation(4, 1));
    let (_, mut proposal) = Proposal::new(&earlier, voter("a-0", 1), all, cluster(5), 6).unwrap();
    assert_eq!(proposal.invitation(), invitation(7, 5), "above all that was heard of");
    let (sent, from, node) = (proposal.invitation(), name("a-1"), NodeId::from_random(2));
    assert_eq!(proposal.answered(sent, &from, node, InviteAnswer::Higher(9)), Progress::Superseded(9));
    assert!(
        matches!(proposal.answered(sent, &from, node, InviteAnswer::Higher(6)), Progress::Waiting(_)),
        "late"
    );
    let elsewhere = InviteAnswer::AlreadyIn(cluster(2));
    assert_eq!(proposal.answered(sent, &from, node, elsewhere), Progress::AlreadyIn(cluster(2)));
    assert!(Proposal::new(&bound(1), voter("a-0", 1), ["a-1"].map(name), cluster(5), 0).is_none());
}

#[test]
fn a_node_alone_is_all_of_its_cluster() {
    let (phase, proposal) = Proposal::new(&Phase::FRESH, voter("a-0", 1), [], cluster(5), 0).unwrap();
    assert!(
        matches!(proposal.bound(&phase), Some(Phase::Bound { initial: Some(voters), .. }) if voters.len() == 1)
    );
    let again = Proposal::recorded(&phase, voter("a-0", 1)).unwrap();
    assert_eq!(again, proposal);
}

#[test]
fn raft_begins_when_every_voter_is_bound_and_asks_all_again_after_a_restart() {
    let voters = vec![voter("a-0", 1), voter("a-1", 2), voter("a-2", 3)];
    let phase = Phase::Bound { cluster: cluster(5), initial: Some(voters.clone()) };
    let mut binding = Binding::new(SELF, &phase).unwrap();
    let node = NodeId::from_random;
    assert_eq!(binding.cluster(), cluster(5));
    binding.is_bound(node(3));
    binding.is_bound(node(9));
    assert_eq!(binding.waiting().collect::<Vec<_>>(), [&voters[1]]);
    assert_eq!(binding.complete(), None, "a majority is not enough");
    binding.is_bound(node(2));
    assert_eq!(binding.complete(), Some(&voters[..]));
    assert_eq!(Binding::new(SELF, &phase).unwrap().waiting().count(), 2);
    assert!(Binding::new(node(2), &bound(5)).is_none(), "only the seed has the voters");
}

#[test]
fn a_cluster_is_given_up_unless_somebody_says_that_it_runs() {
    let removed = Phase::Removed { cluster: cluster(7) };
    for phase in [bound(7), removed] {
        assert_eq!(give_up(&phase, cluster(7), None), Ok(true), "silence says nothing against it");
        let refusal = give_up(&phase, cluster(7), Some("a-1")).unwrap_err();
        assert!(refusal.to_string().contains("stop all its nodes"), "{refusal}");
        for led_by in [None, Some("a-1")] {
            assert_eq!(give_up(&phase, cluster(8), led_by), Ok(false), "the flag stays, and its cluster too");
        }
    }
    assert_eq!(give_up(&Phase::FRESH, cluster(7), None), Ok(false), "nothing to put away");
    assert!(give_up(&Phase::FRESH, cluster(7), Some("a-1")).is_err(), "it would form another one beside it");
}
