//! Synthetic histories: each kind of violation is planted and found, each kind of doubt is told, and what is fine is clean.

use bellwether_audit::{Audit, Doubt, Judgement, Verdict, Violation, svg, timeline};

/// One line. `more` is the rest of its fields, such as `"deadline_boot_ns":9`.
fn line(who: &str, at: u64, event: &str, epoch: u64, more: &str) -> String {
    let comma = if more.is_empty() { "" } else { "," };
    format!(
        r#"{{"time":"2026-01-01T00:00:00Z","boot_ns":{at},"election":"e","id":"{who}","incarnation":"{who}1","event":"{event}","epoch":{epoch}{comma}{more}}}"#
    )
}

fn acquired(who: &str, at: u64, epoch: u64, deadline: u64) -> String {
    line(who, at, "acquired", epoch, &format!(r#""deadline_boot_ns":{deadline}"#))
}

fn renewed(who: &str, at: u64, epoch: u64, deadline: u64) -> String {
    line(who, at, "renewed", epoch, &format!(r#""deadline_boot_ns":{deadline}"#))
}

fn released(who: &str, at: u64, epoch: u64) -> String {
    line(who, at, "released", epoch, "")
}

fn judged(lines: &[String]) -> Verdict {
    let mut audit = Audit::new();
    audit.read(lines.join("\n").as_bytes()).expect("bytes can be read");
    audit.verdict()
}

fn kinds(verdict: &Verdict) -> (Vec<&'static str>, Vec<&'static str>) {
    let violations = verdict.violations.iter().map(Violation::kind).collect();
    (violations, verdict.doubts.iter().map(Doubt::kind).collect())
}

#[track_caller]
fn finds(lines: &[String], violations: &[&str], doubts: &[&str]) -> Verdict {
    let verdict = judged(lines);
    assert_eq!(kinds(&verdict), (violations.to_vec(), doubts.to_vec()), "{verdict:#?}");
    // Whatever was found can be shown.
    assert!(!timeline(&verdict).is_empty() || verdict.leaderships.is_empty());
    assert!(svg(&verdict).ends_with("</svg>\n"));
    verdict
}

#[test]
fn leaderships_one_after_the_other_are_clean_in_whatever_order_they_are_read() {
    let mut lines = vec![
        acquired("a", 10, 1, 100),
        released("a", 20, 1),
        acquired("b", 25, 2, 100),
        line("b", 60, "lost", 2, r#""reason":"deadline","deadline_boot_ns":40"#),
        acquired("a", 41, 5, 140),
        released("a", 70, 5),
    ];
    for _ in 0..lines.len() {
        let verdict = finds(&lines, &[], &[]);
        assert_eq!(verdict.judgement(), Judgement::Clean);
        let gaps = &verdict.figures.gaps;
        assert_eq!(gaps.handovers().map(|gap| gap.max.as_nanos()), Some(5));
        assert_eq!(
            gaps.failovers().map(|gap| gap.max.as_nanos()),
            Some(1),
            "from the deadline, not from the line"
        );
        lines.rotate_left(1);
    }
}

#[test]
fn two_who_lead_at_once_are_found() {
    let lines =
        [acquired("a", 10, 1, 100), acquired("b", 50, 2, 150), released("a", 60, 1), released("b", 70, 2)];
    let verdict = finds(&lines, &["overlap"], &[]);
    let Violation::Overlap { first, second, span } = &verdict.violations[0] else { unreachable!() };
    assert_eq!((first.owner.id.as_str(), second.owner.id.as_str(), span.as_nanos()), ("a", "b", 10));
    assert_eq!(verdict.judgement(), Judgement::Violated);
    assert!(svg(&verdict).contains("class=\"bad\""));
}

/// The leader believed until its deadline, whenever it came round to saying so.
#[test]
fn an_overlap_with_one_that_was_stopped_counts_up_to_its_deadline() {
    let late = |deadline: u64| {
        line("a", 500, "lost", 1, &format!(r#""reason":"deadline","deadline_boot_ns":{deadline}"#))
    };
    let next = [acquired("b", 90, 2, 190), released("b", 150, 2)];
    finds(&[vec![acquired("a", 10, 1, 80), late(80)], next.to_vec()].concat(), &[], &[]);
    finds(&[vec![acquired("a", 10, 1, 100), late(100)], next.to_vec()].concat(), &["overlap"], &[]);
}

/// The state `leader` is left before the work has stopped and the release is written.
#[test]
fn belief_ends_when_the_state_leader_is_left() {
    let left = line("a", 30, "state_changed", 1, r#""from":"leader","to":"releasing""#);
    finds(
        &[
            acquired("a", 10, 1, 100),
            left,
            released("a", 60, 1),
            acquired("b", 40, 2, 140),
            released("b", 50, 2),
        ],
        &[],
        &[],
    );
}

#[test]
fn epochs_that_fall_or_repeat_are_found() {
    let one = |epoch| vec![acquired("a", 10, epoch, 100), released("a", 20, epoch)];
    let next = |epoch| vec![acquired("b", 30, epoch, 130), released("b", 40, epoch)];
    finds(&[one(7), next(6)].concat(), &["epoch_fell"], &[]);
    finds(&[one(7), next(7)].concat(), &["two_owners"], &[]);
    let again = vec![acquired("a", 30, 7, 130), released("a", 40, 7)];
    finds(&[one(7), again].concat(), &["epoch_fell"], &[]);
}

#[test]
fn promotion_and_demotion_that_do_not_alternate_are_found() {
    finds(
        &[acquired("a", 10, 1, 100), acquired("a", 20, 2, 120), released("a", 30, 2)],
        &["begun_twice"],
        &[],
    );
    finds(&[acquired("a", 10, 1, 100), released("a", 20, 1), released("a", 30, 1)], &["ended_unbegun"], &[]);
    finds(&[released("a", 20, 1)], &["ended_unbegun"], &[]);
}

#[test]
fn a_leader_without_an_end_is_unknown_after_its_first_deadline() {
    let lines = [acquired("a", 10, 1, 100), acquired("b", 300, 2, 400), released("b", 350, 2)];
    let verdict = finds(&lines, &[], &["unknown_after"]);
    assert_eq!(verdict.judgement(), Judgement::Unknown);
    let known = [lines.to_vec(), vec![renewed("a", 11, 1, 100)]].concat();
    assert_eq!(
        finds(&known, &[], &[]).judgement(),
        Judgement::Clean,
        "it was not renewed, and that is known"
    );
    let renewed_after = [known, vec![renewed("a", 90, 1, 320)]].concat();
    finds(&renewed_after, &[], &["killed_or_beside"]);
}

#[test]
fn whoever_says_that_a_leader_was_killed_settles_it() {
    let lines = [
        acquired("a", 10, 1, 100),
        renewed("a", 10, 1, 100),
        acquired("b", 50, 2, 150),
        released("b", 90, 2),
    ];
    finds(&lines, &[], &["killed_or_beside"]);
    let with = |at: u64| [lines.to_vec(), vec![line("a", at, "killed", 1, "")]].concat();
    assert_eq!(finds(&with(40), &[], &[]).figures.gaps.failovers().map(|gap| gap.max.as_nanos()), Some(10));
    finds(&with(60), &["overlap"], &[]);
}

/// It lived, and had not ended its leadership: no kill explains that.
#[test]
fn a_later_line_of_a_leader_shows_that_it_lived() {
    let sign = line("a", 70, "error", 1, r#""error":"x","kind":"timed_out""#);
    finds(
        &[acquired("a", 10, 1, 100), sign, acquired("b", 50, 2, 150), released("b", 90, 2)],
        &["overlap"],
        &[],
    );
}

#[test]
fn the_last_leader_may_still_lead() {
    let lines = [acquired("a", 10, 1, 100), released("a", 20, 1), acquired("b", 30, 2, 130)];
    assert_eq!(finds(&lines, &[], &[]).judgement(), Judgement::Clean);
}

#[test]
fn missing_lines_are_a_doubt_and_excuse_what_may_be_in_them() {
    let missed = line("a", 15, "missed", 0, r#""count":9,"state":"leader""#);
    let verdict = finds(&[acquired("a", 10, 1, 100), missed, released("a", 20, 8)], &[], &["missing"]);
    assert_eq!(verdict.judgement(), Judgement::Unknown);
}

#[test]
fn clocks_of_two_machines_are_not_compared_and_their_epochs_are() {
    let on = |who: &str, boot: &str, at: u64, epoch: u64| {
        let more = format!(r#""deadline_boot_ns":{},"boot_id":"{boot}""#, at + 100);
        vec![line(who, at, "acquired", epoch, &more), released(who, at + 50, epoch)]
    };
    let verdict = finds(&[on("a", "one", 10, 1), on("b", "two", 20, 2)].concat(), &[], &[]);
    assert_eq!(verdict.figures.boots.len(), 2);
    finds(&[on("a", "one", 10, 1), on("b", "one", 20, 2)].concat(), &["overlap"], &[]);
    finds(&[on("a", "one", 10, 3), on("b", "two", 20, 3)].concat(), &["two_owners"], &[]);
}

#[test]
fn elections_are_judged_apart() {
    let other = |text: String| text.replace(r#""election":"e""#, r#""election":"f""#);
    let lines = [
        acquired("a", 10, 5, 100),
        released("a", 90, 5),
        other(acquired("b", 20, 2, 100)),
        other(released("b", 30, 2)),
    ];
    assert_eq!(finds(&lines, &[], &[]).figures.elections, 2);
}

#[test]
fn what_is_no_event_line_is_skipped_and_nothing_proves_nothing() {
    let long = "x".repeat(200_000);
    let text = format!("hello\n\n{{\"event\":3}}\n{long}\n\u{0}\n{}", acquired("a", 10, 1, 100));
    let mut audit = Audit::new();
    audit.read(text.as_bytes()).unwrap();
    audit.read(&b"\xff\xfe\n"[..]).unwrap();
    let verdict = audit.verdict();
    assert_eq!((verdict.figures.lines, verdict.figures.skipped), (1, 5));
    assert_eq!(judged(&[]).judgement(), Judgement::Unknown);
}

#[test]
fn names_do_not_become_part_of_the_picture() {
    let evil = acquired("<script>", 10, 1, 100);
    let drawn = svg(&judged(&[evil]));
    assert!(!drawn.contains("<script>") && drawn.contains("&lt;script&gt;"), "{drawn}");
}

/// A kill line only shortens what is believed, and no more lines make a verdict of many leaderships slow.
#[test]
fn a_long_history_is_judged_in_one_pass() {
    let mut lines = Vec::new();
    for epoch in 1..=20_000 {
        let at = epoch * 100;
        lines.extend([acquired("a", at, epoch, at + 90), released("a", at + 50, epoch)]);
    }
    assert_eq!(finds(&lines, &[], &[]).leaderships.len(), 20_000);
}
