//! The page is right when its server cannot be heard: it says so, and nothing on it is certain for longer than it was.

use std::time::Duration;

use bellwether_deadman::boot_now;
use bellwether_support::proxy_to;
use bellwether_tests::http::HttpPlace;
use bellwether_tests::until_blocking;
use rustix::process::Signal;

use super::page::{DESKTOP, Page};
use super::{LONG, Served, temporary};

/// Of the leader that is stopped.
const TTL: Duration = Duration::from_secs(4);

#[test]
fn a_killed_server_shows_as_disconnected_at_once_and_the_page_recovers_when_it_is_back() {
    let directory = temporary();
    let mut leader = Served::leader(directory.path(), "reports", "host-1", LONG);
    let page = leader.open(DESKTOP);
    page.until_standing("leading");
    page.until("document.querySelector('#events li') !== null && document.querySelector('#elections .badge') !== null");
    let epoch: u64 = page.text("epoch").parse().expect("an epoch");
    leader.candidate.kill();
    page.until_link("lost");
    assert!(page.text("lost").contains("Disconnected since"), "{}", page.text("lost"));
    assert!(page.text("as-of").starts_with("As of"), "{}", page.text("as-of"));
    assert_eq!(page.text("link"), "Disconnected");
    assert_eq!(page.value("document.querySelector('#elections tbody .badge').textContent"), "Last known");
    let again = Served::start_at(leader.place.clone(), directory.path(), "reports", "host-1", LONG);
    page.until_link("live");
    page.until_standing("leading");
    page.until(&format!("Number(document.getElementById('epoch').textContent) > {epoch}"));
    assert_eq!(page.value("document.getElementById('lost').hidden"), true);
    // The events of the new process join those of the old one.
    page.until("document.querySelectorAll('#events li').length > 2");
    assert_eq!(page.complaints_beside_the_connection(), Vec::<String>::new());
    drop(again);
}

#[test]
fn a_stopped_leader_is_not_shown_as_certain_past_its_deadline() {
    let directory = temporary();
    let mut leader =
        Served::leader(directory.path(), "reports", "host-1", &["--ttl", "4s", "--renew", "200ms"]);
    let page = leader.open(DESKTOP);
    page.until_standing("leading");
    let stopped = leader.candidate.signal(Signal::STOP);
    // With time for a page that is drawn late, on a machine that has much else to do.
    let latest = stopped + TTL + Duration::from_secs(2);
    until_blocking(|| {
        let before = boot_now();
        let standing = page.value("document.getElementById('standing').dataset.standing");
        assert!(standing != "leading" || before < latest, "still shown as certain");
        if standing == "expired" { Ok(()) } else { Err(format!("{standing}")) }
    });
    page.until_link("lost");
    assert_eq!(page.text("leader"), "Unknown");
    assert!(page.text("standing-says").contains("host-1 led under epoch"), "{}", page.text("standing-says"));
    for certain in
        ["#candidates [data-tone=good]", "#elections [data-tone=info]", "#standing [data-tone=good]"]
    {
        assert_eq!(page.value(&format!("document.querySelectorAll('{certain}').length")), 0, "{certain}");
    }
    leader.candidate.signal(Signal::CONT);
    page.until_link("live");
    page.until_standing("leading");
    assert_eq!(page.complaints_beside_the_connection(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_took_long_leaves_so_much_less_of_the_leadership() {
    let directory = temporary();
    // One renewal in the whole test, at most: the deadline stays where it is.
    let leader = tokio::task::block_in_place(|| {
        Served::leader(directory.path(), "reports", "host-1", &["--ttl", "60s", "--renew", "19s"])
    });
    let HttpPlace::Tcp(address) = &leader.place else { unreachable!("a port") };
    let proxy = proxy_to(address.port()).await;
    tokio::task::block_in_place(|| {
        let page = Page::open(&format!("http://127.0.0.1:{}/", proxy.port()), DESKTOP);
        page.until_standing("leading");
        proxy.slow(Duration::from_millis(1_500));
        let late = "performance.getEntriesByType('resource').some((one) => one.name.endsWith('/candidate') && one.duration > 1400)";
        page.until(late);
        page.until_standing("leading");
        let before = boot_now();
        let shown = page.text("left").trim_end_matches(" s").parse::<f64>().expect("a time");
        let valid = leader.place.get("/leader").json()["valid_ms"].as_f64().expect("a number") / 1e3;
        let took = boot_now().since(before).as_secs_f64();
        assert!(shown <= valid + took + 0.001, "{shown} s are shown, and {valid} s were left {took} s later");
    });
}
