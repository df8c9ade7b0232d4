//! What a command finds when it begins: descriptors, environment, standard streams; and commands that cannot begin.

#![cfg(target_os = "linux")]

mod stage;

use stage::{NOBODY, Stage, may_become_nobody};
use std::process::Command;

#[test]
fn a_command_has_the_descriptors_that_the_supervisor_was_started_with_and_no_others() {
    let stage = Stage::new();
    let proof = format!("proof={}", stage.proof());
    let mut users = vec![vec!["host", &proof]];
    let nobody = format!("user={NOBODY}");
    if may_become_nobody() {
        users.push(vec!["host", &nobody]);
    }
    for options in users {
        // Those of whoever runs this test are inherited, too.
        let line = "exec 7</dev/null; $0 descriptors | sed 's/^/before /'; exec \"$0\" \"$@\"";
        let mut shell = Command::new("/bin/bash");
        shell.args(["-c", line, stage::PROBE]).args(options);
        let mut host = stage.spawn(shell.args(["--", "/proc/self/exe", "descriptors"]));
        let open = host.expect("descriptors");
        assert!(open.contains(r#""7""#), "{open}");
        assert_eq!(format!("descriptors {open}"), host.expect("before"));
        host.expect("released");
    }
    stage.expect_empty();
}

#[test]
fn the_environment_names_the_leadership_and_not_the_backend() {
    let stage = Stage::new();
    let script = "echo env $BELLWETHER_ELECTION $BELLWETHER_ID $BELLWETHER_EPOCH [$BELLWETHER_BACKEND] [$KEPT]; \
                  tr '\\0' '\\n' < /proc/self/environ | grep -c BACKEND | sed 's/^/count /'";
    let mut probe = Command::new(stage::PROBE);
    probe.env("BELLWETHER_BACKEND", "postgres://ann:secret@db").env("KEPT", "as it was");
    let mut host =
        stage.spawn(probe.args(["host", "without=BELLWETHER_BACKEND", "--", "/bin/sh", "-c", script]));
    assert_eq!(host.expect("env"), "reports a 1 [] [as it was]");
    assert_eq!(host.expect("count"), "0");
    host.expect("released");
}

#[test]
fn the_command_ignores_what_the_supervisor_was_started_to_ignore_and_blocks_nothing() {
    let stage = Stage::new();
    // One write for the whole line: the supervisor writes lines of its own to the same pipe.
    let script = "echo signals $(grep -E '^Sig(Blk|Ign)' /proc/self/status | tr -d '\\n\\t')";
    for (ignore, expected) in
        [("--default-signal", 0), ("--ignore-signal=PIPE,USR2,CHLD", (1 << 12) | (1 << 11))]
    {
        let mut env = Command::new("env");
        env.args(["--default-signal", ignore, stage::PROBE, "host", "--", "/bin/sh", "-c", script]);
        let mut host = stage.spawn(&mut env);
        let signals = host.expect("signals");
        let (blocked, ignored) = signals.strip_prefix("SigBlk:").unwrap().split_once("SigIgn:").unwrap();
        // The C library keeps two for itself, and lets nobody change them; a shell does not ignore the ends of its children.
        let its_own = (1 << 31) | (1 << 32) | (1 << 16);
        assert_eq!(u64::from_str_radix(blocked, 16), Ok(0));
        assert_eq!(u64::from_str_radix(ignored, 16).map(|ignored| ignored & !its_own), Ok(expected));
        assert!(host.expect("ended").starts_with("Code(0) ByItself"), "{ignore}");
        host.expect("released");
    }
}

#[test]
fn a_command_in_a_namespace_sees_its_own_processes_only() {
    if !stage::may_make_namespaces() {
        return;
    }
    let stage = Stage::new();
    let mut host = stage.host_of(&[], &["/bin/sh", "-c", "echo first $(cat /proc/1/comm) $$"]);
    assert!(host.expect("started").ends_with(" Namespace"));
    assert_eq!(host.expect("first"), "bellw-init 2");
    host.expect("released");
}

#[test]
fn an_ordinary_user_gets_the_sweep() {
    if !may_become_nobody() {
        return;
    }
    let stage = Stage::new();
    let nobody = format!("user={NOBODY}");
    let mut host = stage.host_of(&[&nobody], &["/bin/sh", "-c", "echo user $(id -u)"]);
    assert!(host.expect("started").ends_with(" Sweep"));
    assert_eq!(host.expect("user"), NOBODY.to_string());
    host.expect("released");
}

#[test]
fn on_a_terminal_the_command_is_in_the_foreground_and_gives_it_back() {
    let stage = Stage::new();
    let command = stage.path("command.sh");
    let numbers = "$(cut -d' ' -f5,8 /proc/$$/stat)";
    let script = format!("read line; echo command {numbers} $line; kill -TSTP $$; echo awake");
    std::fs::write(&command, script).unwrap();
    let shell = stage.path("shell.sh");
    let script = format!("{} host mute -- /bin/sh {command}\necho shell {numbers}\n", stage::PROBE);
    std::fs::write(&shell, script).unwrap();
    // A shell with job control, on a terminal of its own.
    let mut host =
        stage.spawn(Command::new("script").args(["-qec", &format!("bash -m {shell}"), "/dev/null"]));
    host.expect("started");
    host.tell("typed");
    let seen = host.expect("command");
    let seen: Vec<_> = seen.split_whitespace().collect();
    assert_eq!(seen[0], seen[1], "its group is that in the foreground");
    assert_eq!(seen[2], "typed");
    host.expect("awake");
    host.expect("released");
    host.expect("shell");
}

#[test]
fn commands_that_cannot_begin_say_why() {
    let stage = Stage::new();
    let script = stage.path("script");
    std::fs::write(&script, "no interpreter").unwrap();
    make_executable(&script);
    let orphan = stage.path("orphan");
    std::fs::write(&orphan, "#!/no/such/interpreter\n").unwrap();
    make_executable(&orphan);
    for (command, why) in [
        ("/no/such/command", "does not exist"),
        ("/etc/passwd", "permission denied"),
        (script.as_str(), "begin it with a `#!` line"),
        (orphan.as_str(), "the interpreter that it names does not exist"),
    ] {
        let mut host = stage.host_of(&[], &[command]);
        let failed = host.expect("failed");
        assert!(failed.contains(why), "{command}: {failed}");
        host.expect("released");
    }
    stage.expect_empty();
}

#[test]
fn the_guard_is_of_no_use_by_hand() {
    let output = Command::new(stage::PROBE).args(["__guard", "/bin/true"]).output().unwrap();
    assert_eq!(output.status.code(), Some(64));
    assert!(!output.stderr.is_empty());
}

fn make_executable(path: &str) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}
