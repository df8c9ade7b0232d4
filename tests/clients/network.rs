//! Over TCP, with the token: nobody sees the end of the client's process there, so what it was told has to run out.

use bellwether_core::Boot;
use bellwether_tests::clients::{Language, judged};
use bellwether_tests::http::HttpPlace;

use super::{agent, client};

const TOKEN: &str = "3ba0a2c1c7c94d5e9f1b";

/// The client that works is killed.
fn a_killed_client_leads_until_its_deadline(language: Language) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let directory = directory.path();
    let file = directory.join("token");
    std::fs::write(&file, format!("{TOKEN}\n")).expect("our own directory");
    let flags = ["--ttl", "1s", "--http-token-file", &file.display().to_string()];
    let seat = |id| {
        let place = HttpPlace::free_port().flag();
        let candidate = agent(directory, id, &place, &flags);
        (candidate, client(language, &format!("http://{place}"), &[("WITNESS_TOKEN", TOKEN)]))
    };
    let (_first, mut working) = seat("a");
    working.expect("acquired");
    let (mut second, mut next) = seat("b");
    second.joined();
    working.kill();
    working.ended();
    let until = working.said.iter().filter_map(|line| line.instant("deadline_boot_ns")).max();
    let took_over: Boot = next.expect("acquired").boot();
    assert!(Some(took_over) >= until, "it was told {until:?}, and the next one worked at {took_over:?}");
    let figures = judged(&[&working, &next]);
    assert!(figures.complaints().is_empty(), "{:#?}", figures.complaints());
}

#[test]
fn in_python_over_tcp() {
    a_killed_client_leads_until_its_deadline(Language::Python);
}

#[test]
fn in_go_over_tcp() {
    a_killed_client_leads_until_its_deadline(Language::Go);
}

#[test]
fn in_typescript_over_tcp() {
    a_killed_client_leads_until_its_deadline(Language::TypeScript);
}
