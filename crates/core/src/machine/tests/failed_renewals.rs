//! Failed renewals: one keeps the lead, several in a row end it, and the deadline ends it whatever the count.

use super::script::Script;
use crate::{Input, Options};

fn three(options: &mut Options) {
    options.failed_renewals = Some(3);
}

#[test]
fn a_single_failed_renewal_keeps_the_lead_and_is_tried_again() {
    let mut script = Script::leading(three);
    script.at(5_000).unknown();
    assert_eq!(script.told(), "renew#2 e5, error unavailable");
    assert_eq!((script.leads(), script.wakes()), (Some((5, 13_500)), Some(7_000)));
}

#[test]
fn consecutive_failures_demote() {
    let mut script = Script::leading(three);
    script.at(5_000).unknown().at(7_000).unknown();
    assert_eq!(script.state(), "leader");
    script.at(9_000).unknown();
    assert_eq!(script.heard(), "error unavailable, error unavailable, error unavailable, lost e5 connection");
}

#[test]
fn a_success_in_between_resets_the_count() {
    let mut script = Script::leading(three);
    script.at(5_000).unknown().at(7_000).unknown().at(9_000).granted(5);
    assert_eq!(script.leads(), Some((5, 22_500)));
    script.at(14_000).unknown().at(16_000).unknown();
    assert_eq!(script.state(), "leader");
    script.at(18_000).unknown();
    assert_eq!(script.state(), "follower");
}

#[test]
fn without_a_count_failures_alone_never_demote() {
    let mut script = Script::leading(|_| {});
    for at in [5_000, 7_000, 9_000, 11_000, 13_000] {
        script.at(at).unknown();
        assert_eq!(script.leads(), Some((5, 13_500)));
    }
    script.told();
    script.at(13_500);
    assert_eq!(script.heard(), "lost e5 deadline");
}

#[test]
fn the_deadline_wins_over_a_count_that_a_hung_call_never_reaches() {
    let mut script = Script::leading(|options| options.failed_renewals = Some(100));
    script.at(13_499);
    assert_eq!(script.state(), "leader");
    script.told();
    script.at(13_500);
    assert_eq!(script.heard(), "lost e5 deadline");
}

#[test]
fn followers_retry_every_two_seconds_and_leaders_renew_every_five() {
    let mut script = Script::acquiring(|_| {});
    for at in [2_000, 4_000, 6_000] {
        script.denied_by("b");
        assert_eq!(script.wakes(), Some(at));
        script.at(at);
    }
    script.granted(10);
    for at in [11_000, 16_000, 21_000] {
        assert!(script.told().contains("e10"));
        script.at(at).granted(10);
    }
    assert_eq!(script.leads(), Some((10, 34_500)));
}

#[test]
fn stopping_releases_what_is_held_and_a_follower_has_nothing_to_release() {
    let mut script = Script::leading(|_| {});
    script.feed(Input::Stop).work_ended(5);
    assert!(script.told().contains("release#2 e5"));
    let mut script = Script::acquiring(|_| {});
    script.denied_by("b").feed(Input::Stop);
    assert!(!script.told().contains("release"));
}
