//! The register with a writer or reader stopped at every step while others go on, and with files deleted by hand.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::*;
use crate::sweep::KEPT;
use bellwether_backend::Write;

/// Where a writer can be stopped, in order.
const STEPS: [&str; 6] = ["checked", "temporary", "checked again", "linked", "synced", "looked"];

struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Scratch {
        let path = std::env::temp_dir().join(format!("bellwether{}", directory::unique_name()));
        fs::create_dir(&path).unwrap();
        Scratch(path)
    }

    fn records(&self) -> Numbered {
        Numbered::new(&self.0, "", |_| true)
    }

    fn numbers(&self) -> Vec<u64> {
        let mut numbers: Vec<u64> =
            names(&self.0).iter().filter_map(|n| n.strip_suffix(".json")?.parse().ok()).collect();
        numbers.sort_unstable();
        numbers
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn names(dir: &Path) -> Vec<String> {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn done(write: Result<Write<Version>, bellwether_core::StoreError>) -> Version {
    match write.unwrap() {
        Write::Done(version) => version,
        other => panic!("{other:?}"),
    }
}

fn is_conflict(write: Result<Write<Version>, bellwether_core::StoreError>) -> bool {
    matches!(write, Ok(Write::Conflict))
}

/// Writes `count` values, one upon the other.
fn advance(records: &Numbered, count: usize) {
    for _ in 0..count {
        let at = records.load().unwrap().map(|found| found.version);
        let _ = done(records.write(at, b"other"));
    }
}

fn text(records: &Numbered) -> Option<String> {
    records.load().unwrap().map(|found| match found.value {
        Value::Bytes(bytes) => String::from_utf8(bytes).unwrap(),
        other => panic!("{other:?}"),
    })
}

#[test]
fn a_value_is_created_replaced_and_read_back() {
    let scratch = Scratch::new();
    let records = scratch.records();
    assert_eq!(records.load().unwrap(), None);
    let first = done(records.write(None, b"one"));
    assert_eq!(first.number(), 1);
    assert!(is_conflict(records.write(None, b"again")));
    let second = done(records.write(Some(first), b"two"));
    assert!(second > first);
    assert!(is_conflict(records.write(Some(first), b"late")));
    let found = records.load().unwrap().unwrap();
    assert_eq!((found.version, found.settled), (second, true));
    assert_eq!(text(&records).as_deref(), Some("two"));
    assert!(names(&scratch.0).iter().all(|name| !name.starts_with(".tmp-")));
}

#[test]
fn a_writer_stopped_at_any_step_while_others_go_on_holds_nobody_up_and_does_no_harm() {
    for others in [1, 2, KEPT - 1, KEPT, KEPT + 1, 3 * KEPT] {
        for step in STEPS {
            let scratch = Scratch::new();
            let (slow, other) = (scratch.records(), scratch.records());
            advance(&other, 3);
            let at = other.load().unwrap().map(|found| found.version);
            slow.pauses.once(step, move || advance(&other, others));
            let outcome = slow.write(at, b"slow").unwrap();
            assert!(slow.pauses.is_spent(), "{step} was not reached");
            let linked = ["linked", "synced", "looked"].contains(&step);
            assert_eq!(
                matches!(outcome, Write::Done(_)),
                linked && (others + 1 < KEPT || step == "looked"),
                "{step} {others}: {outcome:?}"
            );
            assert_eq!(text(&slow).as_deref(), Some("other"), "{step}, {others} others");
            let numbers = scratch.numbers();
            assert_eq!(*numbers.last().unwrap(), 3 + others as u64 + u64::from(linked), "{step}");
            advance(&slow, KEPT + 1);
            assert_eq!(scratch.numbers().len(), KEPT, "{step}, {others} others");
        }
    }
}

#[test]
fn a_creator_stopped_at_any_step_never_hides_what_others_created_meanwhile() {
    for step in STEPS {
        let scratch = Scratch::new();
        let (slow, other) = (scratch.records(), scratch.records());
        slow.pauses.once(step, move || advance(&other, 1));
        let outcome = slow.write(None, b"slow").unwrap();
        let linked = ["linked", "synced", "looked"].contains(&step);
        assert_eq!(matches!(outcome, Write::Done(_)), linked, "{step}: {outcome:?}");
        assert_eq!(text(&slow).as_deref(), Some("other"));
    }
}

/// Where the name that it links has been swept, nothing that was there when it looked tells: it must not take that for success.
#[test]
fn a_creator_that_slept_until_the_first_value_was_swept_did_not_create_it() {
    for others in 1..=2 * KEPT {
        for step in ["checked", "temporary", "checked again"] {
            let scratch = Scratch::new();
            let (slow, other) = (scratch.records(), scratch.records());
            slow.pauses.once(step, move || advance(&other, others));
            let outcome = slow.write(None, b"slow").unwrap();
            assert!(matches!(outcome, Write::Conflict), "{others} others, {step}: {outcome:?}");
            assert_eq!(text(&slow).as_deref(), Some("other"));
        }
    }
}

#[test]
fn a_writer_killed_at_any_step_leaves_a_register_that_works() {
    for step in STEPS {
        let scratch = Scratch::new();
        let killed = scratch.records();
        advance(&killed, 3);
        let at = killed.load().unwrap().map(|found| found.version);
        killed.pauses.once(step, || panic!("killed"));
        let end = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| killed.write(at, b"last words")));
        assert!(end.is_err());
        let found = scratch.records().load().unwrap().unwrap();
        assert!(found.settled, "{step}");
        advance(&scratch.records(), 20);
        assert_eq!(scratch.numbers().len(), KEPT);
    }
}

#[test]
fn records_deleted_by_hand_under_a_writer_make_it_lose() {
    for step in STEPS {
        let scratch = Scratch::new();
        let slow = scratch.records();
        advance(&slow, 5);
        let at = slow.load().unwrap().map(|found| found.version);
        let dir = scratch.0.clone();
        slow.pauses.once(step, move || {
            names(&dir)
                .iter()
                .filter(|name| name.ends_with(".json"))
                .for_each(|name| fs::remove_file(dir.join(name)).unwrap());
        });
        let outcome = slow.write(at, b"slow").unwrap();
        // After the last look nothing can tell any more; the next write does.
        assert_eq!(matches!(outcome, Write::Done(_)), step == "looked", "{step}: {outcome:?}");
        assert_eq!(slow.load().unwrap(), None, "{step}");
        assert!(done(slow.write(None, b"new")).number() > 5, "numbers go on above those that were known");
    }
}

#[test]
fn a_late_link_over_records_made_anew_is_taken_back_and_was_never_settled() {
    let scratch = Scratch::new();
    let slow = Arc::new(scratch.records());
    advance(&slow, 50);
    let at = slow.load().unwrap().map(|found| found.version);
    let dir = scratch.0.clone();
    slow.pauses.once("checked again", move || {
        names(&dir)
            .iter()
            .filter(|name| name.ends_with(".json"))
            .for_each(|name| fs::remove_file(dir.join(name)).unwrap());
        let fresh = Numbered::new(&dir, "", |_| true);
        let first = done(fresh.write(None, b"fresh leader"));
        assert_eq!(first.number(), 1);
        // What the slow one is about to do; seen by others before it looks again.
        fs::write(dir.join("51.json"), "slow").unwrap();
        let seen = fresh.load().unwrap().unwrap();
        assert_eq!((seen.version.number(), seen.settled), (51, false));
        fs::remove_file(dir.join("51.json")).unwrap();
    });
    assert!(is_conflict(slow.write(at, b"slow")));
    assert_eq!(text(&slow).as_deref(), Some("fresh leader"));
}

#[test]
fn creators_that_knew_different_numbers_are_never_both_done() {
    for slow_one_knows in [true, false] {
        let scratch = Scratch::new();
        let knows = scratch.records();
        advance(&knows, 50);
        for name in names(&scratch.0) {
            fs::remove_file(scratch.0.join(name)).unwrap();
        }
        let fresh = scratch.records();
        let (slow, quick, number) = if slow_one_knows { (knows, fresh, 1) } else { (fresh, knows, 51) };
        slow.pauses.once("checked again", move || {
            assert_eq!(done(quick.write(None, b"quick")).number(), number);
        });
        assert!(is_conflict(slow.write(None, b"slow")), "the slow one knows: {slow_one_knows}");
        assert_eq!(scratch.numbers(), [number]);
    }
}

#[test]
fn a_directory_removed_or_moved_away_under_a_writer_is_never_a_success() {
    for step in &STEPS[..5] {
        for moved in [false, true] {
            let scratch = Scratch::new();
            let slow = scratch.records();
            advance(&slow, 2);
            let at = slow.load().unwrap().map(|found| found.version);
            let dir = scratch.0.clone();
            let aside = Scratch(dir.with_extension("moved"));
            let target = aside.0.clone();
            slow.pauses.once(step, move || {
                if moved {
                    fs::rename(&dir, &target).unwrap()
                } else {
                    fs::remove_dir_all(&dir).unwrap()
                }
                fs::create_dir(&dir).unwrap();
            });
            match slow.write(at, b"slow") {
                Ok(Write::Done(_)) => panic!("{step} {moved}"),
                Ok(_) => {}
                Err(error) => assert!(error.is_retryable(), "{step} {moved}: {error}"),
            }
            assert_eq!(slow.load().unwrap(), None);
        }
    }
}

#[test]
fn a_reader_overtaken_between_listing_and_opening_still_finds_the_newest() {
    let scratch = Scratch::new();
    let (reader, other) = (scratch.records(), scratch.records());
    advance(&other, 3);
    reader.pauses.once("listed", move || advance(&other, 2 * KEPT));
    assert_eq!(reader.load().unwrap().unwrap().version.number(), 3 + 2 * KEPT as u64);
}

#[test]
fn a_slow_reader_does_not_take_a_sweep_for_a_deletion_by_hand() {
    let scratch = Scratch::new();
    let (reader, other) = (scratch.records(), scratch.records());
    advance(&other, 3);
    // Just far enough that the one it listed is the lowest that stays.
    reader.pauses.once("listed", move || advance(&other, KEPT - 1));
    let found = reader.load().unwrap().unwrap();
    assert_eq!((found.version.number(), found.settled), (2 + KEPT as u64, true));
}

#[test]
fn a_reader_that_finds_nothing_looks_twice() {
    let scratch = Scratch::new();
    let (reader, other) = (scratch.records(), scratch.records());
    reader.pauses.once("listed", move || advance(&other, 1));
    assert_eq!(reader.load().unwrap().unwrap().version.number(), 1);
}

#[test]
fn the_highest_is_never_swept_and_prefixes_do_not_meet() {
    let scratch = Scratch::new();
    let (lease, notes) = (scratch.records(), Numbered::new(&scratch.0, "history.", |_| true));
    for round in 1..=30u64 {
        advance(&lease, 1);
        advance(&notes, 2);
        assert_eq!(lease.load().unwrap().unwrap().version.number(), round);
        assert_eq!(notes.load().unwrap().unwrap().version.number(), 2 * round);
        assert_eq!(scratch.numbers().len() as u64, round.min(KEPT as u64));
    }
}

#[test]
fn forgotten_temporary_files_are_swept_and_fresh_ones_are_not() {
    let scratch = Scratch::new();
    for (name, age_secs) in
        [(".tmp-00000000000000ab", 3600), (".tmp-00000000000000cd", 60), (".tmp-old", 3600)]
    {
        let file = fs::File::create(scratch.0.join(name)).unwrap();
        let written = file.metadata().unwrap().modified().unwrap();
        file.set_modified(written - std::time::Duration::from_secs(age_secs)).unwrap();
    }
    advance(&scratch.records(), 1);
    let mut left = names(&scratch.0);
    left.sort();
    assert_eq!(left, [".tmp-00000000000000cd", ".tmp-old", "1.json"]);
}

#[test]
fn a_writer_that_slept_over_a_file_that_stays_is_no_success_once_others_have_gone_on() {
    for others in [1, 2, KEPT, 3 * KEPT] {
        let scratch = Scratch::new();
        fs::write(scratch.0.join("7.json"), "theirs").unwrap();
        let records = || Numbered::new(&scratch.0, "", |bytes| bytes != b"theirs");
        let (slow, quick, watcher) = (records(), records(), records());
        let at = slow.load().unwrap().map(|found| found.version);
        slow.pauses.once("checked again", move || advance(&quick, others));
        assert!(is_conflict(slow.write(at, b"slow")), "{others} others");
        assert_eq!(watcher.load().unwrap().unwrap().version.number(), 7 + others as u64);
        advance(&watcher, KEPT);
        assert_eq!(scratch.numbers().len(), KEPT + 1, "ours are swept and theirs stays");
        assert_eq!(fs::read_to_string(scratch.0.join("7.json")).unwrap(), "theirs");
    }
}

type Hook = Box<dyn FnMut() + Send>;

/// Runs a closure at one named step of a reader or writer, once: to let others go on meanwhile.
#[derive(Default)]
pub(crate) struct Pauses(std::sync::Mutex<Option<(&'static str, Hook)>>);

impl Pauses {
    pub(crate) fn once(&self, step: &'static str, hook: impl FnMut() + Send + 'static) {
        *self.0.lock().unwrap() = Some((step, Box::new(hook)));
    }

    pub(crate) fn at(&self, step: &str) {
        let due = self.0.lock().unwrap().take_if(|(wanted, _)| *wanted == step);
        if let Some((_, mut hook)) = due {
            hook();
        }
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.0.lock().unwrap().is_none()
    }
}

impl std::fmt::Debug for Pauses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pauses")
    }
}
