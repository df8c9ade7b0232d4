//! Passwords reach nobody who does not need them.

use std::process::{Command, Output};

use bellwether_tests::{bellwether, run_to_end, until_blocking};

use crate::temporary;

const PRINT: [&str; 5] = ["--", "sh", "-c", "echo \"[$BELLWETHER_BACKEND]\"", "sh"];

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    assert!(!String::from_utf8_lossy(&output.stderr).contains("s3cret"), "{output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn a_password_in_the_environment_is_not_handed_on_to_the_command() {
    let said = |url: &str| {
        let mut command = Command::new(bellwether());
        command.env("BELLWETHER_BACKEND", url).args(["run", "job"]).args(PRINT);
        stdout(&run_to_end(command))
    };
    assert_eq!(said("memory://me:s3cret@host/db"), "[]");
    assert_eq!(said("memory:"), "[memory:]");
}

#[test]
fn nor_is_one_that_a_flag_overrides() {
    let mut command = Command::new(bellwether());
    command.env("BELLWETHER_BACKEND", "postgres://me:s3cret@host/db");
    command.args(["--backend", "memory:", "run", "job"]).args(PRINT);
    assert_eq!(stdout(&run_to_end(command)), "[]");
}

#[test]
fn hooks_and_health_checks_get_none_either() {
    let said = |url: &str| {
        let directory = temporary();
        let write = |name: &str| {
            let file = directory.path().join(name);
            (format!("echo \"[$BELLWETHER_BACKEND]\" > {0}.new && mv {0}.new {0}", file.display()), file)
        };
        let (hook, by_hook) = write("hook");
        let (check, by_check) = write("check");
        let mut command = Command::new(bellwether());
        command.env("BELLWETHER_BACKEND", url).args(["--backend", "memory:", "run", "job"]);
        command.args(["--hook", &hook, "--health-cmd", &check]);
        let mut child = command.stderr(std::process::Stdio::null()).spawn().expect("it starts");
        let read = |file| until_blocking(|| std::fs::read_to_string(file)).trim().to_owned();
        let said = (read(&by_hook), read(&by_check));
        child.kill().expect("our own child");
        child.wait().expect("our own child");
        said
    };
    assert_eq!(said("nats://t0ken@host:4222"), ("[]".to_owned(), "[]".to_owned()));
    // What is no secret is theirs too: a hook may well ask `bellwether status`.
    assert_eq!(said("file:/srv/x"), ("[file:/srv/x]".to_owned(), "[file:/srv/x]".to_owned()));
}

#[test]
fn a_password_on_the_command_line_works_and_causes_a_warning() {
    for (flags, warns) in [
        (&["--backend", "memory://me:s3cret@host/db"][..], true),
        (&["--backend=memory://me:s3cret@host/db"], true),
        (&["--backend", "memory:"], false),
    ] {
        let mut command = Command::new(bellwether());
        command.args(flags).args(["acquire", "job"]);
        let output = run_to_end(command);
        stdout(&output);
        let said = String::from_utf8_lossy(&output.stderr).contains("process list");
        assert_eq!(said, warns, "{flags:?}: {output:?}");
    }
}
