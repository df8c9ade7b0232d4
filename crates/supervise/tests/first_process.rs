//! As the first process of a container: signals, exit codes, orphans, and the kernel deadline all work.

#![cfg(target_os = "linux")]

mod stage;

use bellwether_deadman::boot_now;
use rustix::process::Signal;
use stage::{Host, Stage, kill, may_make_namespaces};
use std::io::{PipeReader, PipeWriter, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The probe as process 1 of a namespace made for it; `None` where that is not permitted.
fn container(stage: &Stage, args: &[&str]) -> Option<Host> {
    container_with(stage, args, Stdio::inherit())
}

fn container_with(stage: &Stage, args: &[&str], stderr: Stdio) -> Option<Host> {
    may_make_namespaces().then(|| {
        let mut unshare = Command::new("unshare");
        unshare.args(["--pid", "--fork", "--kill-child", "--mount-proc"]);
        stage.spawn(unshare.arg(stage::PROBE).args(args).stderr(stderr))
    })
}

/// A host without the right to make namespaces, whose command is a witness with these manners, as process 1 of a container.
fn unprivileged_container(stage: &Stage, options: &[&str], manners: &[&str], stderr: Stdio) -> Option<Host> {
    let (lock, nobody) = (stage.witness_lock(), format!("user={}", stage::NOBODY));
    let (host, witness) = (["host", &nobody], ["--", "/proc/self/exe", "witness", &lock]);
    container_with(stage, &[&host[..], options, &witness, manners].concat(), stderr)
}

/// Signals guard and init.
fn signal_guard_and_init(stage: &Stage, signal: Signal) {
    for (pid, _) in stage.alive().into_iter().filter(|(_, name)| name.starts_with("bellw-")) {
        kill(pid, signal);
    }
}

/// Process 1 as seen from here.
fn first(host: &Host) -> i32 {
    let pid = host.pid();
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    children.trim().parse().unwrap()
}

#[test]
fn the_exit_code_is_the_program_s_own() {
    let stage = Stage::new();
    for (script, code) in [("exit 7", 7), ("kill -TERM $$", 128 + 15), ("exit 0", 0)] {
        let Some(mut host) = container(&stage, &["first", "/bin/sh", "-c", script]) else { return };
        assert_eq!(host.wait().code(), Some(code), "{script}");
    }
    stage.expect_empty();
}

#[test]
fn signals_reach_the_program_once() {
    let stage = Stage::new();
    // Not HUP: a shell cannot trap what was ignored when it was started, as under `nohup`.
    let script = "trap 'echo got usr1' USR1; trap 'exit 9' TERM; echo ready $$; while :; do sleep 0.01; done";
    let Some(mut host) = container(&stage, &["first", "/bin/sh", "-c", script]) else { return };
    assert_ne!(host.expect("ready"), "1");
    kill(first(&host), Signal::USR1);
    assert_eq!(host.expect("got"), "usr1");
    kill(first(&host), Signal::TERM);
    assert_eq!(host.wait().code(), Some(9));
    stage.expect_empty();
}

#[test]
fn orphans_are_reaped() {
    let stage = Stage::new();
    let script = "for i in 1 2 3 4 5; do (sleep 0.01 &) ; done; sleep 0.3; echo zombies $(cat /proc/[0-9]*/stat | grep -c ') Z ')";
    let Some(mut host) = container(&stage, &["first", "/bin/sh", "-c", script]) else { return };
    assert_eq!(host.expect("zombies"), "0");
    assert_eq!(host.wait().code(), Some(0));
}

#[test]
fn a_supervisor_in_a_container_leads_and_dies_in_order() {
    let stage = Stage::new();
    let (lock, proof) = (stage.witness_lock(), format!("proof={}", stage.proof()));
    let command = ["host", &proof, "--", "/proc/self/exe", "witness", &lock, "deaf", "daemon"];
    let Some(mut host) = container(&stage, &command) else { return };
    host.expect("started");
    host.expect("witness");
    kill(supervisor(&host), Signal::KILL);
    expect_gone_within_settle(&stage);
    assert_eq!(host.wait().code(), Some(128 + 9));
    stage.expect_empty();
}

/// An ordinary container may not make namespaces. There, process 1 is what nobody outlives.
#[test]
fn all_but_process_1_are_killed_and_nothing_gets_away() {
    let stage = Stage::new();
    let proof = format!("proof={}", stage.proof());
    let host = unprivileged_container(&stage, &[&proof], &["deaf", "daemon"], Stdio::inherit());
    let Some(mut host) = host else { return };
    assert!(host.expect("started").ends_with(" Sweep"));
    host.expect("witness");
    let supervisor = supervisor(&host);
    // Lest it acts on the end of the others, and ends by itself.
    kill(supervisor, Signal::STOP);
    signal_guard_and_init(&stage, Signal::KILL);
    kill(supervisor, Signal::KILL);
    expect_gone_within_settle(&stage);
    assert_eq!(host.wait().code(), Some(128 + 9));
    stage.expect_empty();
}

/// Supervisor, guard and init are stopped: the kernel ends init and COMMAND, and process 1 what they started.
#[test]
fn all_but_process_1_are_stopped_and_process_1_keeps_the_deadline() {
    let stage = Stage::new();
    for manners in [["deaf", "daemon", ""], ["deaf", "grandchild", ""], ["deaf", "daemon", "disguised"]] {
        let host = unprivileged_container(&stage, &["ttl=5000"], &manners, Stdio::inherit());
        let Some(mut host) = host else { return };
        assert!(host.expect("started").ends_with(" Sweep"));
        host.expect("witness");
        let stopped = boot_now();
        kill(supervisor(&host), Signal::STOP);
        signal_guard_and_init(&stage, Signal::STOP);
        let gone = stage.wait_for_witness_gone();
        assert!(gone < stopped + Duration::from_secs(5), "{:?} after the stop", gone.since(stopped));
        assert_eq!(host.wait().code(), Some(128 + 9));
        stage.expect_empty();
    }
}

/// Whoever reads the log has stopped reading: process 1 has more to do than to wait for that.
#[test]
fn a_full_stderr_does_not_keep_process_1_from_its_deadline() {
    let stage = Stage::new();
    let (_unread, full) = full_pipe();
    let host = unprivileged_container(&stage, &["ttl=5000"], &["deaf", "daemon"], full.into());
    let Some(mut host) = host else { return };
    host.expect("witness");
    let stopped = boot_now();
    kill(supervisor(&host), Signal::STOP);
    signal_guard_and_init(&stage, Signal::STOP);
    let gone = stage.wait_for_witness_gone();
    assert!(gone < stopped + Duration::from_secs(5), "{:?} after the stop", gone.since(stopped));
    assert_eq!(host.wait().code(), Some(128 + 9));
    stage.expect_empty();
}

/// A pipe without room for another byte.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (unread, mut full) = std::io::pipe().unwrap();
    let flags = rustix::fs::fcntl_getfl(&full).unwrap();
    rustix::fs::fcntl_setfl(&full, flags | rustix::fs::OFlags::NONBLOCK).unwrap();
    while full.write(&[b'-'; 4096]).is_ok() {}
    while full.write(b"-").is_ok() {}
    rustix::fs::fcntl_setfl(&full, flags).unwrap();
    (unread, full)
}

/// The tree is gone in time, so process 1 has nothing to end.
#[test]
fn a_stopped_supervisor_whose_guard_has_acted_does_not_end_the_container() {
    let stage = Stage::new();
    let host = unprivileged_container(&stage, &["ttl=1000"], &["deaf", "daemon"], Stdio::inherit());
    let Some(mut host) = host else { return };
    host.expect("witness");
    let supervisor = supervisor(&host);
    kill(supervisor, Signal::STOP);
    stage.wait_for_witness_gone();
    // Until well past the deadline, which is what this is about.
    std::thread::sleep(Duration::from_millis(1_200));
    kill(supervisor, Signal::CONT);
    assert!(host.expect("ended").contains("Over"));
}

/// Those who came into the container from outside, and what the program started beside its command, are nobody's tree.
#[test]
fn strangers_and_what_runs_beside_the_command_do_not_make_process_1_end_the_container() {
    let stage = Stage::new();
    let options = ["beside=1000", "ttl=1000"];
    let host = unprivileged_container(&stage, &options, &["deaf", "daemon"], Stdio::inherit());
    let Some(mut host) = host else { return };
    host.expect("witness");
    let one = first(&host).to_string();
    let mut stranger = Command::new("nsenter");
    // The orphan of a stranger comes to process 1.
    stranger.args(["--target", &one, "--pid", "sh", "-c", "(sleep 1000 &); echo in; exec sleep 1000"]);
    let mut stranger = stage.spawn(&mut stranger);
    stranger.expect("in");
    let supervisor = supervisor(&host);
    kill(supervisor, Signal::STOP);
    stage.wait_for_witness_gone();
    // Until well past the deadline, which is what this is about.
    std::thread::sleep(Duration::from_millis(1_200));
    kill(supervisor, Signal::CONT);
    assert!(host.expect("ended").contains("Over"));
}

/// The program among the children of process 1.
fn supervisor(host: &Host) -> i32 {
    let one = first(host);
    let children = std::fs::read_to_string(format!("/proc/{one}/task/{one}/children")).unwrap();
    // Orphans of others may have come to process 1 since.
    children.split_whitespace().next().unwrap().parse().unwrap()
}

/// With process 1 everything ends at once, the proof perhaps first: a successor waits 20 ms after it.
fn expect_gone_within_settle(stage: &Stage) {
    let free = stage::wait_for_lock(&stage.proof());
    let late = stage.wait_for_witness_gone().since(free);
    assert!(late < Duration::from_millis(20), "{late:?} after the proof");
}

#[test]
fn a_supervisor_under_a_proc_of_another_namespace_still_finds_its_tree() {
    if !may_make_namespaces() {
        return;
    }
    let stage = Stage::new();
    let (lock, nobody) = (stage.witness_lock(), format!("user={}", stage::NOBODY));
    let mut unshare = Command::new("unshare");
    unshare.args(["--pid", "--fork", "--kill-child", stage::PROBE, "host", &nobody, "rounds=2", "--"]);
    let mut host = stage.spawn(unshare.args(["/proc/self/exe", "witness", &lock, "deaf", "daemon"]));
    for _ in 0..2 {
        assert!(host.expect("started").ends_with(" Sweep"));
        host.expect("witness");
        host.tell("kill");
        assert!(host.expect("ended").starts_with("Signal(9) Asked"));
        assert!(!stage.witnessed());
    }
    host.expect("released");
    stage.expect_never_two();
}
