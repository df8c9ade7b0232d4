//! Mistakes that everybody makes once: the sentence says what to write instead.

use std::path::Path;
use std::process::{Command, Output};

use bellwether_tests::{EventLine, bellwether, run_to_end};

use crate::temporary;

fn typed(arguments: &[&str]) -> Output {
    let mut command = Command::new(bellwether());
    command.args(arguments);
    run_to_end(command)
}

#[track_caller]
fn refused(output: &Output, sentence: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(64), "{said}");
    assert!(said.contains(sentence), "{said:?} does not say {sentence:?}");
}

#[test]
fn a_command_that_is_empty_is_no_wish_to_lead_without_one() {
    for command in [&["--"][..], &["--", ""]] {
        let arguments = [&["--backend", "memory:", "run", "job"], command].concat();
        refused(&typed(&arguments), "there is no command after `--`");
    }
}

#[test]
fn a_command_without_the_dashes_before_it_is_shown_with_them() {
    refused(&typed(&["run", "demo", "sleep", "10"]), "bellwether run ELECTION -- sleep …");
    refused(&typed(&["run", "--ttl", "9s", "demo", "sh", "-c", "true"]), "bellwether run ELECTION -- sh …");
    for other in [&["run", "demo", "--tll", "9s"][..], &["status", "run", "extra"]] {
        let refused = typed(other);
        assert!(!String::from_utf8_lossy(&refused.stderr).contains("ELECTION --"), "{refused:?}");
    }
}

#[test]
fn a_value_in_the_wrong_place_is_shown_in_the_right_one() {
    refused(&typed(&["run", "demo", "--events", "out.json"]), "--events=out.json");
    for (flag, value) in [("--ttl", "-3s"), ("--wait", "-1m"), ("-E", "-3")] {
        let negative = typed(&["run", "demo", flag, value]);
        refused(&negative, &format!("{flag} takes no negative value"));
        assert!(!String::from_utf8_lossy(&negative.stderr).contains("'-- "), "{negative:?}");
    }
}

#[test]
fn a_duration_that_is_none_is_told_from_one_that_is_too_long() {
    for (text, sentence) in [
        ("99999999999999999999h", "too long; the longest duration is 2562047h"),
        ("5", "write 5s or 5ms"),
        ("-3s", "cannot be negative"),
        ("soon", "not a duration; write it like 500ms"),
        ("nan", "not a duration"),
        ("inf", "not a duration"),
    ] {
        let output = typed(&["explain", &format!("--ttl={text}")]);
        refused(&output, sentence);
        assert!(!String::from_utf8_lossy(&output.stderr).contains("nans"), "{output:?}");
    }
}

#[test]
fn white_space_around_a_name_is_refused() {
    for arguments in [
        &["status", "demo "][..],
        &["acquire", " demo"],
        &["top", "one", "demo\u{a0}"],
        &["--id", "demo\t", "run", "job"],
        &["status", "job", "--is-leader", " demo"],
        &["step-down", "job", "--to", "demo "],
    ] {
        refused(&typed(&[&["--backend", "memory:"], arguments].concat()), "write \"demo\"");
    }
    refused(&typed(&["--backend", "memory:", "run", " "]), "white space alone");
}

#[test]
fn an_empty_id_in_the_environment_is_none() {
    for (variable, value) in [("BELLWETHER_ID", ""), ("POD_NAME", ""), ("BELLWETHER_CONFIG", "")] {
        let mut command = Command::new(bellwether());
        command.env_remove("BELLWETHER_ID").env_remove("POD_NAME").env(variable, value);
        command.args(["--backend", "memory:", "acquire", "job"]);
        let output = run_to_end(command);
        assert_eq!(output.status.code(), Some(0), "{variable}: {output:?}");
    }
    let mut command = Command::new(bellwether());
    command.env("BELLWETHER_BACKEND", "").args(["acquire", "job"]);
    // The default would be another store than the one that was meant.
    refused(&run_to_end(command), "the backend's URL is empty");
}

#[test]
fn a_path_or_a_scheme_alone_is_shown_as_a_url() {
    refused(&typed(&["--backend", "/srv/x", "status"]), "file:/srv/x");
    refused(&typed(&["--backend", "./x", "run", "demo"]), "file:./x");
    refused(&typed(&["--backend", "postgres", "status", "demo"]), "postgres://");
    refused(&typed(&["--backend", "", "status", "demo"]), "empty");
    refused(&typed(&["--backend", "db.local:5432/app", "status", "demo"]), "postgres://HOST:PORT");
    let secret = typed(&["--backend", "s3cret", "status"]);
    refused(&secret, "file:DIR");
    assert!(!String::from_utf8_lossy(&secret.stderr).contains("s3cret"), "{secret:?}");
    let directory = temporary();
    let mut inside = Command::new(bellwether());
    inside.current_dir(directory.path()).args(["--backend", "elections", "status"]);
    std::fs::create_dir(directory.path().join("elections")).expect("our own directory");
    refused(&run_to_end(inside), "file:elections");
}

#[test]
fn an_election_that_is_not_named_is_asked_for() {
    for command in ["run", "acquire", "step-down", "history"] {
        refused(&typed(&["--backend", "memory:", command]), "name the election");
    }
    refused(&typed(&["--backend", "memory:", "status", "--confirm"]), "name the election");
}

#[test]
fn what_the_configuration_has_wrong_is_named_with_the_file_and_the_key() {
    let directory = temporary();
    let file = directory.path().join("settings.toml");
    let with = |text: &str, arguments: &[&str]| {
        std::fs::write(&file, text).expect("our own file");
        let mut command = Command::new(bellwether());
        command.arg("--config").arg(&file).args(arguments);
        run_to_end(command)
    };
    for (text, key, sentence) in [
        ("ttl = \"soon\"", "ttl", "not a duration"),
        ("[explain]\nttl = \"soon\"", "explain.ttl", "not a duration"),
        ("output = \"xml\"", "output", "table, json"),
        ("ttl = \"3s\"\nrenew = \"2s\"", "renew, ttl", "a third of the ttl"),
        ("tll = \"3s\"", "tll", "did you mean ttl?"),
        ("[explain]\ntll = \"3s\"", "explain.tll", "did you mean ttl?"),
        ("ttl = [3]", "ttl", "not an array"),
        ("ttl = 2026-01-01", "ttl", "not a date"),
        ("verbose = \"lots\"", "verbose", "invalid digit"),
        ("[explain]\nverbose = true", "verbose", "above the first section"),
        ("[explian]\nttl = \"3s\"", "[explian]", "did you mean [explain]?"),
        ("[ttl]\nttl = \"3s\"", "[ttl]", "named like a command"),
        ("quiet = true\nverbose = 1", "quiet and verbose", "leave one out"),
        ("renew = \"2s\"\nhealth-interval = 2", "renew", "leave one out"),
        ("key1 = 3", "key1", "give both"),
        ("id = \"a\"\nttl = \"s3cret", "line 2", "settings.toml"),
    ] {
        let output = with(text, &["explain"]);
        for part in [file_name(&file), key, sentence] {
            refused(&output, part);
        }
        assert!(!String::from_utf8_lossy(&output.stderr).contains("s3cret"), "{output:?}");
    }
    refused(&with("backend = \"/srv/x\"\nlog = \"text\"", &["status"]), "settings.toml: backend)");
    refused(&with("priority = 1\nttl = \"3s\"", &["explain", "--renew", "2s"]), "settings.toml: ttl)");
    // What a flag overrides is not to blame, nor is what has no part in it.
    let flag = with("ttl = \"soon\"", &["explain", "--ttl", "later"]);
    refused(&flag, "'later' for '--ttl");
    let unrelated = [
        with("ttl = \"9s\"\nid = \"a\"", &["explain", "--ttl", "3s", "--renew", "2s"]),
        with("log = \"text\"", &["--backend", "/srv/x", "status"]),
    ];
    for output in unrelated {
        refused(&output, "bellwether: ");
        assert!(!String::from_utf8_lossy(&output.stderr).contains("settings.toml"), "{output:?}");
    }
}

#[test]
fn the_configuration_may_not_combine_what_flags_may_not_and_gives_way_to_a_flag() {
    let directory = temporary();
    let file = directory.path().join("settings.toml");
    let run = |text: &str, flags: &[&str]| {
        std::fs::write(&file, text).expect("our own file");
        let mut command = Command::new(bellwether());
        command.arg("--config").arg(&file).args(["--backend", "memory:", "run", "job"]);
        command.args(flags).args(["--", "true"]);
        run_to_end(command)
    };
    let led = |output: Output| assert_eq!(output.status.code(), Some(0), "{output:?}");
    refused(
        &run("[run]\nnonblock = true\nwait = \"9s\"", &[]),
        "run.nonblock and run.wait cannot be used together",
    );
    led(run("[run]\nnonblock = false\nwait = \"9s\"", &[]));
    led(run("[run]\nwait = \"9s\"", &["-n"]));
    led(run("[run]\nnonblock = true", &["--wait", "9s"]));
    refused(&run("[run]\nhook-on = \"acquired\"", &[]), "settings.toml: run.hook-on)");
    led(run("[run]\nhook-on = \"acquired\"", &["--hook", "true"]));
    led(run("[run]\nhook = \"true\"", &["--hook-on", "acquired"]));
    let verbose = run("verbose = true", &[]);
    assert!(String::from_utf8_lossy(&verbose.stderr).contains("DEBUG"), "{verbose:?}");
    let quiet = run("verbose = true", &["--quiet"]);
    assert!(quiet.stderr.is_empty(), "{quiet:?}");
}

fn file_name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).expect("a name of ours")
}

#[test]
fn two_containers_with_one_host_name_get_two_ids() {
    let id = |container: bool| {
        let mut command = Command::new("unshare");
        command
            .args(["--map-root-user", "--pid", "--mount-proc", "--fork", "--kill-child"])
            .arg(bellwether());
        let mut command = if container { command } else { Command::new(bellwether()) };
        command.env_remove("POD_NAME").env_remove("BELLWETHER_ID");
        command.args(["--backend", "memory:", "run", "job", "--events", "--", "true"]);
        let output = run_to_end(command);
        let said = String::from_utf8_lossy(&output.stdout);
        let line = said.lines().find_map(EventLine::parse).unwrap_or_else(|| panic!("{output:?}"));
        line.text("id").expect("an id").to_owned()
    };
    let (one, two) = (id(true), id(true));
    let begin = |id: &str| id.rsplit_once('-').expect("three parts").0.to_owned();
    assert_eq!(begin(&one), begin(&two), "one host name, one process id");
    assert_ne!(one, two);
    let plain = id(false);
    assert!(
        plain.rsplit('-').next().expect("a part").parse::<u32>().is_ok(),
        "{plain} ends with its process id"
    );
}

#[test]
fn a_store_that_cannot_list_is_not_taken_for_an_empty_one() {
    let directory = temporary();
    let url = format!("postgres:///db?host={}", directory.path().display());
    for command in ["watch", "status", "top"] {
        refused(&typed(&["--backend", &url, command]), "the postgres store cannot list its elections: name");
    }
}

#[test]
fn who_leads_is_asked_of_a_candidate_with_an_id() {
    let asked = |arguments: &[&str], variable: Option<&str>| {
        let mut command = Command::new(bellwether());
        command.env_remove("POD_NAME").env_remove("BELLWETHER_ID").envs(variable.map(|name| (name, "a")));
        command.args(["--backend", "memory:", "status", "job"]).args(arguments);
        run_to_end(command)
    };
    refused(&asked(&["--is-leader"], None), "name its id");
    for (arguments, variable) in [
        (&["--is-leader", "a"][..], None),
        (&["--id", "a", "--is-leader"], None),
        (&["--is-leader"], Some("BELLWETHER_ID")),
        (&["--is-leader"], Some("POD_NAME")),
    ] {
        assert_eq!(asked(arguments, variable).status.code(), Some(1), "{arguments:?} {variable:?}");
    }
}

#[test]
fn a_flag_about_a_command_needs_one() {
    for flag in [
        &["--keep-for", "1m"][..],
        &["--restart", "always"],
        &["--restart", "no"],
        &["--stop-timeout", "10s"],
        &["--grace", "1s"],
        &["--no-pid-namespace"],
    ] {
        let arguments = [&["--backend", "memory:", "run", "job"], flag].concat();
        refused(&typed(&arguments), &format!("{} is about a command, and there is none", flag[0]));
    }
    let line = typed(&["--backend", "memory:", "run", "job", "--stop-timeout", "10s", "-c", "exit 0"]);
    assert_eq!(line.status.code(), Some(0), "{line:?}");
    // In the configuration it is for every `run`.
    let directory = temporary();
    let file = directory.path().join("settings.toml");
    std::fs::write(&file, "[run]\nrestart = \"always\"\nwait = \"0s\"\nhealth-cmd = \"false\"")
        .expect("our own file");
    let mut command = Command::new(bellwether());
    command.arg("--config").arg(&file).args(["--backend", "memory:", "run", "job"]);
    assert_eq!(run_to_end(command).status.code(), Some(75));
}

#[test]
fn a_health_command_that_would_run_without_a_pause_is_refused() {
    let checked =
        |flag, value| typed(&["--backend", "memory:", "run", "job", "--health-cmd", "true", flag, value]);
    refused(&checked("--health-cmd-interval", "0s"), "at least 10ms");
    refused(&checked("--health-cmd-failures", "0"), "--health-cmd-failures");
}

#[test]
fn explain_takes_the_stop_timeout_of_run() {
    let explained = typed(&["explain", "--stop-timeout", "7s"]);
    let text = String::from_utf8_lossy(&explained.stdout);
    assert!(text.contains("killed this long after TERM") && text.contains("7s"), "{explained:?}");
}

#[test]
fn arguments_that_are_no_text_are_no_reason_to_panic() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let directory = temporary();
    let mut events = directory.path().as_os_str().to_owned();
    events.push(OsStr::from_bytes(b"/\xff"));
    let mut flag = std::ffi::OsString::from("--events=");
    flag.push(&events);
    let mut command = Command::new(bellwether());
    let url = format!("postgres:///db?host={}", directory.path().display());
    command.args(["run", "job", "--dsn", &url, "--wait", "1s", "-q"]).arg(flag);
    assert_eq!(run_to_end(command).status.code(), Some(69), "there is no server");
}
