//! What is refused before anything is started, and by which code.

use bellwether_tests::on;

#[track_caller]
fn refused(url: &str, arguments: &[&str], code: i32, part: &str) {
    let output = on(url, &[&["torture"], arguments].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{url} {arguments:?}: {said}");
    assert!(said.contains(part), "{url} {arguments:?}: {said}");
    assert!(output.stdout.is_empty());
}

#[test]
fn stores_and_elections_that_are_not_for_it() {
    refused("memory:", &[], 64, "memory: is of one process");
    refused("postgres://h/d?key1=1&key2=2", &[], 64, "key1 in the backend's URL names something of yours");
    refused("postgres://h/d", &["--key1", "1", "--key2", "2"], 64, "an election of yours");
    refused("nats://h?profile=leader&bucket=b&group=g", &[], 64, "group in the backend's URL");
    refused("nats://127.0.0.1:1", &[], 69, "no server can be reached");
}

#[test]
fn settings_that_cannot_be() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let url = format!("file:{}", directory.path().join("store").display());
    refused(&url, &["--for", "1s"], 64, "from 5s to 24h");
    refused(&url, &["--candidates", "1"], 64, "from 2 to 16 candidates");
    refused(&url, &["--faults", "kill,rain"], 64, "there is no fault \"rain\": there are kill, stop");
    refused(&url, &["--ttl", "1ms"], 64, "the ttl must be from");
    let full = directory.path().display().to_string();
    std::fs::write(directory.path().join("mine"), "").expect("our own directory");
    refused(&url, &["--dir", &full], 64, "is not empty");
}
