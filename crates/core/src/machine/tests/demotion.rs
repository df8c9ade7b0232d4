//! Every cause of demotion with its reason: validation, silent connections, health, errors that trying again cannot mend.

use super::script::{Script, held_by, held_by_me, id, ms, released};
use crate::{Ask, Input, Options, Reason, Request, Seen, Signal};

type Cause = (&'static str, fn(&mut Options), fn(&mut Script), &'static str);

fn plain(_: &mut Options) {}
fn validating(options: &mut Options) {
    options.validation = Some(ms(6_000));
}
fn with_health(options: &mut Options) {
    options.health_failures = Some(3);
}
fn with_grace(options: &mut Options) {
    options.disconnect_grace = Some(ms(10_000));
}

const CAUSES: &[Cause] = &[
    ("heartbeats get no answer", plain, |s| _ = s.at(13_500), "lost e5 deadline"),
    ("update conflict", plain, |s| _ = s.at(5_000).denied_by("b"), "lost e5 conflict"),
    (
        "token mismatch",
        validating,
        |s| _ = s.at(5_000).granted(5).at(6_000).looked(held_by("b", 9)),
        "lost e5 validation",
    ),
    (
        "health check fails",
        with_health,
        |s| {
            for _ in 0..3 {
                s.feed(Input::Health(false));
            }
            s.work_ended(5).released();
        },
        "lost e5 health (released)",
    ),
    (
        "connection lost beyond the grace",
        with_grace,
        |s| _ = s.at(1_000).signal(Signal::Doubt).at(11_000),
        "lost e5 connection",
    ),
    ("session closed", plain, |s| _ = s.at(1_000).signal(Signal::Gone), "lost e5 connection"),
    (
        "manual admin action",
        plain,
        |s| {
            let request = Request { epoch: super::script::e(5), what: Ask::StepDown { to: None } };
            s.signal(Signal::Requested(request)).work_ended(5).released();
        },
        "lost e5 admin (released)",
    ),
    (
        "priority takeover",
        plain,
        |s| {
            let what = Ask::Preempt { by: id("b"), priority: 1 };
            let request = Request { epoch: super::script::e(5), what };
            s.signal(Signal::Requested(request)).work_ended(5).released();
        },
        "lost e5 preempted (released)",
    ),
    ("bucket deleted", plain, |s| _ = s.at(5_000).refused(), "lost e5 refused"),
];

#[test]
fn every_cause_of_demotion_has_its_reason() {
    for (cause, settings, happens, lost) in CAUSES {
        let mut script = Script::leading(*settings);
        happens(&mut script);
        let told = script.told();
        assert!(told.split(", ").any(|line| line == *lost), "{cause}: {told}");
        assert!(told.contains("end_work e5"), "{cause}: the work was not told to stop: {told}");
        assert_ne!(script.state(), "leader", "{cause}");
    }
    for reason in Reason::ALL {
        let word = reason.as_str();
        let any = CAUSES.iter().any(|cause| cause.3.split(' ').any(|said| said == word));
        assert!(any, "no cause for {reason:?}");
    }
}

#[test]
fn validation_reads_the_record_back_at_its_interval() {
    let mut script = Script::leading(validating);
    script.at(5_000).granted(5).at(6_000);
    assert_eq!(script.told(), "renew#2 e5, believe e5 until 18500, observe#3");
    script.looked(held_by_me(5)).at(10_000).granted(5).at(12_000);
    assert_eq!(script.told(), "renew#4 e5, believe e5 until 23500, observe#5");
}

#[test]
fn validation_finds_no_record_or_another_epoch_or_another_start_of_us() {
    for seen in [Seen::nothing(), released(5), held_by_me(6), held_by("a", 5)] {
        let mut script = Script::leading(plain);
        script.at(1_000).feed(Input::Validate).looked(seen.clone());
        assert_eq!(script.heard(), "lost e5 validation", "{seen:?}");
    }
}

#[test]
fn validation_of_a_store_that_tells_no_epochs_goes_by_the_incarnation() {
    let mut script = Script::leading(plain);
    script.feed(Input::Validate).looked(Seen { epoch: None, ..held_by_me(5) });
    assert_eq!(script.leads(), Some((5, 13_500)));
}

/// A validation that fails or hangs decides nothing; only a renewal prolongs, and the deadline ends.
#[test]
fn validation_without_an_answer_neither_demotes_nor_prolongs() {
    let mut script = Script::leading(plain);
    script.at(1_000).feed(Input::Validate).unknown();
    assert_eq!(script.heard(), "error unavailable");
    script.feed(Input::Validate).at(4_000);
    assert_eq!(script.heard(), "error timed_out");
    assert_eq!(script.leads(), Some((5, 13_500)));
}

#[test]
fn a_heartbeat_time_out_counts_as_a_failure() {
    let mut script = Script::leading(|options| options.failed_renewals = Some(2));
    script.at(12_999);
    assert_eq!(script.heard(), "error timed_out, danger e5");
    script.at(13_000);
    assert_eq!(script.heard(), "error timed_out, lost e5 connection");
}

#[test]
fn a_disconnect_grace_cannot_outlive_the_deadline() {
    let mut script = Script::leading(|options| options.disconnect_grace = Some(ms(60_000)));
    script.at(1_000).signal(Signal::Doubt).at(13_499);
    assert_eq!(script.state(), "leader");
    script.told();
    script.at(13_500);
    assert_eq!(script.heard(), "lost e5 deadline");
}

#[test]
fn a_connection_that_comes_back_within_the_grace_is_verified_at_once() {
    let mut script = Script::leading(with_grace);
    script.at(1_000).signal(Signal::Doubt).at(3_000).signal(Signal::Doubt).at(4_000).signal(Signal::Restored);
    assert_eq!(script.told(), "renew#2 e5");
    script.granted(5).at(9_000).granted(5).at(13_000);
    assert_eq!(script.leads(), Some((5, 22_500)));
}

#[test]
fn a_renewal_that_gets_through_ends_the_doubt() {
    let mut script = Script::leading(with_grace);
    script.at(4_000).signal(Signal::Doubt).at(5_000).granted(5).at(10_000).granted(5).at(14_000);
    assert_eq!(script.state(), "leader");
}

#[test]
fn no_candidate_competes_before_the_health_check_passes() {
    let mut script = Script::with(with_health);
    script.feed(Input::Start).at(60_000);
    assert_eq!((script.told().as_str(), script.wakes()), ("state stopped→follower", None));
    script.feed(Input::Health(true));
    assert_eq!(script.told(), "claim#1, state follower→acquiring");
}

#[test]
fn health_failures_count_in_a_row_only() {
    let mut script = Script::leading(with_health);
    for ok in [false, false, true, false, false] {
        script.feed(Input::Health(ok));
    }
    assert_eq!(script.state(), "leader");
    script.feed(Input::Health(false));
    assert_eq!(script.told(), "end_work e5 by 13500 health, state leader→releasing");
    script.work_ended(5).released().at(60_000);
    assert_eq!(script.heard(), "lost e5 health (released)");
    assert_eq!((script.state(), script.wakes()), ("follower", None), "unfit, so not standing");
}

#[test]
fn a_permanent_error_stops_at_once_and_says_why() {
    let mut script = Script::acquiring(plain);
    script.refused();
    assert_eq!(script.heard(), "error permission_denied, stopped");
    assert!(script.core.failure().is_some() && script.core.is_quiet());
    script.feed(Input::Start);
    assert!(script.core.failure().is_none());
    assert_eq!(script.state(), "acquiring");
}

#[test]
fn a_permanent_error_while_leading_ends_the_leadership_and_stops() {
    let mut script = Script::leading(plain);
    script.at(5_000).refused();
    assert_eq!(script.heard(), "error permission_denied, lost e5 refused, stopped");
}

#[test]
fn a_second_silence_within_the_first_does_not_start_the_grace_anew() {
    let mut script = Script::leading(with_grace);
    script.at(1_000).signal(Signal::Doubt).at(6_000).signal(Signal::Doubt).at(11_000);
    assert_eq!(script.state(), "follower");
}
