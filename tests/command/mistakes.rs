//! Mistakes that everybody makes once: the sentence says what to write instead.

use std::path::Path;
use std::process::{Command, Output};

use bellwether_tests::{Line, bellwether, run_to_end};

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
    let flag = typed(&["run", "demo", "--tll", "9s"]);
    assert!(!String::from_utf8_lossy(&flag.stderr).contains("ELECTION --"), "{flag:?}");
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
        ("ttl = [3]", "ttl", "must be a text"),
        ("id = \"a\"\nttl = \"s3cret", "line 2", "settings.toml"),
    ] {
        let output = with(text, &["explain"]);
        for part in [file_name(&file), key, sentence] {
            refused(&output, part);
        }
        assert!(!String::from_utf8_lossy(&output.stderr).contains("s3cret"), "{output:?}");
    }
    refused(&with("backend = \"/srv/x\"", &["status"]), "settings.toml: backend)");
    // What a flag overrides is not to blame.
    let flag = with("ttl = \"soon\"", &["explain", "--ttl", "later"]);
    refused(&flag, "'later' for '--ttl");
    let flag = with("ttl = \"9s\"\nid = \"a\"", &["explain", "--ttl", "3s", "--renew", "2s"]);
    refused(&flag, "settings.toml: id)");
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
        let line = said.lines().find_map(Line::parse).unwrap_or_else(|| panic!("{output:?}"));
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
