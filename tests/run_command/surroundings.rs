//! What COMMAND finds: environment, standard streams, process group, descriptors.

use std::io::Write;
use std::process::{Command, Stdio};

use bellwether_tests::Candidate;
use rustix::process::Signal;

use crate::{WAIT, command, plain, run, words};

#[test]
fn the_environment_names_election_id_and_epoch() {
    let stage = plain();
    for _ in 0..2 {
        let script = "say $BELLWETHER_ELECTION $BELLWETHER_ID $BELLWETHER_EPOCH $KEPT";
        let mut command = command(&stage, "node-7", &[], script);
        command.env("KEPT", "as-it-was");
        let mut candidate = Candidate::start(command);
        let said = words(&mut candidate);
        // Either may come first.
        let epoch = candidate.heard("acquired").epoch().expect("an epoch");
        assert_eq!(said, format!("job node-7 {epoch} as-it-was"));
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

/// Its own group keeps those around us out of it: docs/adr/0016. With a terminal, see terminal.rs.
#[test]
fn where_there_is_no_terminal_the_command_has_a_process_group_of_its_own() {
    if std::fs::File::open("/dev/tty").is_ok() {
        bellwether_tests::skipped("there is a terminal: run the tests under `setsid --wait`");
        return;
    }
    for more in [&[][..], &["--no-pid-namespace"]] {
        let stage = plain();
        let mut candidate = run(&stage, more, &WAIT[1..]);
        assert_eq!(words(&mut candidate), "ready");
        let command = candidate.heard("child_started").number("pid").expect("a pid");
        assert_ne!(group(command), group(candidate.pid().into()), "{more:?}");
        candidate.signal(Signal::TERM);
        assert_eq!(candidate.ended().code, Some(0));
        assert!(stage.emptied().is_empty());
    }
}

pub(crate) fn group(pid: u64) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("a living process");
    let (_, rest) = stat.rsplit_once(')').expect("a name");
    rest.split_whitespace().nth(2).expect("a group").to_owned()
}

/// The same command, run by this shell line in the place of `"$@"`.
fn by_shell(line: &str, inner: &Command) -> Command {
    let mut shell = Command::new("/bin/bash");
    shell.args(["-c", line, "bash"]).arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        shell.env(name, value.unwrap_or_default());
    }
    shell
}

#[test]
fn descriptors_that_we_were_started_with_stay_open_and_no_others_are() {
    for more in [&[][..], &["--no-pid-namespace"]] {
        let stage = plain();
        // Those of whoever runs this test are inherited, too.
        const LIST: &str = "for f in /proc/$$/fd/*; do [ -e $f ] && open=\"$open ${f##*/}\"; done";
        let script = format!("{LIST}; read line <&7; say $line; say $open; say $BEFORE");
        let bellwether = command(&stage, "a", more, &script);
        let line = format!(
            "exec 7< <(echo words); export BEFORE=$(/bin/sh -c '{LIST}; echo $open'); exec \"$@\" </dev/null"
        );
        let mut candidate = Candidate::start(by_shell(&line, &bellwether));
        assert_eq!(words(&mut candidate), "words", "{more:?}");
        let open = words(&mut candidate);
        assert!(open.split(' ').any(|one| one == "7"), "{more:?}: {open}");
        assert_eq!(open, words(&mut candidate), "{more:?}");
        assert_eq!(candidate.ended().code, Some(0));
    }
}

#[test]
fn sockets_that_were_passed_to_us_are_the_command_s() {
    for (named, expected) in [("$$", "for me"), ("1234567", "1234567")] {
        let stage = plain();
        let script = "[ $LISTEN_PID = $$ ] && LISTEN_PID='for me'; say $LISTEN_FDS $LISTEN_PID";
        let bellwether = command(&stage, "a", &[], script);
        let line = format!("LISTEN_FDS=1 LISTEN_PID={named} exec \"$@\" 3</dev/null");
        let mut candidate = Candidate::start(by_shell(&line, &bellwether));
        assert_eq!(words(&mut candidate), format!("1 {expected}"));
    }
}

#[test]
fn signals_ignored_at_the_start_stay_ignored_also_in_the_command() {
    const IGNORED: &str = "say $(grep SigIgn /proc/self/status)";
    let stage = plain();
    for (ignore, expected) in [("--ignore-signal=HUP,PIPE,TERM", 0x5001), ("--default-signal=PIPE", 0)] {
        let script = format!("{IGNORED}; trap 'say INT; exit 0' INT; trap 'say USR1' USR1{WAIT}");
        let bellwether = command(&stage, "a", &["--ttl", "60s"], &script);
        let line = format!("exec env --default-signal {ignore} \"$@\"");
        let mut candidate = Candidate::start(by_shell(&line, &bellwether));
        let said = words(&mut candidate);
        let ignored = said.strip_prefix("SigIgn:").expect(&said).trim();
        let ignored = u64::from_str_radix(ignored, 16).expect("hexadecimal");
        // The C library keeps two for itself.
        assert_eq!(ignored & !(1 << 31) & !(1 << 32), expected, "{ignore}");
        assert_eq!(words(&mut candidate), "ready");
        if expected != 0 {
            // Neither ends it, nor reaches the command.
            candidate.signal(Signal::HUP);
            candidate.signal(Signal::TERM);
        }
        candidate.signal(Signal::USR1);
        assert_eq!(words(&mut candidate), "USR1", "{ignore}");
        assert!(candidate.leads());
        candidate.signal(Signal::INT);
        assert_eq!(words(&mut candidate), "INT", "{ignore}");
        assert_eq!(candidate.ended().code, Some(0));
    }
}

#[test]
fn the_pid_that_is_told_is_the_command_s_and_the_log_says_what_holds() {
    let stage = plain();
    let mut candidate = run(&stage, &["--ttl", "5s"], &WAIT[1..]);
    candidate.expect("said");
    let started = candidate.heard("child_started");
    let pid = started.number("pid").expect("a pid");
    let alive = stage.alive();
    let it = alive.iter().find(|process| u64::try_from(process.pid) == Ok(pid)).expect("a living process");
    assert_eq!((it.name.as_str(), it.epoch), ("sh", started.epoch()));
    candidate.signal(Signal::TERM);
    let ended = candidate.ended();
    assert!(ended.stderr.contains("it has a PID namespace of its own"), "{}", ended.stderr);
}
