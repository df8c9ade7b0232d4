//! What everybody can read: on a phone, in the dark, with a keyboard, with a screen reader. And the pictures that people look at.

use bellwether_tests::on;
use rustix::process::Signal;
use serde_json::Value;

use super::page::{DESKTOP, PHONE, Page, Window};
use super::{LONG, Served, temporary};

/// Fails where something is wider than the window.
#[track_caller]
pub(crate) fn fits(page: &Page) {
    let wide = page.value(
        "[...document.querySelectorAll('body, body *')].filter((one) => { \
           const box = one.getBoundingClientRect(); \
           return box.width > 0 && (box.right > innerWidth + 0.5 || box.left < -0.5) && !one.closest('.skip, .sr, .lane-track'); \
         }).map((one) => `${one.tagName}#${one.id}.${one.className} ${one.textContent.slice(0, 40)}`)",
    );
    assert_eq!(wide, Value::Array(Vec::new()));
    assert_eq!(page.value("document.documentElement.scrollWidth <= innerWidth"), true);
}

/// Every text that is shown, with the contrast of its colour and the ground that it is on, where that is below 4.5.
const FAINT: &str = r#"(() => {
  const parse = (text) => {
    const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3]));
  const ground = (element) => {
    if (!element) return [255, 255, 255];
    const style = getComputedStyle(element);
    if (style.opacity !== '1' || style.filter !== 'none') throw new Error(`${element.className} is see-through`);
    const own = parse(style.backgroundColor);
    return own[3] === 1 ? own.slice(0, 3) : over(own, ground(element.parentElement));
  };
  const light = (colour) => {
    const [r, g, b] = colour.map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const faint = [];
  let count = 0;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || !element.checkVisibility({ visibilityProperty: true }) || element.closest('.sr, noscript')) continue;
    count += 1;
    const below = ground(element);
    const [a, b] = [light(over(parse(getComputedStyle(element).color), below)), light(below)].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < 4.5) faint.push(`${contrast.toFixed(2)} ${element.tagName}.${element.className}: ${node.data.trim().slice(0, 40)}`);
  }
  return { count, faint };
})()"#;

#[track_caller]
fn is_readable(page: &Page) {
    let found = page.value(FAINT);
    assert!(found["count"].as_u64() > Some(40), "the page has texts: {found}");
    assert_eq!(found["faint"], Value::Array(Vec::new()));
}

/// In both colours and both sizes: nothing sticks out, everything is readable. Leaves pictures.
#[track_caller]
fn looks_right(page: &Page, name: &str) {
    let windows: [(&str, Window); 4] = [
        ("desktop-light", DESKTOP),
        ("desktop-dark", DESKTOP.dark()),
        ("phone-light", PHONE),
        ("phone-dark", PHONE.dark()),
    ];
    for (kind, window) in windows {
        page.resize(window);
        fits(page);
        is_readable(page);
        page.picture(&format!("{name}-{kind}"));
    }
}

#[test]
fn every_state_is_readable_in_light_and_dark_on_a_desk_and_on_a_phone() {
    let directory = temporary();
    let store = format!("file:{}", directory.path().join("store").display());
    let timing = ["--ttl", "4s", "--renew", "100ms"];
    let mut first = Served::leader(directory.path(), "nightly-reports", "host-1", &timing);
    let second = Served::follower(directory.path(), "nightly-reports", "host-2", &timing);
    let _others: Vec<_> =
        [("billing", "host-2"), ("cache-warmer", "host-3"), ("payments/eu-west-1", "host-1")]
            .map(|(election, id)| Served::leader(directory.path(), election, id, LONG))
            .into();
    // A loss, a handover, and a handover back.
    first.candidate.signal(Signal::STOP);
    let page = second.open(DESKTOP);
    page.until_standing("leading");
    let _third = Served::follower(directory.path(), "nightly-reports", "host-3", &timing);
    first.candidate.signal(Signal::CONT);
    first.candidate.expect("lost");
    for to in ["host-3", "host-1", "host-2"] {
        let asked = on(&store, &["step-down", "nightly-reports", "--to", to]);
        assert!(asked.status.success(), "{asked:?}");
    }
    page.until_standing("leading");
    page.until("document.querySelectorAll('#leaderships tbody tr').length >= 5");
    page.until("document.querySelectorAll('#elections tbody tr').length === 4");
    page.until("document.querySelectorAll('#spark .bar-one').length > 10");
    looks_right(&page, "leading");
    let of_follower = first.open(DESKTOP);
    of_follower.until_standing("following");
    of_follower.until("document.querySelector('#losses li') !== null");
    of_follower.until("document.querySelectorAll('#elections tbody tr').length === 4");
    looks_right(&of_follower, "following");
    let Served { mut candidate, .. } = second;
    candidate.kill();
    page.until_link("lost");
    page.until_standing("expired");
    looks_right(&page, "disconnected");
}

#[test]
fn a_keyboard_reaches_everything_and_shows_where_it_is() {
    let directory = temporary();
    let leader = Served::leader(directory.path(), "reports", "host-1", LONG);
    let page = leader.open(DESKTOP);
    page.until_standing("leading");
    let mut order = Vec::new();
    for _ in 0..4 {
        page.press("Tab", 9);
        order.push(page.value("document.activeElement.id || document.activeElement.textContent"));
        let outline = page.value("getComputedStyle(document.activeElement).outlineStyle");
        assert_eq!(outline, "solid", "{order:?}");
    }
    assert_eq!(order, ["Skip to the leader", "theme", "events", "/status"].map(Value::from));
    // The switch works by keyboard, and is kept.
    page.value("document.getElementById('theme').focus()");
    let ground = || page.value("getComputedStyle(document.body).backgroundColor");
    let light = ground();
    page.press("Enter", 13);
    page.press("Enter", 13);
    assert_eq!(page.text("theme"), "Theme: dark");
    assert_ne!(ground(), light);
    page.ask("Page.reload", serde_json::json!({}));
    page.until("document.getElementById('theme')?.textContent === 'Theme: dark'");
}

#[test]
fn a_screen_reader_finds_landmarks_headings_and_heads_of_tables_and_hears_only_news() {
    let directory = temporary();
    let leader = Served::leader(directory.path(), "reports", "host-1", LONG);
    let page = leader.open(DESKTOP);
    page.until_standing("leading");
    page.until("document.querySelector('#elections tbody th') !== null && document.querySelector('#leaderships tbody th') !== null");
    let count =
        |selector: &str| page.value(&format!("document.querySelectorAll('{selector}').length")).as_u64();
    for landmark in ["main", "header", "footer", "nav[aria-label]", "h1", "html[lang=en]"] {
        assert_eq!(count(landmark), Some(1), "{landmark}");
    }
    let unnamed = page.value(
        "[...document.querySelectorAll('main > section')].filter((one) => !document.getElementById(one.getAttribute('aria-labelledby'))?.textContent.trim()).length",
    );
    assert_eq!((unnamed, count("main > section") > Some(5)), (Value::from(0), true));
    assert_eq!(count("thead th:not([scope=col])"), Some(0));
    assert_eq!(count("tbody tr:not(:has(th[scope=row]))"), Some(0));
    // The count down changes five times in a second: it is no news.
    assert_eq!(count("[aria-live], [role=status], [role=alert]"), Some(1));
    assert_eq!(count("[role=status] #left, [role=img]:not([aria-label])"), Some(0));
    assert_eq!(page.text("news"), "", "that the page was loaded is none either");
}
