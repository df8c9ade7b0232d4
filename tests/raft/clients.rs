//! Candidates and operators of a cluster that asks who they are: by a secret, and by certificates. All by the command, and with nothing but
//! the URL.

use bellwether_tests::raft::Nodes;
use bellwether_tests::{Candidate, command, json, on};

use crate::authority::{Authority, FAR_AHEAD, LONG_AGO};
use crate::stderr;

const PERMISSION: i32 = 77;
const UNREACHABLE: i32 = 69;

/// Holds an election, looks at it, hands it over, and looks at the cluster.
fn holds_an_election(url: &str) {
    let candidate = |id: &str| {
        Candidate::start(command(
            url,
            &["--id", id, "run", "demo", "--events", "--ttl", "6s", "--renew", "1s"],
        ))
    };
    let mut a = candidate("a");
    let first = a.expect("acquired").epoch().expect("an epoch");
    let mut b = candidate("b");
    b.joined();
    let status = on(url, &["status", "demo", "-o", "json"]);
    assert!(status.status.success(), "{}", stderr(&status));
    let status = json(&status).to_string();
    assert!(status.contains("\"a\"") && status.contains(&first.to_string()), "{status}");

    let handed = on(url, &["step-down", "demo", "--to", "b"]);
    assert!(handed.status.success(), "{}", stderr(&handed));
    let second = b.expect("acquired").epoch().expect("an epoch");
    assert!(second > first, "{second} followed {first}");
    let listed = on(url, &["members", "list", "-o", "json"]);
    assert!(listed.status.success(), "{}", stderr(&listed));
    assert_eq!(json(&listed)["members"].as_array().map(Vec::len), Some(3));
}

/// Whatever is asked with this URL, the answer is no, and says why. A candidate does not wait for what will not change.
#[track_caller]
fn is_turned_away(url: &str, words: &[&str]) {
    for arguments in [
        &["run", "demo", "--", "true"][..],
        &["acquire", "demo"],
        &["status", "demo"],
        &["step-down", "demo"],
        &["members", "list"],
    ] {
        let output = on(url, arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(PERMISSION), "{arguments:?}: {said}");
        for word in words {
            assert!(said.contains(word), "{arguments:?}: no {word:?} in: {said}");
        }
    }
}

#[test]
fn a_secret_file_in_the_url_is_all_that_candidates_and_operators_need() {
    let mut nodes = Nodes::new(3);
    nodes.use_secret();
    nodes.form();
    holds_an_election(&nodes.url(0));

    let address = nodes.seats[0].address.clone();
    let wrong = nodes.write_secret("wrong", "something else altogether\n");
    let words = ["do not share a secret", &address];
    is_turned_away(&format!("raft://{address}?secret-file={}", wrong.display()), &words);
    is_turned_away(&format!("raft://{address}"), &words);
    nodes.agree();
}

#[test]
fn certificates_in_the_url_are_all_that_candidates_and_operators_need() {
    let mut nodes = Nodes::new(3);
    let host = nodes.seats[0].address.rsplit_once(':').expect("a port").0.to_owned();
    let authority = Authority::new(nodes.path());
    let [ca, certificate, key] = authority.sign("node", &host, FAR_AHEAD);
    let flags = ["--tls-ca", &ca, "--tls-cert", &certificate, "--tls-key", &key];
    nodes.flags.extend(flags.map(str::to_owned));
    nodes.form();
    let url = |[ca, certificate, key]: [String; 3]| {
        let addresses: Vec<&str> = nodes.seats.iter().map(|seat| seat.address.as_str()).collect();
        format!("raft://{}?tls-ca={ca}&tls-cert={certificate}&tls-key={key}", addresses.join(","))
    };
    // A client's certificate is for the client's own name, which nobody dials.
    holds_an_election(&url(authority.sign("client", "client.example", FAR_AHEAD)));

    is_turned_away(&url(authority.sign("expired", &host, LONG_AGO)), &["CertificateExpired", "still valid"]);
    let elsewhere = nodes.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("our own directory");
    let [other_ca, other, other_key] = Authority::new(&elsewhere).sign("stranger", &host, FAR_AHEAD);
    let words = ["certificates of the same authority"];
    is_turned_away(&url([ca.clone(), other.clone(), other_key.clone()]), &words);
    // And a client that trusts another authority does not talk to these nodes.
    is_turned_away(&url([other_ca, other, other_key]), &words);
    let plain = on(&format!("raft://{}", nodes.seats[0].address), &["status", "demo"]);
    assert_eq!(plain.status.code(), Some(UNREACHABLE), "{plain:?}");
    assert!(stderr(&plain).contains("speaks TLS"), "{}", stderr(&plain));
}
