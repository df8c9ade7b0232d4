//! The page follows what happens.

use bellwether_tests::on;

use super::page::DESKTOP;
use super::{LONG, Served, temporary};

#[test]
fn the_page_of_the_leader_shows_it_and_counts_down_to_its_deadline() {
    let directory = temporary();
    let leader = Served::leader(directory.path(), "reports", "host-1", LONG);
    let page = leader.open(DESKTOP);
    page.until_standing("leading");
    page.until_link("live");
    assert_eq!(page.text("leader"), "host-1");
    page.until("document.getElementById('election').textContent === 'reports'");
    let epoch = leader.place.get("/leader").json()["epoch"].to_string();
    page.until(&format!("document.getElementById('epoch').textContent === {epoch:?}"));
    let left = seconds_left(&page);
    assert!(left > 0.0 && left <= 54.0, "at most the ttl without its margin: {left}");
    page.until("document.querySelectorAll('#spark .bar-one').length > 1");
    page.until("document.getElementById('events').innerText.includes('Leads under epoch')");
    page.until("document.querySelector('#elections tbody th')?.textContent === 'reports'");
    page.until("document.querySelector('#leaderships tbody th')?.textContent === 'host-1'");
    assert_eq!(page.value("document.title"), "reports – Bellwether");
    assert_eq!(page.foreign_requests(), Vec::<String>::new());
    assert_eq!(page.complaints(), Vec::<String>::new());
}

#[test]
fn a_handover_shows_on_the_pages_of_both() {
    let directory = temporary();
    let first = Served::leader(directory.path(), "reports", "host-1", LONG);
    let second = Served::follower(directory.path(), "reports", "host-2", LONG);
    let (of_first, of_second) = (first.open(DESKTOP), second.open(DESKTOP));
    of_first.until_standing("leading");
    of_second.until_standing("following");
    assert_eq!(of_second.text("leader"), "host-1");
    let store = format!("file:{}", directory.path().join("store").display());
    let asked = on(&store, &["step-down", "reports", "--to", "host-2"]);
    assert!(asked.status.success(), "{asked:?}");
    of_second.until_standing("leading");
    of_first.until("document.getElementById('leader').textContent === 'host-2'");
    of_first.until_standing("following");
    of_first
        .until("document.getElementById('events').innerText.includes('Lost epoch 1: somebody asked for it')");
    of_first.until("document.getElementById('losses').innerText.includes('host-1, epoch 1')");
    // What is announced to those who do not see it.
    of_first.until("document.getElementById('news').textContent.includes('host-2')");
    of_second.until("document.querySelectorAll('#leaderships tbody tr').length === 2");
    for page in [of_first, of_second] {
        assert_eq!(page.complaints(), Vec::<String>::new());
    }
}

fn seconds_left(page: &super::page::Page) -> f64 {
    let text = page.text("left");
    text.trim_end_matches(" s").parse().unwrap_or_else(|_| panic!("no time: {text}"))
}
