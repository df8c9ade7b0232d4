//! Mistakes in flags end the command before it competes, with what to write instead.

use bellwether_tests::http::HttpPlace;
use bellwether_tests::{Candidate, exit_of};
use rustix::process::Signal;

use super::{leader, temporary};

#[test]
fn mistakes_are_told_with_what_to_do() {
    let directory = temporary();
    let short = directory.path().join("short");
    std::fs::write(&short, "1234\n").expect("our own directory");
    let (short, nowhere) =
        (short.display().to_string(), directory.path().join("nowhere").display().to_string());
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let taken = taken.local_addr().expect("it listens").to_string();
    let _listens = std::net::TcpListener::bind(&taken);
    for (flags, said) in [
        (&["--http", "localhost"][..], "HOST:PORT"),
        (&["--http", "http://localhost:80"], "leave `http://` out"),
        (&["--http", "/run/x.sock"], "unix:"),
        (&["--http", "192.0.2.1:80"], "cannot listen on 192.0.2.1:80"),
        (&["--http", &taken], "cannot listen on"),
        (&["--http", "unix:/no/such/place/s"], "/no/such/place/s.lock"),
        (&["--http-token-file", &short], "add --http ADDR"),
        (&["--http-tls-cert", &short], "add --http ADDR"),
        (&["--http", ":0", "--http-tls-cert", &short], "go together"),
        (&["--http", ":0", "--http-token-file", &short], "too short"),
        (&["--http", ":0", "--http-token-file", &nowhere], "cannot be read"),
        (&["--http", ":0", "--http-tls-cert", &short, "--http-tls-key", &short], "no certificate"),
        (&["--http", ":0", "--http-tls-cert", &nowhere, "--http-tls-key", &short], "cannot be read"),
    ] {
        let ended = Candidate::on_file(&directory.path().join("store"), "job", "a", flags).ended();
        assert_eq!(ended.code, Some(64), "{flags:?}: {ended:?}");
        assert!(ended.stderr.contains(said), "{flags:?}: {ended:?}");
    }
}

#[test]
fn an_address_that_others_reach_is_warned_of_and_loopback_is_not() {
    let directory = temporary();
    let token = directory.path().join("token");
    std::fs::write(&token, "3ba0a2c1c7c94d5e9f1b").expect("our own directory");
    let token = token.display().to_string();
    for (flags, warned) in [
        (&["--http", "0.0.0.0:0"][..], Some("may read status")),
        (&["--http", "0.0.0.0:0", "--http-token-file", &token], Some("not encrypted")),
        (&["--http", ":0"], None),
        (&["--http", "localhost:0"], None),
    ] {
        let mut candidate = Candidate::on_file(&directory.path().join("store"), "job", "a", flags);
        candidate.expect("acquired");
        candidate.signal(Signal::TERM);
        let stderr = candidate.ended().stderr;
        let found = stderr.contains("is no loopback address");
        assert_eq!(found, warned.is_some(), "{flags:?}: {stderr}");
        assert!(warned.is_none_or(|words| stderr.contains(words)), "{flags:?}: {stderr}");
    }
}

#[test]
fn the_flags_can_stand_in_the_configuration() {
    let directory = temporary();
    let place = HttpPlace::socket_in(directory.path());
    let file = directory.path().join("settings.toml");
    std::fs::write(&file, format!("[run]\nhttp = {:?}\n", place.flag())).expect("our own directory");
    let mut command = std::process::Command::new(bellwether_tests::bellwether());
    command
        .arg("--config")
        .arg(&file)
        .arg("--backend")
        .arg(format!("file:{}", directory.path().join("store").display()));
    let mut child = command.args(["--id", "a", "-q", "run", "job"]).spawn().expect("it starts");
    super::until_status(&place, "/leader", 200);
    child.kill().expect("our own child");
    exit_of(&mut child);
}

#[test]
fn a_command_runs_beside_it_and_does_not_inherit_its_socket() {
    let directory = temporary();
    let inherited = directory.path().join("descriptors");
    let (candidate, place) = {
        let line = format!("ls -l /proc/self/fd > {0}.new; mv {0}.new {0}; sleep 1000", inherited.display());
        leader(directory.path(), "a", &["--ttl", "30s", "-c", &line])
    };
    let listed = bellwether_tests::until_blocking(|| std::fs::read_to_string(&inherited));
    assert!(!listed.contains("socket:"), "{listed}");
    assert_eq!(place.get("/leader").status, 200);
    drop(candidate);
}
