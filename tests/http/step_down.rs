//! `POST /step-down`: with the token, and not without.

use std::path::Path;

use super::{follower, leader, temporary, until_status};

const TOKEN: &str = "3ba0a2c1c7c94d5e9f1b";
const SHOWN: &str = "authorization: Bearer 3ba0a2c1c7c94d5e9f1b";

fn token_file(directory: &Path) -> String {
    let file = directory.join("token");
    std::fs::write(&file, format!("{TOKEN}\n")).expect("our own directory");
    file.display().to_string()
}

#[test]
fn without_a_token_file_it_is_off() {
    let directory = temporary();
    let (mut candidate, place) = leader(directory.path(), "a", &["--ttl", "30s"]);
    let refused = place.request("POST", "/step-down", &[SHOWN], "");
    assert_eq!(refused.status, 403);
    assert!(
        refused.json()["error"].as_str().is_some_and(|said| said.contains("--http-token-file")),
        "{refused:?}"
    );
    assert!(candidate.leads());
}

#[test]
fn without_the_token_or_with_a_wrong_one_nothing_happens() {
    let directory = temporary();
    let token = token_file(directory.path());
    let (mut candidate, place) =
        leader(directory.path(), "a", &["--ttl", "30s", "--http-token-file", &token]);
    for headers in [
        &[][..],
        &["authorization: Bearer 3ba0a2c1c7c94d5e9f1c"],
        &["authorization: Bearer 3ba0a2c1c7c94d5e9f1"],
        &["authorization: Basic 3ba0a2c1c7c94d5e9f1b"],
    ] {
        let refused = place.request("POST", "/step-down", headers, "");
        assert_eq!(refused.status, 401, "{headers:?}");
        assert!(refused.head.contains("www-authenticate: bearer"), "{refused:?}");
        assert!(!refused.body.contains(TOKEN));
    }
    for body in ["nonsense", "[]", "{\"to\": 1}", "{\"two\": \"b\"}", "{\"to\": \"\"}", &"x".repeat(10_000)] {
        assert_eq!(place.request("POST", "/step-down", &[SHOWN], body).status, 400, "{body}");
    }
    assert_eq!(place.get("/leader").status, 200);
    assert!(candidate.leads());
}

#[test]
fn the_leader_hands_over_when_it_is_asked_and_to_whom() {
    let directory = temporary();
    let token = token_file(directory.path());
    let more = ["--ttl", "30s", "--http-token-file", &token];
    let (mut first, of_first) = leader(directory.path(), "a", &more);
    let (mut second, of_second) = follower(directory.path(), "b", &more);
    let (mut third, _of_third) = follower(directory.path(), "c", &more);
    let stepped = of_first.request("POST", "/step-down", &[SHOWN], "{\"to\": \"c\"}");
    assert_eq!(stepped.status, 200, "{stepped:?}");
    assert_eq!(stepped.json()["epoch"].as_u64(), first.heard("acquired").epoch());
    third.expect("acquired");
    until_status(&of_first, "/leader", 503);
    // Asked of one that follows: it is passed on through the store.
    let asked = of_second.request("POST", "/step-down", &[SHOWN], "{\"to\": \"b\"}");
    assert_eq!((asked.status, asked.json()["ended"].as_bool()), (202, Some(false)), "{asked:?}");
    second.expect("acquired");
    let nothing = of_second.request("POST", "/step-down", &[SHOWN], "{\"to\": \"b\"}");
    assert_eq!(nothing.status, 409, "{nothing:?}");
}
