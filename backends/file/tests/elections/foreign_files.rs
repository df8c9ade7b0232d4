//! Files that Bellwether did not write: nothing of them is ever removed, moved or changed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::support::{actor, names};
use bellwether_backend::{Backend, Past};
use bellwether_core::{CandidateId, ErrorKind, Grant, Outcome};
use bellwether_support::Scratch;

const TTL: Duration = Duration::from_millis(400);

fn past(grant: &Grant) -> Past {
    Past {
        epoch: grant.epoch,
        id: CandidateId::new("b").unwrap(),
        incarnation: Some(grant.incarnation),
        since: Default::default(),
        until: None,
        ended: None,
    }
}

fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    names(dir).into_iter().map(|name| (name.clone(), fs::read(dir.join(name)).unwrap())).collect()
}

#[tokio::test]
async fn a_directory_with_somebody_elses_numbered_files_is_refused_and_left_as_it_is() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("reports");
    fs::create_dir(&dir).unwrap();
    for number in 1..=20 {
        fs::write(dir.join(format!("{number}.json")), format!("{{\"frame\":{number}}}")).unwrap();
    }
    let before = contents(&dir);
    let candidate = actor(scratch.path(), "a", TTL);
    for _ in 0..2 {
        match candidate.claim().await {
            Outcome::Refused(error) => {
                assert_eq!(error.kind(), ErrorKind::Misconfigured);
                assert!(error.to_string().contains("20.json"), "{error}");
            }
            other => panic!("{other:?}"),
        }
        tokio::time::sleep(TTL).await;
    }
    assert_eq!(contents(&dir), before);
    assert_eq!(candidate.backend.elections().await.unwrap(), [], "it is no election");
}

#[tokio::test]
async fn files_of_others_in_an_elections_directory_outlive_every_sweep() {
    let scratch = Scratch::new();
    let dir = scratch.path().join("reports");
    let first = actor(scratch.path(), "a", TTL);
    let grant = first.lead().await;
    first.let_go(&grant).await;
    let theirs = [
        ("500.json", "{\"frame\":500}"),
        ("history.500.json", "[\"not a leadership\"]"),
        (".tmp-0123456789abcdef", "half a letter"),
        (".tmp-notes", ""),
        ("0123456789abcdef0123456789abcdef.alive", "a diary"),
        ("500.json.bak", "{}"),
        ("7.json~", "{}"),
    ];
    for (name, text) in theirs {
        fs::write(dir.join(name), text).unwrap();
        let file = fs::File::options().write(true).open(dir.join(name)).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1)).unwrap();
    }
    let heir = actor(scratch.path(), "b", TTL);
    let (next, _) = heir.lead_within(20 * TTL).await;
    assert!(next.epoch > grant.epoch);
    for _ in 0..30 {
        heir.keep(&next).await;
        heir.backend.remember(&heir.on, &past(&next)).await.unwrap();
    }
    heir.let_go(&next).await;
    let left = contents(&dir);
    for (name, text) in theirs {
        assert_eq!(left.get(name).map(Vec::as_slice), Some(text.as_bytes()), "{name}");
    }
    let ours =
        left.keys().filter(|name| name.strip_suffix(".json").is_some_and(|n| n.parse::<u64>().is_ok()));
    assert!(ours.count() <= 8 + 1, "{:?}", left.keys());
}

#[test]
fn a_plain_lease_is_not_adopted_over_somebody_elses_hidden_file() {
    let scratch = Scratch::new();
    let seed = r#"{"holder": "node-1", "renewTime": "2024-05-01T10:00:00Z", "leaseDuration": "10s"}"#;
    fs::write(scratch.path().join("reports"), seed).unwrap();
    fs::write(scratch.path().join(".seed-reports"), "theirs").unwrap();
    let before = contents(scratch.path());
    let refused = bellwether_file::prepare(&scratch.path().join("reports")).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Misconfigured);
    assert!(refused.to_string().contains(".seed-reports"), "{refused}");
    assert_eq!(contents(scratch.path()), before);
}
