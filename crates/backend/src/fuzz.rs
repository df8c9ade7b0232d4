//! What fuzzing asks of the parsers of this crate, and of all that read its records. Each function takes any bytes, and panics where a
//! promise is broken; `fuzz` has the list.

use bellwether_core::{ElectionName, Epoch, TTL_RANGE};
use serde_json::Value as Json;

use crate::{Past, Record, history, json, url};

/// A record as files and NATS keep it.
pub fn record(bytes: &[u8]) {
    let read = json::read(bytes);
    judge(&read.record, whole(bytes).as_ref());
    let on = read.election.as_deref().and_then(|name| ElectionName::new(name).ok()).unwrap_or_else(election);
    if !read.record.broken {
        let printed = json::print(&on, &read.record);
        assert!(printed.len() <= bytes.len() + 1_024, "{} bytes became {}", bytes.len(), printed.len());
        let again = json::read(&printed);
        assert_eq!(again.election.as_deref(), Some(on.as_str()));
        same(&again.record, &read.record);
        // What was written once is written as it is.
        assert_eq!(json::print(&on, &again.record), printed);
    }
}

/// All of the JSON. `None` also where a field that no record has makes no sense, which readers of records pass over.
pub fn whole(bytes: &[u8]) -> Option<Json> {
    serde_json::from_str(&String::from_utf8_lossy(bytes)).ok()
}

/// That a record says no more than the JSON that it was read from, which it has its names and numbers from.
pub fn judge(record: &Record, json: Option<&Json>) {
    if record.broken {
        assert_eq!(*record, Record::unreadable(), "what makes no sense tells nothing");
        return;
    }
    let Some(json) = json else { return };
    let told = |field: &str| json.get(field);
    assert!(json.is_object(), "a record that is no object: {record:?}");
    assert_eq!(record.epoch.map(Epoch::get), told("epoch").and_then(Json::as_u64));
    let holder = told("holder").and_then(Json::as_str).filter(|holder| !holder.is_empty());
    assert_eq!(record.holder.as_ref().map(|holder| holder.id.as_str()), holder);
    if let Some(incarnation) = record.holder.as_ref().and_then(|holder| holder.incarnation) {
        assert_eq!(told("incarnation").and_then(Json::as_str), Some(incarnation.to_string().as_str()));
        assert!(record.ttl.is_none_or(|ttl| ttl <= TTL_RANGE.1), "ours for {:?}", record.ttl);
    }
}

/// That a record was read back as it was written. What it says in wall time has fewer digits then, and what was missing may be written
/// as nothing.
pub fn same(read: &Record, written: &Record) {
    let kept = |record: &Record| Record {
        ttl: Some(record.ttl.unwrap_or_default()),
        boot_id: record.boot_id.clone().filter(|_| record.holder.is_some()),
        acquired: None,
        renewed: None,
        ..record.clone()
    };
    assert_eq!(kept(read), kept(written));
}

/// Past leaderships.
pub fn history(bytes: &[u8]) {
    let all = history::parse(bytes);
    let printed = history::print(&all);
    assert!(printed.len() <= 2 * bytes.len() + 2, "{} bytes became {}", bytes.len(), printed.len());
    let again = history::parse(&printed);
    let plain = |all: &[Past]| {
        all.iter().map(|past| (past.epoch, past.id.clone(), past.ended.clone())).collect::<Vec<_>>()
    };
    assert_eq!(plain(&again), plain(&all));
    assert_eq!(history::print(&again), printed);
}

/// The part of a store's URL behind the `?`, and percent-encoding.
pub fn url_options(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for option in url::options("fuzz", text) {
        let Ok((name, value)) = option else { continue };
        assert!(!name.contains(['&', '=']) && value.len() <= text.len());
        let _ = (url::yes_or_no("fuzz", name, &value), url::time("fuzz", name, &value));
    }
    let Some(plain) = url::unescape(text) else { return };
    let digits = |rest: &str| rest.bytes().take_while(u8::is_ascii_hexdigit).count().min(2);
    assert!(text.split('%').skip(1).all(|rest| digits(rest) == 2), "{text:?} became {plain:?}");
    let escaped: String = plain.bytes().map(|byte| format!("%{byte:02x}")).collect();
    assert_eq!(url::unescape(&escaped), Some(plain));
}

fn election() -> ElectionName {
    ElectionName::new("e").expect("a letter is a name")
}
