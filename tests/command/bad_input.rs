//! Bad input of every kind gets a sentence that says what to do and the right exit code, and nothing is lost.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use bellwether_tests::{Candidate, Mount, bellwether, run_to_end, until_blocking};

use crate::{on, temporary};

fn plain(arguments: &[&str]) -> Output {
    let mut command = Command::new(bellwether());
    command.args(arguments);
    run_to_end(command)
}

#[track_caller]
fn refused(output: &Output, code: i32, sentence: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(said.contains(sentence), "{said:?} does not say {sentence:?}");
}

#[test]
fn unsafe_timings_say_what_to_change() {
    for (flags, sentence) in [
        (&["--ttl", "0s"][..], "ttl must be"),
        (&["--ttl", "3s", "--renew", "2s"], "a third of the ttl"),
        (&["--ttl", "3s", "--retry", "1m"], "retry interval"),
        (&["--ttl", "soon"], "not a duration"),
        (&["--preempt"], "priority above 0"),
        (&["--cooldown", "0s"], "cooldown"),
    ] {
        let arguments = [&["run", "job"], flags].concat();
        refused(&plain(&[&["--backend", "memory:"], &arguments[..]].concat()), 64, sentence);
    }
}

#[test]
fn what_was_typed_wrong_is_told_before_anything_is_started() {
    for flags in [
        &["--backend", "memory:", "run", "job", "--ttl", "3s", "--renew", "2s"][..],
        &["--backend", "memory:", "run", "job", "--grace", "1m"],
        &["--backend", "memory:", "--id", "", "run", "job"],
        &["--backend", "file:", "run", "job"],
    ] {
        let output = plain(&[flags, &["--", "true"]].concat());
        refused(&output, 64, "bellwether: ");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn wrong_words_are_told_from_right_ones() {
    refused(&plain(&["rum", "job"]), 64, "run");
    refused(&plain(&["run", "job", "--tll", "3s"]), 64, "--ttl");
    refused(&plain(&["run", "job", "-n", "--wait", "3s"]), 64, "cannot be used with");
    refused(&plain(&["--backend", "mysql://x", "status"]), 64, "no backend \"mysql\"");
    refused(&plain(&["--backend", "nonsense", "status"]), 64, "not a backend's URL");
    let secret = plain(&["--backend", "mysql://me:s3cret@host/db", "status"]);
    refused(&secret, 64, "process list");
    assert!(!String::from_utf8_lossy(&secret.stderr).contains("s3cret"), "{secret:?}");
    refused(&plain(&["--backend", "file://host/dir", "status"]), 64, "host");
    refused(&plain(&["--backend", "file:", "status"]), 64, "director");
    refused(&plain(&["run", ""]), 64, "empty");
    refused(&plain(&["run", "two\nlines"]), 64, "control");
    refused(&plain(&["run", &"x".repeat(254)]), 64, "253");
    refused(&plain(&["--backend", "memory:", "--id", "", "run", "job"]), 64, "empty");
}

#[test]
fn odd_names_are_names() {
    let directory = temporary();
    for name in ["a/b", "..", "naïve job №1", "*", "-x", "UPPER", "upper", "trailing.", "\u{1F411}"] {
        let output = on(directory.path(), &["acquire", "--ttl", "2s", "--", name]);
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let listed = on(directory.path(), &["status", "-o", "json"]);
    let listed = String::from_utf8_lossy(&listed.stdout);
    for name in ["a/b", "naïve job №1", "UPPER", "upper", "\u{1F411}"] {
        assert!(listed.contains(&format!("\"election\":\"{name}\"")), "{listed}");
    }
}

#[test]
fn a_file_where_a_directory_should_be_is_left_alone() {
    let directory = temporary();
    let place = directory.path().join("job");
    std::fs::write(&place, "my notes").expect("a file");
    refused(&on(directory.path(), &["acquire", "job"]), 78, "a file is in the place of a directory");
    assert_eq!(std::fs::read_to_string(&place).expect("still there"), "my notes");
    let root = directory.path().join("job");
    refused(&on(&root, &["acquire", "other"]), 78, "");
}

#[test]
fn a_lease_file_of_the_plain_format_is_taken_over() {
    let directory = temporary();
    let lease = r#"{"holder":"old","renewTime":"2020-01-01T00:00:00Z","leaseDuration":"1s"}"#;
    std::fs::write(directory.path().join("job"), lease).expect("a file");
    let seen = on(directory.path(), &["status", "job", "-o", "json"]);
    assert!(String::from_utf8_lossy(&seen.stdout).contains("\"holder\":\"old\""), "{seen:?}");
    assert!(directory.path().join("job").is_file(), "looking changes nothing");
    let mut next = Candidate::on_file(directory.path(), "job", "new", &["--ttl", "1s"]);
    next.expect("acquired");
}

#[test]
fn a_read_only_directory_is_a_question_of_permission() {
    let directory = temporary();
    let mount = Mount::small(directory.path().to_owned());
    mount.make_read_only();
    refused(&on(directory.path(), &["acquire", "job"]), 77, "read-only");
    let output = on(directory.path(), &["status", "job"]);
    assert_eq!(output.status.code(), Some(1), "looking needs no permission to write");
}

#[test]
fn a_full_file_system_is_waited_for() {
    let directory = temporary();
    let mount = Mount::small(directory.path().to_owned());
    let ballast = mount.fill();
    let mut candidate = Candidate::on_file(directory.path(), "job", "a", &["--ttl", "1s"]);
    let error = candidate.expect("error");
    assert_eq!(error.text("kind"), Some("exhausted"), "{error:?}");
    std::fs::remove_file(&ballast).expect("room again");
    candidate.expect("acquired");
}

#[test]
fn a_directory_that_is_removed_costs_the_lead_and_not_the_epochs() {
    let directory = temporary();
    let place = directory.path().join("elections");
    let mut candidate = Candidate::on_file(&place, "job", "a", &["--ttl", "1s"]);
    let first = candidate.expect("acquired");
    // The leader may be writing there at this very moment.
    until_blocking(|| match std::fs::remove_dir_all(&place) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    });
    let lost = candidate.expect("lost");
    assert_eq!(lost.text("reason"), Some("conflict"), "{lost:?}");
    let second = candidate.expect("acquired");
    assert!(second.epoch() > first.epoch(), "{second:?} after {first:?}");
}

#[test]
fn records_that_make_no_sense_heal() {
    let foreign = r#"{"id":"x","token":"y"}"#;
    let huge = "x".repeat(1 << 20);
    for (number, bytes) in
        ["", "{", "\0\u{1}\u{2}", foreign, huge.as_str(), "null", "[1,2,3]"].iter().enumerate()
    {
        let directory = temporary();
        let place = directory.path().join("job");
        std::fs::create_dir_all(&place).expect("a directory");
        std::fs::write(place.join("7.json"), bytes).expect("a record");
        let output = on(directory.path(), &["status", "job"]);
        assert!(matches!(output.status.code(), Some(0 | 1)), "case {number}: {output:?}");
        let mut candidate = Candidate::on_file(directory.path(), "job", "a", &["--ttl", "500ms"]);
        candidate.expect("acquired");
    }
}

#[test]
fn a_directory_with_somebody_elses_numbered_files_is_refused_and_left_as_it_is() {
    let directory = temporary();
    let place = directory.path().join("frames");
    std::fs::create_dir_all(&place).expect("a directory");
    for number in 1..=20 {
        let frame = format!("{{\"frame\":{number}}}");
        std::fs::write(place.join(format!("{number}.json")), frame).expect("a file");
    }
    let before = fingerprint(directory.path());
    for arguments in [&["run", "frames", "--ttl", "500ms", "--", "true"][..], &["status", "frames"]] {
        let output = on(directory.path(), arguments);
        assert_eq!(output.status.code(), Some(78), "{output:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("20.json") && said.contains("not written by Bellwether"), "{said}");
    }
    assert_eq!(fingerprint(directory.path()), before);
}

#[test]
fn two_processes_with_one_id_are_two() {
    let directory = temporary();
    let mut first = Candidate::on_file(directory.path(), "job", "same", &["--ttl", "1s"]);
    first.expect("acquired");
    let mut second = Candidate::on_file(directory.path(), "job", "same", &["--ttl", "1s"]);
    assert!(second.wait("acquired", Duration::from_secs(3)).is_none(), "two with one id lead");
    first.drain();
    assert!(first.leads());
}

#[test]
fn looking_changes_no_byte() {
    let directory = temporary();
    let mut leader = Candidate::on_file(directory.path(), "job", "a", &["--ttl", "30s"]);
    leader.expect("acquired");
    // The leader writes its place in the history after it has begun to lead.
    let before = until_blocking(|| {
        let all = fingerprint(directory.path());
        let has = |part: &str| all.iter().any(|(name, _)| name.contains(part));
        if has("history") && !has("/.tmp-") { Ok(all) } else { Err("no history is written") }
    });
    for _ in 0..20 {
        assert!(on(directory.path(), &["status", "job"]).status.success());
        assert!(on(directory.path(), &["status"]).status.success());
    }
    assert_eq!(fingerprint(directory.path()), before);
    let nowhere = directory.path().join("nowhere");
    assert_eq!(on(&nowhere, &["status", "job"]).status.code(), Some(1));
    assert!(!nowhere.exists(), "looking makes no directory");
}

/// Every name and every byte below a directory, in order.
fn fingerprint(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            all.extend(fingerprint(&path));
        } else {
            all.push((path.display().to_string(), std::fs::read(&path).unwrap_or_default()));
        }
    }
    all.sort();
    all
}

#[test]
fn a_backend_file_is_stronger_than_the_environment_and_refused_beside_a_flag() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("url");
    std::fs::write(&file, format!("file:{}\n", directory.path().join("store").display()))
        .expect("our own file");
    let named = file.to_str().expect("UTF-8");
    let run = |arguments: &[&str]| {
        let mut command = Command::new(bellwether());
        command.env("BELLWETHER_BACKEND", "junk:").args(arguments);
        run_to_end(command)
    };
    for arguments in
        [["--backend-file", named, "acquire", "job"], ["acquire", "job", "--backend-file", named]]
    {
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    }
    let both = run(&["--backend-file", named, "--backend", "memory:", "acquire", "job"]);
    assert_eq!(both.status.code(), Some(64), "{both:?}");
    assert!(String::from_utf8_lossy(&both.stderr).contains("give one"), "{both:?}");
}
