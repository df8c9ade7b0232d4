//! `bellwether doctor`: says what is wrong and what to do, ends by what is worst, and leaves nothing behind that it does not
//! name.

use std::path::Path;
use std::process::{Command, Output};

use bellwether_tests::{Mount, bellwether, run_to_end};
use serde_json::Value;

use crate::temporary;

fn doctor(directory: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(bellwether());
    command.arg("--backend").arg(format!("file:{}", directory.display())).arg("doctor").args(more);
    run_to_end(command)
}

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// The finding about this, as verdict, kind and sentence.
fn finding(report: &Value, what: &str) -> (String, Option<String>, String) {
    let all = report["findings"].as_array().expect("an array");
    let one = all.iter().find(|one| one["what"] == what).unwrap_or_else(|| panic!("no {what} in {report:#}"));
    let text = |field: &str| one[field].as_str().map(str::to_owned);
    (text("verdict").expect("a verdict"), text("kind"), text("sentence").expect("a sentence"))
}

/// Every name and every byte below a directory, in order.
fn fingerprint(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            all.push((path.display().to_string(), Vec::new()));
            all.extend(fingerprint(&path));
        } else {
            all.push((path.display().to_string(), std::fs::read(&path).unwrap_or_default()));
        }
    }
    all.sort();
    all
}

fn acquired(directory: &Path, election: &str) {
    let mut command = Command::new(bellwether());
    command.arg("--backend").arg(format!("file:{}", directory.display())).args(["acquire", election]);
    assert!(run_to_end(command).status.success());
}

#[test]
fn a_healthy_directory_is_told_so_line_by_line() {
    let directory = temporary();
    let output = doctor(directory.path(), &[]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    for what in ["reachable", "directory", "permission", "renew latency", "boot clock", "containment", "sync"]
    {
        assert!(said.lines().any(|line| line.get(5..).is_some_and(|rest| rest.starts_with(what))), "{said}");
    }
    let plain = |line: &str| ["ok   ", "warn "].iter().any(|mark| line.starts_with(mark));
    assert!(said.lines().all(plain), "no colours and nothing bad: {said}");
}

#[test]
fn machines_get_an_object_with_the_verdict_and_the_figures() {
    let directory = temporary();
    let output = doctor(directory.path(), &["-o", "json"]);
    let report = report(&output);
    assert_eq!(report["ok"], true);
    assert_eq!(report["backend"], "file");
    let figure = |of: &str, which: &str| report[of][which].as_f64().expect("a number");
    for of in ["read_latency", "renew_latency"] {
        assert!(figure(of, "p50_ms") > 0.0 && figure(of, "p50_ms") <= figure(of, "p99_ms"), "{report}");
        assert!((figure(of, "calls") - 20.0).abs() < 0.1);
    }
    for one in report["findings"].as_array().expect("an array") {
        let verdict = one["verdict"].as_str().expect("a word");
        assert!(["good", "warning"].contains(&verdict) && one["kind"].is_null(), "{one}");
        assert!(one["what"].is_string() && one["sentence"].as_str().is_some_and(|said| !said.is_empty()));
    }
}

#[test]
fn the_election_to_measure_with_is_gone_afterwards_and_others_are_untouched() {
    let directory = temporary();
    acquired(directory.path(), "job");
    let before = fingerprint(directory.path());
    let report = report(&doctor(directory.path(), &["-o", "json"]));
    let (verdict, _, sentence) = finding(&report, "election");
    assert!(verdict == "good" && sentence.contains("bellwether-doctor-"), "{sentence}");
    assert!(sentence.ends_with("and removed"), "{sentence}");
    assert_eq!(fingerprint(directory.path()), before);
}

#[test]
fn a_directory_that_was_made_for_it_is_named() {
    let directory = temporary();
    let place = directory.path().join("elections");
    let report = report(&doctor(&place, &["-o", "json"]));
    let (_, _, sentence) = finding(&report, "election");
    assert!(sentence.contains("left behind") && sentence.contains("elections"), "{sentence}");
    let left: Vec<String> = fingerprint(&place).into_iter().map(|(name, _)| name).collect();
    assert_eq!(left, [place.join(".floors").display().to_string()]);
    // The second time everything is there already.
    let (_, _, sentence) = finding(&self::report(&doctor(&place, &["-o", "json"])), "election");
    assert!(sentence.ends_with("and removed"), "{sentence}");
}

#[test]
fn who_is_not_to_write_writes_nothing() {
    let directory = temporary();
    acquired(directory.path(), "job");
    let before = fingerprint(directory.path());
    let output = doctor(directory.path(), &["--no-write", "-o", "json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(fingerprint(directory.path()), before);
    let report = report(&output);
    assert!(report["renew_latency"].is_null() && report["read_latency"].is_object(), "{report}");
    assert!(finding(&report, "election").2.contains("--no-write"));
    let missing = directory.path().join("not").join("there");
    let output = doctor(&missing, &["--no-write"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("the first claim makes it"), "{output:?}");
    assert_eq!(fingerprint(directory.path()), before, "a missing directory stays missing");
}

#[test]
fn a_read_only_file_system_is_a_question_of_permission() {
    let directory = temporary();
    let mount = Mount::tmpfs(directory.path().to_owned(), c"size=1m");
    mount.make_read_only();
    for more in [&["-o", "json"][..], &["-o", "json", "--no-write"]] {
        let output = doctor(directory.path(), more);
        assert_eq!(output.status.code(), Some(77), "{output:?}");
        let report = report(&output);
        assert_eq!(report["ok"], false);
        let (verdict, kind, sentence) = finding(&report, "permission");
        assert_eq!((verdict.as_str(), kind.as_deref()), ("bad", Some("permission_denied")));
        assert!(sentence.contains("read-only") && sentence.contains("remount"), "{sentence}");
        let bad = report["findings"].as_array().expect("an array");
        assert_eq!(bad.iter().filter(|one| one["verdict"] == "bad").count(), 1, "not told twice: {report:#}");
        assert!(!report.to_string().contains("left behind"), "nothing was made: {report:#}");
    }
}

#[test]
fn memory_is_no_place_for_epochs_and_a_full_one_for_nothing() {
    let directory = temporary();
    let mount = Mount::small(directory.path().to_owned());
    let output = doctor(directory.path(), &["-o", "json"]);
    let (verdict, _, sentence) = finding(&report(&output), "durability");
    assert!(verdict == "warning" && sentence.contains("tmpfs"), "{sentence}");
    assert_eq!(output.status.code(), Some(0), "a warning is not bad: {output:?}");
    mount.fill();
    let output = doctor(directory.path(), &["-o", "json"]);
    assert_eq!(output.status.code(), Some(69), "{output:?}");
    let (verdict, kind, sentence) = finding(&report(&output), "free space");
    assert_eq!((verdict.as_str(), kind.as_deref()), ("bad", Some("exhausted")));
    assert!(sentence.contains("make room"), "{sentence}");
}

#[test]
fn a_file_in_the_directory_s_place_is_a_store_that_is_not_set_up() {
    let directory = temporary();
    let place = directory.path().join("elections");
    std::fs::write(&place, "my notes").expect("a file");
    for more in [&[][..], &["--no-write"]] {
        let output = doctor(&place, more);
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(78), "{output:?}");
        assert!(said.contains("a file is in the place of a directory; move it away"), "{said}");
        assert!(said.contains("boot clock"), "what can be told is told: {said}");
    }
    assert_eq!(std::fs::read_to_string(&place).expect("still there"), "my notes");
}

#[test]
fn what_was_typed_wrong_is_not_examined() {
    let directory = temporary();
    assert_eq!(doctor(directory.path(), &["--ttl", "3s", "--renew", "2s"]).status.code(), Some(64));
    let mut command = Command::new(bellwether());
    command.args(["--backend", "mysql://x", "doctor"]);
    assert_eq!(run_to_end(command).status.code(), Some(64));
}

#[cfg(target_os = "linux")]
#[test]
fn a_freezer_of_cgroup_v1_is_warned_of() {
    let group = Path::new("/sys/fs/cgroup/freezer").join(format!("doctor-{}", std::process::id()));
    if std::fs::create_dir(&group).is_err() {
        bellwether_tests::skipped("there is no cgroup-v1 freezer in which groups may be made");
        return;
    }
    let directory = temporary();
    let mut within = Command::new("sh");
    within.args(["-c", "echo $$ > \"$0\"/cgroup.procs && exec \"$@\""]).arg(&group).arg(bellwether());
    within
        .arg("--backend")
        .arg(format!("file:{}", directory.path().display()))
        .args(["doctor", "-o", "json"]);
    let output = run_to_end(within);
    std::fs::remove_dir(&group).expect("an empty group");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let (verdict, _, sentence) = finding(&report(&output), "freezer");
    assert_eq!(verdict, "warning", "{sentence}");
    assert!(sentence.contains("cgroup v2"), "{sentence}");
}
