//! Jobs and scripts: why a candidate does not lead, whether one leads, what happens when COMMAND ends.

use bellwether_tests::{Candidate, Stage, run_to_end};
use rustix::process::Signal;

use crate::{SAY, WAIT, has_said, plain, ready_after, run};

/// The exit code, stdout and stderr of a command that ends by itself.
fn end_of(stage: &Stage, id: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = stage.bellwether(id);
    command.args(arguments);
    let output = run_to_end(command);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn who_does_not_get_to_lead_says_who_does_in_one_line() {
    let stage = plain();
    let mut leader = run(&stage, &["--ttl", "5s"], &WAIT[1..]);
    let epoch = ready_after(&mut leader, None).epoch().expect("an epoch");
    let cases: [(&str, &[&str]); 4] = [
        ("not run", &["-q", "run", "job", "-n", "--", "true"]),
        ("not run", &["-q", "run", "job", "--wait", "200ms", "--", "true"]),
        ("not leading", &["-q", "run", "job", "-n"]),
        ("not acquired", &["-q", "acquire", "job"]),
    ];
    for (done, arguments) in cases {
        let (code, stdout, stderr) = end_of(&stage, "b", arguments);
        assert_eq!((code, stdout.as_str()), (Some(75), ""), "{arguments:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{arguments:?}: {stderr}");
        assert!(stderr.contains(&format!("{done}: a leads job since ")), "{stderr}");
        assert!(stderr.contains(&format!("(epoch {epoch})")), "{stderr}");
    }
}

#[test]
fn status_tells_a_script_whether_a_candidate_leads() {
    let stage = plain();
    let asked = |id: &str, arguments: &[&str]| {
        let (code, stdout, stderr) =
            end_of(&stage, id, &[&["status", "job", "--is-leader"], arguments].concat());
        assert_eq!((stdout.as_str(), stderr.as_str()), ("", ""));
        code
    };
    assert_eq!(asked("a", &[]), Some(1), "nobody leads");
    let mut leader = run(&stage, &["--ttl", "5s"], &WAIT[1..]);
    ready_after(&mut leader, None);
    assert_eq!(asked("a", &[]), Some(0));
    assert_eq!(asked("b", &[]), Some(1));
    assert_eq!(asked("b", &["a"]), Some(0));
    assert_eq!(asked("a", &["b"]), Some(1));
    leader.kill();
    assert!(stage.emptied().is_empty());
    assert_eq!(asked("a", &[]), Some(1), "its record is still there, and it is dead");
}

#[test]
fn a_lease_is_kept_after_the_command_has_ended_so_that_the_job_runs_once() {
    let stage = plain();
    let mut first = run(&stage, &["--ttl", "2s", "--keep-for", "6s"], "exit 3");
    let started = first.expect("child_started");
    let exited = first.expect("child_exited");
    let (code, _, stderr) = end_of(&stage, "b", &["run", "job", "-n", "--ttl", "2s", "--", "true"]);
    assert_eq!(code, Some(75), "the job ran twice: {stderr}");
    let ended = first.ended();
    assert_eq!(ended.code, Some(3));
    assert!(ended.stderr.contains("job: the leadership is kept for another "), "{}", ended.stderr);
    let released = first.said.iter().find(|line| line.event() == "released").expect("released");
    assert!(released.boot() > exited.boot());
    assert!(released.boot().since(started.boot()).as_millis() >= 5_900, "{released:?} after {started:?}");
}

#[test]
fn a_command_that_fails_is_started_again_under_the_same_leadership_until_it_succeeds() {
    let stage = plain();
    let count = stage.path().join("count");
    let script = format!("echo >> {0}; test $(wc -l < {0}) -ge 3", count.display());
    let mut candidate = run(&stage, &["--restart", "on-failure"], &script);
    assert_eq!(candidate.ended().code, Some(0));
    let starts: Vec<_> = candidate.said.iter().filter(|line| line.event() == "child_started").collect();
    assert_eq!(starts.len(), 3, "{:?}", candidate.said);
    assert!(starts.iter().all(|line| line.epoch() == starts[0].epoch()), "{starts:?}");
    assert!(has_said(&candidate, "released"));
}

#[test]
fn always_starts_a_command_again_that_succeeded_until_a_signal_comes() {
    let stage = plain();
    let mut candidate = run(&stage, &["--restart", "always"], "true");
    candidate.expect("child_started");
    candidate.expect("child_started");
    candidate.signal(Signal::TERM);
    assert_eq!(candidate.ended().code, Some(0));
    assert!(stage.emptied().is_empty());
}

#[test]
fn a_line_is_run_by_the_shell() {
    let stage = plain();
    let mut command = stage.bellwether("a");
    command.args(["run", "job", "--events", "-c", &format!("{SAY} say $((6 * 7)); exit 5")]);
    let mut candidate = Candidate::start(command);
    assert_eq!(candidate.expect("said").text("words"), Some("42"));
    assert_eq!(candidate.ended().code, Some(5));
    for wrong in [&["run", "job", "-c", "true", "--", "true"][..], &["run", "job", "-c", ""]] {
        assert_eq!(end_of(&stage, "a", wrong).0, Some(64), "{wrong:?}");
    }
}
