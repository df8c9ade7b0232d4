//! `bellwether audit` on what real candidates wrote.

use std::path::Path;

use bellwether_tests::{Candidate, json};

use crate::{leader, on, temporary};

/// The lines that they have written, in a file.
fn written<'a>(directory: &Path, by: impl IntoIterator<Item = &'a mut Candidate>, more: &str) -> String {
    let mut text = String::from("not an event line\n");
    for candidate in by {
        candidate.drain();
        candidate.said.iter().for_each(|line| text.push_str(&format!("{line}\n")));
    }
    let file = directory.join(format!("events-{}", text.len()));
    std::fs::write(&file, text + more).expect("our own directory");
    file.display().to_string()
}

#[test]
fn candidates_that_hand_over_are_clean_and_are_drawn() {
    let directory = temporary();
    let renewals = ["--ttl", "600ms", "--events-renewals"];
    let mut a = leader(directory.path(), "a", &renewals);
    let mut b = Candidate::on_file(directory.path(), "job", "b", &renewals);
    b.joined();
    let begun = a.expect("renewed");
    let next = a.expect("renewed");
    assert!(begun.instant("deadline_boot_ns") < next.instant("deadline_boot_ns"), "{begun} {next}");
    assert_eq!(on(directory.path(), &["step-down", "job", "--to", "b"]).status.code(), Some(0));
    a.expect("lost");
    b.expect("acquired");
    let file = written(directory.path(), [&mut a, &mut b], "");
    let picture = directory.path().join("leaders.svg").display().to_string();
    let judged = on(directory.path(), &["audit", &file, "--svg", &picture, "-o", "json"]);
    assert_eq!(judged.status.code(), Some(0), "{judged:?}");
    let verdict = json(&judged);
    assert_eq!(
        (verdict["verdict"].as_str(), verdict["leaderships"].as_u64()),
        (Some("clean"), Some(2)),
        "{verdict}"
    );
    assert_eq!((verdict["skipped"].as_u64(), verdict["boots"].as_u64()), (Some(1), Some(1)), "{verdict}");
    assert!(std::fs::read_to_string(&picture).expect("it was drawn").contains("<svg"));
    let again = on(directory.path(), &["audit", &file, "--svg", &picture]);
    assert_eq!(again.status.code(), Some(64), "an existing file is left alone: {again:?}");
    let people = on(directory.path(), &["audit", &file]);
    let said = String::from_utf8_lossy(&people.stdout).into_owned();
    assert!(said.starts_with("clean: ") && said.contains('█'), "{said}");
}

/// The file store proves its death, so the next leader does not wait for its deadline.
#[test]
fn a_killed_leader_is_in_doubt_until_somebody_says_when_it_was_killed() {
    let directory = temporary();
    let mut a = leader(directory.path(), "a", &["--ttl", "20s", "--events-renewals"]);
    let mut b = Candidate::on_file(directory.path(), "job", "b", &["--ttl", "20s", "--events-renewals"]);
    b.joined();
    a.drain();
    let last = a.said.last().expect("it has said something").clone();
    a.kill();
    b.expect("acquired");
    let file = written(directory.path(), [&mut a, &mut b], "");
    let judged = on(directory.path(), &["audit", &file]);
    assert_eq!(judged.status.code(), Some(1), "{judged:?}");
    let said = String::from_utf8_lossy(&judged.stdout).into_owned();
    assert!(said.contains("was it killed before that?"), "{said}");
    let killed = a.killed.expect("it was killed").as_nanos();
    let killed = format!(
        r#"{{"boot_ns":{killed},"election":"job","id":"a","incarnation":"{}","event":"killed","epoch":null}}"#,
        last.text("incarnation").expect("every line has one")
    );
    let file = written(directory.path(), [&mut a, &mut b], &killed);
    let judged = on(directory.path(), &["audit", &file]);
    assert_eq!(judged.status.code(), Some(0), "{judged:?}");
}

#[test]
fn what_cannot_be_judged_is_no_success() {
    let directory = temporary();
    let empty = directory.path().join("empty");
    std::fs::write(&empty, "").expect("our own directory");
    let judged = on(directory.path(), &["audit", &empty.display().to_string()]);
    assert_eq!(judged.status.code(), Some(1), "{judged:?}");
    assert!(String::from_utf8_lossy(&judged.stdout).contains("no leadership"), "{judged:?}");
    for arguments in [&["audit", "/nowhere/at/all"][..], &["audit"]] {
        assert_eq!(on(directory.path(), arguments).status.code(), Some(64), "{arguments:?}");
    }
    let alone = on(directory.path(), &["run", "job", "--events-renewals"]);
    assert_eq!(alone.status.code(), Some(64), "{alone:?}");
    assert!(String::from_utf8_lossy(&alone.stderr).contains("--events"), "{alone:?}");
}
