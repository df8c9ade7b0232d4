//! What fuzzing asks of the parsers of this crate: the record of every profile, keys, and URLs. Each function takes any bytes, and panics
//! where a promise is broken; `fuzz` has the list.

use bellwether_backend::fuzz::{judge, same, whole};
use bellwether_backend::{Record, json};
use bellwether_core::ElectionName;

use crate::Config;
use crate::layout::Layout;
use crate::layout::cluster::Cluster;
use crate::layout::leader::{Leader, token};
use crate::layout::native::Native;
use crate::names;

/// Part of no input that a fuzzer makes up.
const SECRET: &str = "s3cr3t-0f-a-user";

/// A record of the profile `native`.
pub fn nats_native(bytes: &[u8]) {
    let native = Native { bucket: "b".to_owned() };
    let Ok(record) = native.read(&on(), bytes) else { return };
    judge(&record, whole(bytes).as_ref());
    read_back(&native, &record, bytes);
    if let Some(name) = native.election("b", "election.e", bytes) {
        assert_eq!(native.key(&name), "election.e", "a key is of one election");
    }
}

/// A record of the profile `cluster`, which nodes of others write too: ours only where it says twice who leads.
pub fn nats_cluster(bytes: &[u8]) {
    let Ok(record) = Cluster.read(&on(), bytes) else { return };
    let Some(json) = whole(bytes).filter(|_| !record.broken) else { return judge(&record, None) };
    let node = json["node_id"].as_str().unwrap_or_default();
    assert_eq!(record.holder.as_ref().map_or("", |holder| holder.id.as_str()), node);
    if is_ours(&record) {
        judge(&record, Some(&json["bellwether"]));
        assert_eq!(json["epoch"].as_u64(), record.epoch.map(|epoch| epoch.get()));
        read_back(&Cluster, &record, bytes);
    }
}

/// A record of the profile `leader`, which candidates of others write too: ours only under the token of its leadership. And what is left
/// where it was deleted.
pub fn nats_leader(bytes: &[u8]) {
    let leader = Leader { bucket: "b".to_owned(), group: None };
    if let Some(name) = leader.election("b", "e", bytes) {
        assert_eq!(leader.key(&name), "e", "a key is of one election");
    }
    if let Ok(said) = std::str::from_utf8(bytes)
        && let Ok(Some(mark)) = leader.read_released(&on(), said)
    {
        assert!(!mark.is_held() && mark.epoch.is_some());
        let printed = leader.print_released(&on(), &mark).expect("this profile leaves a mark");
        assert!(!printed.contains('\n'));
        let again = leader.read_released(&on(), &printed).ok().flatten().expect("its own mark");
        assert_eq!((again.epoch, &again.reserved), (mark.epoch, &mark.reserved));
    }
    let Ok(record) = leader.read(&on(), bytes) else { return };
    let Some(json) = whole(bytes).filter(|_| !record.broken) else { return judge(&record, None) };
    assert_eq!(record.holder.as_ref().map(|holder| holder.id.as_str()), json["id"].as_str());
    let incarnation = record.holder.as_ref().and_then(|holder| holder.incarnation);
    let Some((incarnation, epoch)) = incarnation.zip(record.epoch) else {
        assert!(!is_ours(&record) && record.epoch.is_none(), "somebody else's: {record:?}");
        return;
    };
    assert_eq!(json["token"].as_str(), Some(token(incarnation, epoch).as_str()));
    judge(
        &Record { priority: None, metadata: Default::default(), ..record.clone() },
        Some(&json["bellwether"]),
    );
    // Another number of the same priority, or none, is written as a number.
    let priority = Some(record.priority.unwrap_or(0));
    read_back(&leader, &Record { priority, ..record }, bytes);
}

/// A key of a bucket, and on the next line the name that the record under it gives its election.
pub fn nats_keys(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (key, told) = text.split_once('\n').map_or((text, None), |(key, told)| (key, Some(told)));
    if let Some(name) = names::election(key, told) {
        assert_eq!(names::lease(&name), key);
    }
    if let Ok(name) = ElectionName::new(key) {
        assert!(names::is_key(&names::lease(&name)) && names::is_key(&names::bare(&name)), "{name}");
    }
}

/// `nats://HOST…`. What is wrong with it is said without the password.
pub fn nats_url(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if text.contains(SECRET) {
        return;
    }
    for url in [text.to_owned(), format!("nats://user:{SECRET}@{text}")] {
        let said = match Config::from_url(&url) {
            Ok(config) => {
                assert!(!config.bucket().is_empty() && !config.servers.is_empty());
                assert!(
                    config.notes() != Some(config.bucket()) || config.bucket.is_none(),
                    "notes among elections"
                );
                format!("{config:?}")
            }
            Err(error) => error.to_string(),
        };
        assert!(!said.contains(SECRET), "{said}");
    }
}

fn is_ours(record: &Record) -> bool {
    record.holder.as_ref().is_some_and(|holder| holder.incarnation.is_some())
}

fn read_back(layout: &impl Layout, record: &Record, bytes: &[u8]) {
    if record.broken {
        return;
    }
    let Ok(printed) = layout.print(&on(), record) else { return };
    assert!(printed.len() <= 2 * bytes.len() + 1_024, "{} bytes became {}", bytes.len(), printed.len());
    same(&layout.read(&on(), &printed).expect("its own election"), record);
    assert!(json::read(&printed).election.is_none_or(|name| name == on().as_str()));
}

fn on() -> ElectionName {
    ElectionName::new("e").expect("a letter is a name")
}
