//! `POST /campaign`: one client at a time does the work of a leadership, and nobody else leads before that work is gone.

use std::path::Path;
use std::time::Duration;

use bellwether_core::Boot;
use bellwether_deadman::boot_now;
use bellwether_tests::Candidate;
use bellwether_tests::http::HttpPlace;
use rustix::process::Signal;

use super::campaigner::{Answer, Campaigner};
use super::{follower, served, served_at, temporary, until_status};

const TTL: Duration = Duration::from_secs(2);
const FOR_CLIENTS: &[&str] = &["--ttl", "2s", "--for-clients"];

/// Two candidates: one whose client leads, and a plain one that follows.
fn led_by_a_client(directory: &Path) -> (Candidate, Campaigner, Candidate) {
    let (mut first, place) = served(directory, "a", FOR_CLIENTS);
    let client = Campaigner::start(&place, &[]);
    first.expect("acquired");
    client.leads();
    let (second, _) = follower(directory, "b", &["--ttl", "2s"]);
    (first, client, second)
}

/// When it took over.
fn acquired(candidate: &mut Candidate) -> Boot {
    candidate.expect("acquired").boot()
}

#[test]
fn over_a_network_it_needs_the_token() {
    let directory = temporary();
    let token = directory.path().join("token");
    std::fs::write(&token, "3ba0a2c1c7c94d5e9f1b\n").expect("our own directory");
    let (shown, wrong) =
        ("authorization: Bearer 3ba0a2c1c7c94d5e9f1b", "authorization: Bearer 3ba0a2c1c7c94d5e9f1c");
    let place = HttpPlace::free_port();
    let without = served_at(directory.path(), "a", &place, &["--ttl", "2s"]);
    assert_eq!(place.request("POST", "/campaign", &[shown], "").status, 403);
    drop(without);
    let place = HttpPlace::free_port();
    let more = ["--ttl", "2s", "--http-token-file", &token.display().to_string()];
    let mut with = served_at(directory.path(), "b", &place, &more);
    with.expect("acquired");
    assert_eq!(place.request("POST", "/campaign", &[], "").status, 401);
    assert_eq!(place.request("POST", "/campaign", &[wrong], "").status, 401);
    let client = Campaigner::start(&place, &[shown]);
    let path = format!("/campaign/{}", client.leads().campaign);
    assert_eq!(place.request("POST", &path, &[wrong], "").status, 401);
    assert_eq!(place.request("DELETE", &path, &[], "").status, 401);
    assert!(client.heard().ended.is_none(), "nobody else ended it");
    client.leave();
    assert!(with.expect("released").epoch().is_some());
}

#[test]
fn answers_hold_for_at_most_the_ttl_and_are_extended_by_asking_again() {
    let directory = temporary();
    let (mut candidate, place) = served(directory.path(), "a", FOR_CLIENTS);
    let client = Campaigner::start(&place, &[]);
    let heard = client.leads();
    assert_eq!(heard.epoch, candidate.expect("acquired").epoch());
    assert!(heard.until <= boot_now() + TTL * 9 / 10, "a margin is left");
    let later = client.until(|later| later.until >= heard.until + TTL * 2);
    assert!(later.ended.is_none() && later.epoch == heard.epoch, "{later:?}");
    let mut answer = Answer::ask(&place, &format!("/campaign/{}", later.campaign), &[], "");
    let line = answer.line().expect("a line at once");
    assert!(line["valid_ms"].as_u64().is_some_and(|ms| ms <= 1_800), "{line}");
}

#[test]
fn a_candidate_for_clients_competes_only_while_one_campaigns() {
    let directory = temporary();
    let (mut candidate, place) = served(directory.path(), "a", FOR_CLIENTS);
    until_status(&place, "/readyz", 200);
    let client = Campaigner::start(&place, &[]);
    let epoch = client.leads().epoch;
    assert_eq!(place.get("/leader").status, 200);
    client.leave();
    assert_eq!(candidate.expect("released").epoch(), epoch);
    let (mut other, _) = served(directory.path(), "b", &["--ttl", "2s"]);
    other.expect("acquired");
    assert_eq!(candidate.said.iter().filter(|line| line.event() == "acquired").count(), 1);
    assert!(candidate.said.iter().all(|line| line.event() != "lost"), "nobody was ill");
}

#[test]
fn a_release_waits_until_the_client_says_that_its_work_has_ended() {
    let directory = temporary();
    let (mut first, client, mut second) = led_by_a_client(directory.path());
    first.signal(Signal::TERM);
    let heard = client.until(|heard| heard.ended.is_some());
    assert_eq!(heard.ended.as_deref(), Some("released"));
    // Longer than the ttl: the record is renewed while the work stops.
    std::thread::sleep(TTL * 3 / 2);
    let said = client.leave();
    let took_over = acquired(&mut second);
    assert!(took_over > said, "{took_over:?} {said:?}");
    assert_eq!(first.exit_code(), Some(0));
    assert!(second.heard("acquired").epoch() > heard.epoch);
}

#[test]
fn a_connection_that_closes_is_no_proof_that_the_work_has_ended() {
    let directory = temporary();
    let (_first, client, mut second) = led_by_a_client(directory.path());
    let heard = client.fall_silent();
    // In the middle of an answer.
    let mut answer = Answer::ask(&client.place, &format!("/campaign/{}", heard.campaign), &[], "");
    let line = answer.line().expect("a line at once");
    let until = answer.asked + Duration::from_millis(line["valid_ms"].as_u64().expect("every line has it"));
    drop(answer);
    assert!(until > boot_now(), "it leads: {line}");
    let took_over = acquired(&mut second);
    assert!(took_over >= until, "the client believes until {until:?}, and another led at {took_over:?}");
}

#[test]
fn two_clients_of_one_process_lead_one_after_the_other_in_epochs_of_their_own() {
    let directory = temporary();
    let (_candidate, place) = served(directory.path(), "a", FOR_CLIENTS);
    let first = Campaigner::start(&place, &[]);
    let led = first.leads();
    let second = Campaigner::start(&place, &[]);
    second.until(|heard| heard.lines > 3);
    assert!(second.heard().since.is_none(), "the first one leads");
    let left = first.leave();
    let next = second.leads();
    assert!(next.since > Some(left) && next.epoch > led.epoch, "{led:?} {next:?}");
    let until = second.fall_silent().until;
    let third = Campaigner::start(&place, &[]);
    let last = third.leads();
    assert!(last.since >= Some(until) && last.epoch > next.epoch, "{next:?} {last:?}");
}

#[test]
fn a_killed_agent_proves_nothing_while_its_client_believes() {
    let directory = temporary();
    let (mut first, client, mut second) = led_by_a_client(directory.path());
    first.kill();
    let took_over = acquired(&mut second);
    let until = client.heard().until;
    assert!(took_over >= until, "the client believes until {until:?}, and another led at {took_over:?}");
}

#[test]
fn a_stopped_agent_leads_on_only_until_its_client_was_told() {
    let directory = temporary();
    let (mut first, client, mut second) = led_by_a_client(directory.path());
    let epoch = client.heard().epoch;
    first.signal(Signal::STOP);
    let took_over = acquired(&mut second);
    let until = client.heard().until;
    assert!(took_over >= until, "the client believes until {until:?}, and another led at {took_over:?}");
    first.signal(Signal::CONT);
    let heard = client.until(|heard| heard.ended.is_some());
    assert_eq!((heard.epoch, heard.until), (epoch, until), "no more was promised: {heard:?}");
}

#[test]
fn clients_that_do_not_read_hold_up_nobody_and_there_is_a_bound() {
    let directory = temporary();
    let (mut candidate, place) = served(directory.path(), "a", FOR_CLIENTS);
    let client = Campaigner::start(&place, &[]);
    client.leads();
    let mut waiting = Vec::new();
    let refused = loop {
        let mut stream = place.connect();
        stream
            .write_all(b"POST /campaign HTTP/1.1\r\nhost: test\r\ncontent-length: 0\r\n\r\n")
            .expect("room");
        waiting.push(stream);
        assert!(waiting.len() <= 1_000, "there is no bound");
        if waiting.len() >= 255 {
            let status = place.request("POST", "/campaign", &[], "").status;
            if status != 200 {
                break status;
            }
        }
    };
    assert_eq!(refused, 503);
    let heard = client.heard();
    let later = client.until(|later| later.until >= heard.until + TTL);
    assert!(later.ended.is_none());
    assert!(candidate.leads());
}

#[test]
fn what_makes_no_sense_is_refused_with_what_to_send() {
    let directory = temporary();
    let (_candidate, place) = served(directory.path(), "a", FOR_CLIENTS);
    for body in ["nonsense", "[]", "{\"ends_with_process\": 1}", "{\"process\": true}", &"x".repeat(10_000)] {
        let refused = place.request("POST", "/campaign", &[], body);
        assert_eq!(refused.status, 400, "{body}: {refused:?}");
    }
    for id in ["1", "zz", &"0".repeat(32), &"é".repeat(16), &"+".repeat(32)] {
        for method in ["POST", "DELETE"] {
            assert_eq!(place.request(method, &format!("/campaign/{id}"), &[], "").status, 404, "{id}");
        }
    }
    assert_eq!(place.get("/campaign").status, 405);
    let place = HttpPlace::Unix(directory.path().join("b.sock"));
    let _busy = served_at(directory.path(), "b", &place, &["--ttl", "2s", "--", "sleep", "60"]);
    let refused = place.request("POST", "/campaign", &[], "");
    assert_eq!(refused.status, 409, "{refused:?}");
    assert!(refused.body.contains("COMMAND"), "{refused:?}");
}

#[test]
fn flags_that_contradict_each_other_are_refused() {
    let directory = temporary();
    for (flags, said) in [
        (&["--for-clients"][..], "add --http ADDR"),
        (&["--http", ":0", "--for-clients", "--", "true"], "leave one of them out"),
        (&["--http", ":0", "--for-clients", "--health-cmd", "true"], "while it is healthy"),
    ] {
        let ended = Candidate::on_file(&directory.path().join("store"), "job", "a", flags).ended();
        assert_eq!(ended.code, Some(64), "{flags:?}: {ended:?}");
        assert!(ended.stderr.contains(said), "{flags:?}: {ended:?}");
    }
}
