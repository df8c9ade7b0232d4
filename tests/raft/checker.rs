//! The judge of histories, on histories that are known to be right or wrong.

use bellwether_core::Boot;
use bellwether_tests::raft::{Act, Operation, Outcome, complaints};

fn operation(act: Act, called: u64, ended: u64, outcome: Outcome) -> Operation {
    let (called, ended) = (Boot::from_nanos(called), Boot::from_nanos(ended));
    Operation { register: "r".to_owned(), act, called, ended, outcome }
}

fn done(before: &str) -> Outcome {
    Outcome::Done { index: 0, before: Some(before.to_owned()).filter(|before| !before.is_empty()) }
}

/// A write that saw `before`.
fn write(text: &str, called: u64, ended: u64, before: &str) -> Operation {
    operation(Act::Write(text.to_owned()), called, ended, done(before))
}

fn unknown(text: &str, called: u64, ended: u64) -> Operation {
    operation(Act::Write(text.to_owned()), called, ended, Outcome::Unknown(String::new()))
}

fn refused(text: &str, called: u64, ended: u64) -> Operation {
    operation(Act::Write(text.to_owned()), called, ended, Outcome::Refused("not leader".to_owned()))
}

fn read(called: u64, ended: u64, saw: &str) -> Operation {
    operation(Act::Read, called, ended, done(saw))
}

#[track_caller]
fn holds(operations: &[Operation]) {
    assert_eq!(complaints(operations), Vec::<String>::new());
}

#[track_caller]
fn fails(operations: &[Operation], part: &str) {
    let found = complaints(operations);
    assert!(found.len() == 1 && found[0].contains(part), "{found:?}");
}

const NO_ORDER: &str = "no order explains";

#[test]
fn operations_one_after_the_other_have_their_order() {
    holds(&[write("a", 1, 2, ""), read(3, 4, "a"), write("b", 5, 6, "a"), read(7, 8, "b")]);
}

#[test]
fn operations_at_once_may_come_in_any_order() {
    holds(&[write("a", 1, 9, "b"), write("b", 2, 8, ""), read(3, 7, ""), read(4, 6, "b"), read(10, 11, "a")]);
}

#[test]
fn a_read_of_what_was_there_before_an_acknowledged_write_is_found() {
    fails(&[write("a", 1, 2, ""), write("b", 3, 4, "a"), read(5, 6, "a")], NO_ORDER);
}

#[test]
fn an_acknowledged_write_that_is_lost_is_found() {
    fails(&[write("a", 1, 2, ""), write("b", 3, 4, "")], NO_ORDER);
}

#[test]
fn two_leaders_that_both_acknowledge_are_found() {
    fails(&[write("a", 1, 2, ""), write("b", 3, 6, "a"), write("c", 4, 5, "a")], NO_ORDER);
}

#[test]
fn reads_that_go_back_in_time_are_found() {
    let both = [write("a", 1, 2, ""), write("b", 3, 9, "a")];
    holds(&[&both[..], &[read(4, 5, "a"), read(6, 7, "b")]].concat());
    fails(&[&both[..], &[read(4, 5, "b"), read(6, 7, "a")]].concat(), NO_ORDER);
}

#[test]
fn a_refused_write_that_somebody_sees_is_found() {
    holds(&[refused("a", 1, 2), read(3, 4, "")]);
    fails(&[refused("a", 1, 2), read(3, 4, "a")], "its write was refused");
}

#[test]
fn a_text_that_nobody_wrote_is_found() {
    fails(&[write("a", 1, 2, ""), read(3, 4, "b")], "nobody wrote it");
}

#[test]
fn an_unknown_write_may_happen_late_or_never_but_once() {
    let before = [unknown("x", 1, 2), write("a", 3, 4, ""), read(5, 6, "a")];
    holds(&before);
    holds(&[&before[..], &[read(7, 8, "x")]].concat());
    holds(&[&before[..], &[write("b", 7, 8, "x")]].concat());
    fails(&[&before[..], &[write("b", 7, 8, "x"), read(9, 10, "x")]].concat(), NO_ORDER);
    fails(&[read(1, 2, "x"), unknown("x", 3, 4)], NO_ORDER);
}

#[test]
fn registers_are_judged_each_by_itself() {
    let mut other = read(5, 6, "");
    other.register = "s".to_owned();
    holds(&[write("a", 1, 2, ""), other.clone()]);
    other.outcome = done("a");
    fails(&[write("a", 1, 2, ""), other], "register s");
}

/// Histories of three clients at once on one register, in an order that a small generator draws. The register is right, so every history
/// holds. Then one answer after the other is replaced by an older text: whether that is wrong is told by trying all orders.
#[test]
fn drawn_histories_hold_and_altered_ones_are_judged_as_all_their_orders_say() {
    let (mut found, mut tolerated) = (0, 0);
    for seed in 0..60 {
        let history = drawn(seed);
        holds(&history);
        for at in 0..history.len() {
            let mut altered = history.clone();
            if !alter(&mut altered[at]) {
                continue;
            }
            let has_order = has_order(&altered, &mut vec![false; altered.len()], None);
            assert_eq!(complaints(&altered).is_empty(), has_order, "seed {seed}, answer {at}: {altered:?}");
            if has_order { tolerated += 1 } else { found += 1 }
        }
    }
    assert!(found > 100 && tolerated > 0, "{found} found, {tolerated} tolerated");
}

/// Its answer becomes that there was nothing.
fn alter(operation: &mut Operation) -> bool {
    match &mut operation.outcome {
        Outcome::Done { before, .. } => before.take().is_some(),
        _ => false,
    }
}

fn drawn(seed: u64) -> Vec<Operation> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut draw = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut text = String::new();
    let mut history = Vec::new();
    for number in 0..8 {
        // The instant at which it happens rises; calls are before it and ends after it, across those of others.
        let happens = 100 * (number + 1);
        let (called, ended) = (happens - draw(250).min(happens), happens + draw(250));
        let before = text.clone();
        if draw(3) == 0 {
            history.push(read(called, ended, &before));
            continue;
        }
        let own = format!("t{number}");
        let is_told = draw(4) != 0;
        history.push(if is_told {
            write(&own, called, ended, &before)
        } else {
            unknown(&own, called, ended)
        });
        if is_told || draw(2) == 0 {
            text = own;
        }
    }
    history
}

/// By trying all of them, with unknown writes at every place and nowhere.
fn has_order(history: &[Operation], placed: &mut Vec<bool>, text: Option<&str>) -> bool {
    let is_open = |at: &usize| !placed[*at];
    let told = |at: &usize| history[*at].outcome.is_done();
    let open: Vec<usize> = (0..history.len()).filter(is_open).collect();
    let Some(first_end) = open.iter().filter(|at| told(at)).map(|at| history[*at].ended).min() else {
        return true;
    };
    open.iter().any(|at| {
        let next = &history[*at];
        let fits = match &next.outcome {
            Outcome::Done { before, .. } => before.as_deref() == text,
            _ => true,
        };
        if !fits || next.called > first_end {
            return false;
        }
        placed[*at] = true;
        let after = if let Act::Write(own) = &next.act { Some(own.as_str()) } else { text };
        let found = has_order(history, placed, after);
        placed[*at] = false;
        found
    })
}
