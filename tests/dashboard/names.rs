//! Names are anybody's to choose, and stay text.

use super::page::{DESKTOP, PHONE};
use super::{LONG, Served, temporary};

#[test]
fn names_that_are_markup_stay_text() {
    let directory = temporary();
    let (election, id) = ("<img src=x onerror=hacked()>", "<b onclick='x'>&amp;\"</b>");
    let leader = Served::leader(directory.path(), election, id, LONG);
    let follower = Served::follower(directory.path(), election, "<script>hacked()</script>", LONG);
    for served in [&leader, &follower] {
        let page = served.open(DESKTOP);
        page.until(&format!("document.getElementById('leader').textContent === {id:?}"));
        page.until(&format!("document.getElementById('election').textContent === {election:?}"));
        page.until(&format!("document.querySelector('#elections tbody th')?.textContent === {election:?}"));
        page.until(&format!("document.querySelector('#leaderships tbody th')?.textContent === {id:?}"));
        page.until("document.querySelector('#candidates li') !== null && document.querySelector('#events li') !== null");
        let made = page.value("document.querySelectorAll('img, b, main script').length");
        assert_eq!(made, 0, "{}", page.value("document.body.outerHTML"));
        assert_eq!(page.complaints(), Vec::<String>::new());
    }
}

#[test]
fn the_longest_names_stay_within_the_page() {
    let directory = temporary();
    let (election, id) = ("e".repeat(253), "c".repeat(200));
    let leader = Served::leader(directory.path(), &election, &id, LONG);
    let page = leader.open(PHONE);
    page.until_standing("leading");
    page.until("document.querySelector('#elections tbody th') !== null && document.querySelector('#leaderships tbody th') !== null");
    super::looks::fits(&page);
    page.picture("phone-long-names");
}

#[test]
fn the_browser_may_load_nothing_but_the_page_s_own_files() {
    let directory = temporary();
    let leader = Served::leader(directory.path(), "reports", "host-1", LONG);
    let answer = leader.place.request("GET", "/", &["accept: text/html"], "");
    for wanted in [
        "default-src 'none'",
        "script-src 'self';",
        "style-src 'self';",
        "require-trusted-types-for 'script'",
    ] {
        assert!(answer.head.contains(wanted), "{wanted}: {}", answer.head);
    }
    assert!(!answer.head.contains("unsafe"), "{}", answer.head);
    let page = leader.open(DESKTOP);
    page.until_standing("leading");
    let evaluated = page.value("(() => { try { document.body.innerHTML = '<p>'; return 'written'; } catch { return 'refused'; } })()");
    assert_eq!(evaluated, "refused");
}
