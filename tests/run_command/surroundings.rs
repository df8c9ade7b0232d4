//! What COMMAND finds: environment, standard streams, process group, descriptors.

use std::io::Write;
use std::process::{Command, Stdio};

use bellwether_tests::Candidate;

use crate::{SAY, command, plain, run, words};

#[test]
fn the_environment_names_election_id_and_epoch() {
    let stage = plain();
    for _ in 0..2 {
        let script = "say $BELLWETHER_ELECTION $BELLWETHER_ID $BELLWETHER_EPOCH $KEPT";
        let mut command = command(&stage, "node-7", &[], script);
        command.env("KEPT", "as-it-was");
        let mut candidate = Candidate::start(command);
        let epoch = candidate.heard("acquired").epoch().expect("an epoch");
        assert_eq!(words(&mut candidate), format!("job node-7 {epoch} as-it-was"));
        assert_eq!(candidate.ended().code, Some(0));
    }
}

#[test]
fn the_standard_streams_are_the_parent_s() {
    let stage = plain();
    let mut bellwether = stage.bellwether("a");
    bellwether.args(["-q", "run", "job", "--", "/bin/sh", "-c", "cat; echo to stderr >&2"]);
    let piped = bellwether.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().expect("it starts");
    let typed = "typed\n".repeat(10_000);
    let mut stdin = child.stdin.take().expect("a pipe");
    let writer = std::thread::spawn({
        let typed = typed.clone();
        move || stdin.write_all(typed.as_bytes())
    });
    let output = child.wait_with_output().expect("our own child");
    writer.join().expect("no panic").expect("all of it is read");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stdout == typed.as_bytes(), "{} bytes", output.stdout.len());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "to stderr\n");
}

#[test]
fn the_command_leads_a_process_group_of_its_own() {
    let stage = plain();
    let mut candidate = run(&stage, &[], "say $$ $(cut -d' ' -f5 /proc/$$/stat)");
    let words = words(&mut candidate);
    let (pid, group) = words.split_once(' ').expect("two numbers");
    assert_eq!(pid, group);
    assert_eq!(candidate.ended().code, Some(0));
}

#[test]
fn no_descriptors_but_the_standard_three() {
    let stage = plain();
    let script = format!(
        "{SAY} open=; for f in /proc/$$/fd/*; do [ -e $f ] && open=\"$open ${{f##*/}}\"; done; say $open"
    );
    let bellwether = command(&stage, "a", &[], &script);
    // One that bellwether itself inherited is not passed on either.
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "exec 7</dev/null; exec \"$@\"", "sh"]).arg(bellwether.get_program());
    shell.args(bellwether.get_args());
    let mut candidate = Candidate::start(shell);
    assert_eq!(words(&mut candidate), "0 1 2");
}

#[test]
fn the_pid_that_is_told_is_the_command_s_and_the_log_says_what_holds() {
    let stage = plain();
    let mut candidate = run(&stage, &["--ttl", "5s"], &crate::WAIT[1..]);
    candidate.expect("said");
    let started = candidate.heard("child_started");
    let pid = started.number("pid").expect("a pid");
    let alive = stage.alive();
    let it = alive.iter().find(|process| u64::try_from(process.pid) == Ok(pid)).expect("a living process");
    assert_eq!((it.name.as_str(), it.epoch), ("sh", started.epoch()));
    candidate.signal(rustix::process::Signal::TERM);
    let ended = candidate.ended();
    assert!(ended.stderr.contains("containment=PID namespace"), "{}", ended.stderr);
}
