//! Past leaderships and cooldowns, with every profile: where they lie, and that no leadership depends on them.

use std::time::Duration;

use crate::support::stage::{leads, soon};
use crate::support::{BUCKET, CLUSTER, KEY, LEADERS, actor};
use bellwether_backend::{Backend, Discarded, Past};
use bellwether_core::{ErrorKind, Grant, Outcome, ReleaseOptions, Wall};
use bellwether_deadman::boot_now;
use bellwether_election::{Election, ElectionBuilder};
use bellwether_nats::{Config, Nats, from_url};
use bellwether_support::servers::nats::{Server, Version};
use bellwether_support::{Actor, clock, until};
use serde_json::json;

const MINUTE: Duration = Duration::from_secs(60);

/// A profile: its options, the bucket of the election `reports`, and the key of its past leaderships in the bucket for them.
struct Profile {
    query: &'static str,
    bucket: &'static str,
    history: &'static str,
}

const NATIVE: Profile = Profile { query: "?", bucket: BUCKET, history: "history.reports" };
const OF_CLUSTER: Profile =
    Profile { query: "?profile=cluster", bucket: CLUSTER, history: "cluster.history.reports" };
const OF_LEADERS: Profile = Profile {
    query: "?profile=leader&bucket=leaders",
    bucket: LEADERS,
    history: "leader.history.leaders/reports",
};
/// Those with their notes in a bucket apart.
const APART: [&Profile; 2] = [&OF_CLUSTER, &OF_LEADERS];

impl Profile {
    fn url(&self, server: &Server) -> String {
        format!("{}{}", server.url(), self.query)
    }

    fn is_apart(&self) -> bool {
        self.bucket != BUCKET
    }
}

/// A server with the buckets of the elections, and none for notes.
async fn server(version: Version) -> Server {
    let server = Server::start(version).await;
    for profile in APART {
        server.bucket(profile.bucket, json!({})).await;
    }
    server
}

fn past(of: &Actor<Nats>, grant: &Grant) -> Past {
    Past {
        epoch: grant.epoch,
        id: of.bid.who.id.clone(),
        incarnation: Some(of.bid.who.incarnation),
        since: Wall::from_unix_nanos(1_700_000_000_000_000_000),
        until: None,
        ended: None,
    }
}

/// A candidate as the command has it, with a short lease.
fn candidate(url: &str, id: &str) -> ElectionBuilder {
    let mut options = Config::from_url(url).unwrap().profile().options();
    options.timing.ttl = Duration::from_secs(1);
    options.timing.renew = Some(Duration::from_millis(200));
    Election::builder(KEY).backend(from_url(url, clock()).unwrap()).id(id).options(options)
}

/// Leads in a runtime of its own, which then goes away without a word.
async fn crashed(url: String, id: &'static str) {
    let leading = move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let election = candidate(&url, id).start().await.unwrap();
            let led = leads(&election).await.epoch();
            let observer = from_url(&url, clock()).unwrap();
            // It is written after the promotion, and a crash before that would leave nothing to tell.
            until(|| async {
                let past = observer.history(election.name()).await.unwrap();
                if past.iter().any(|past| past.epoch == led) { Ok(()) } else { Err(format!("{past:?}")) }
            })
            .await;
            std::mem::forget(election);
        });
        runtime.shutdown_background();
    };
    tokio::task::spawn_blocking(leading).await.unwrap();
}

async fn three_leaderships(version: Version, profile: &Profile) {
    let server = server(version).await;
    server.bucket(BUCKET, json!({})).await;
    let url = profile.url(&server);
    let first = candidate(&url, "a").start().await.unwrap();
    leads(&first).await;
    soon(first.stop()).await.unwrap();
    crashed(url.clone(), "b").await;
    let third = candidate(&url, "c").start().await.unwrap();
    leads(&third).await;
    let observer = actor(&url, "observer");
    let past = until(|| async {
        let past = observer.backend.history(&observer.on).await.unwrap();
        if past.len() == 3 { Ok(past) } else { Err(format!("{past:?}")) }
    })
    .await;
    let told: Vec<_> = past.iter().map(|past| (past.id.as_str(), past.ended.as_deref())).collect();
    // Nobody was there to say how the second ended, and nobody invents it.
    assert_eq!(told, [("a", Some("released")), ("b", None), ("c", None)], "{past:?}");
    assert_eq!((past[0].until.is_some(), past[1].until, past[2].until), (true, None, None), "{past:?}");
    assert!(past.is_sorted_by(|one, next| one.epoch < next.epoch), "{past:?}");
    soon(third.stop()).await.unwrap();
    let keys = server.keys(BUCKET).await;
    if profile.is_apart() {
        assert_eq!(keys, [profile.history]);
        let others = server.keys(profile.bucket).await;
        assert!(others.len() == 1 && !others[0].contains("history"), "a key was added: {others:?}");
    } else {
        assert_eq!(keys, ["election.reports", profile.history]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_leaderships_are_told_one_of_them_without_an_end() {
    for version in [Version::Current, Version::Old] {
        let all = [&NATIVE, &OF_CLUSTER, &OF_LEADERS].map(|profile| three_leaderships(version, profile));
        futures_util::future::join_all(all).await;
    }
}

#[tokio::test]
async fn without_their_bucket_elections_go_on_and_who_asks_for_the_past_is_told_what_is_missing() {
    for version in [Version::Current, Version::Old] {
        let server = server(version).await;
        for profile in APART {
            let mut a = actor(&profile.url(&server), "a");
            a.bid.cooldown = Some(MINUTE);
            let start = boot_now();
            let grant = a.lead().await;
            a.backend.remember(&a.on, &past(&a, &grant)).await.unwrap_err();
            a.keep(&grant).await;
            let error = a.backend.history(&a.on).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Misconfigured, "{error}");
            for part in [BUCKET, "past leaderships", "nats kv add", "create=yes", "notes="] {
                assert!(error.to_string().contains(part), "{part} is missing: {error}");
            }
            let how = ReleaseOptions { reserve_for: None, cooldown: Some(MINUTE) };
            let released = a.backend.release(&a.on, &grant, &how).await;
            assert!(matches!(released, Outcome::Done(())), "{released:?}");
            assert!(boot_now().since(start) < Duration::from_secs(10), "nothing of it waits for a time-out");
        }
        let names: Vec<String> = server.revisions().await.into_keys().collect();
        assert_eq!(names, [CLUSTER, LEADERS], "a bucket was made unasked");
        // Made by hand, it serves from then on.
        server.bucket(BUCKET, json!({})).await;
        let mut late = actor(&OF_LEADERS.url(&server), "b");
        late.bid.cooldown = Some(MINUTE);
        let grant = late.lead().await;
        late.backend.remember(&late.on, &past(&late, &grant)).await.unwrap();
        assert_eq!(late.backend.history(&late.on).await.unwrap(), [past(&late, &grant)]);
    }
}

#[tokio::test]
async fn their_bucket_is_made_on_request_by_the_first_note_and_not_again() {
    for version in [Version::Current, Version::Old] {
        let server = server(version).await;
        for profile in APART {
            let url = format!("{}&create=yes&notes=past", profile.url(&server));
            let before = server.revisions().await;
            let a = actor(&url, "a");
            assert_eq!(a.backend.history(&a.on).await.unwrap(), []);
            assert_eq!(server.revisions().await, before, "a look made a bucket");
            let grant = a.lead().await;
            assert!(!server.revisions().await.contains_key("past"), "no claim waits for it");
            a.backend.remember(&a.on, &past(&a, &grant)).await.unwrap();
            let made = server.api("STREAM.INFO.KV_past", json!({})).await["config"].clone();
            assert_eq!(
                (
                    made["max_age"].as_u64(),
                    made["max_msgs_per_subject"].as_i64(),
                    made["num_replicas"].as_u64()
                ),
                (Some(0), Some(1), Some(1)),
                "{made}"
            );
            assert_eq!(server.keys("past").await, [profile.history]);
            // Deleted under way: nobody makes it again, and nobody stops leading.
            server.remove_bucket("past").await;
            let error = a.backend.remember(&a.on, &past(&a, &grant)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Misconfigured, "{error}");
            a.keep(&grant).await;
            assert!(!server.revisions().await.contains_key("past"));
            a.let_go(&grant).await;
        }
    }
}

/// Users `all`, who may do anything, and `some`, who may do anything but these.
fn users(denied: &str) -> String {
    format!(
        r#"authorization {{ users = [
            {{ user: all, password: secret }},
            {{ user: some, password: secret, permissions: {{ publish: {{ allow: ">", deny: [{denied}] }} }} }},
        ] }}
        no_auth_user: all"#
    )
}

#[tokio::test]
async fn a_bucket_that_is_closed_to_us_costs_no_leadership_and_may_be_opened_later() {
    let nothing = r#""$JS.API.*.*.KV_bellwether", "$JS.API.*.*.*.KV_bellwether", "$KV.bellwether.>""#;
    let no_writing = r#""$KV.bellwether.>""#;
    for version in [Version::Current, Version::Old] {
        for denied in [nothing, no_writing] {
            let mut server = Server::start_with(version, &users(denied)).await;
            for bucket in [BUCKET, CLUSTER, LEADERS] {
                server.bucket(bucket, json!({})).await;
            }
            let mut shut_out = Vec::new();
            for profile in APART {
                let url = format!("nats://some:secret@127.0.0.1:{}{}", server.port(), profile.query);
                let mut a = actor(&url, "a");
                a.bid.cooldown = Some(MINUTE);
                let start = boot_now();
                let grant = a.lead().await;
                let error = a.backend.remember(&a.on, &past(&a, &grant)).await.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
                assert!(error.to_string().contains(BUCKET), "{error}");
                let told = a.backend.history(&a.on).await;
                if denied == nothing {
                    let error = told.unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
                } else {
                    assert_eq!(told.unwrap(), []);
                }
                a.keep(&grant).await;
                a.let_go(&grant).await;
                assert!(boot_now().since(start) < Duration::from_secs(10), "nothing waits for a time-out");
                shut_out.push((a, grant));
            }
            assert_eq!(server.last_sequence(BUCKET).await, 0);
            server.configure(&users(r#""nothing""#));
            server.down("TERM");
            server.up().await;
            for (a, grant) in shut_out {
                let past = past(&a, &grant);
                until(|| a.backend.remember(&a.on, &past)).await;
                assert_eq!(a.backend.history(&a.on).await.unwrap(), [past]);
            }
        }
    }
}

#[tokio::test]
async fn whoever_only_looks_makes_and_changes_nothing() {
    for version in [Version::Current, Version::Old] {
        let server = Server::start(version).await;
        for profile in [&NATIVE, &OF_CLUSTER, &OF_LEADERS] {
            let url = format!("{}&create=yes", profile.url(&server));
            let before = server.revisions().await;
            let looker = actor(&url, "looker");
            let _news = looker.news();
            let look = || async {
                looker.seen().await;
                looker.backend.history(&looker.on).await.unwrap();
                looker.backend.elections().await.unwrap();
                looker.backend.checkup(bellwether_backend::Probing::Look).await;
            };
            look().await;
            assert_eq!(server.revisions().await, before, "a look made something");
            let leader = actor(&url, "leader");
            let grant = leader.lead().await;
            leader.backend.remember(&leader.on, &past(&leader, &grant)).await.unwrap();
            let before = server.revisions().await;
            assert!(before.contains_key(BUCKET), "{before:?}");
            for _ in 0..10 {
                look().await;
            }
            assert_eq!(server.revisions().await, before, "a look changed something");
        }
    }
}

#[tokio::test]
async fn what_makes_no_sense_is_no_past_and_no_cooldown_and_gives_way() {
    let server = server(Version::Current).await;
    server.bucket(BUCKET, json!({})).await;
    let huge = vec![b'['; 900_000];
    let long = format!(
        r#"[{{"epoch":3,"id":"x","since":"2026-01-01T00:00:00Z","ended":"{}"}}]"#,
        "x".repeat(1_000_000)
    );
    let junk: [Option<&[u8]>; 9] = [
        Some(b""),
        Some(b"not json"),
        Some(b"\xff\xfe\0"),
        Some(br#"{"epoch":1}"#),
        Some(br#"[null, 7, {"epoch":-1}, {"epoch":9007199254740993,"id":"x","since":"now"}]"#),
        Some(&huge),
        Some(long.as_bytes()),
        Some(b"99999999999999999999999999"),
        None,
    ];
    for profile in APART {
        for bytes in junk {
            server.put(BUCKET, profile.history, bytes).await;
            server.put(BUCKET, "leader.cooldown.leaders/reports/a", bytes).await;
            let mut a = actor(&profile.url(&server), "a");
            a.bid.cooldown = Some(MINUTE);
            let _ = a.backend.history(&a.on).await.unwrap();
            let grant = a.lead().await;
            a.backend.remember(&a.on, &past(&a, &grant)).await.unwrap();
            let told = a.backend.history(&a.on).await.unwrap();
            assert_eq!(told.last(), Some(&past(&a, &grant)), "{told:?}");
            a.let_go(&grant).await;
        }
    }
}

#[tokio::test]
async fn one_bucket_keeps_the_notes_of_all_profiles_apart() {
    let server = server(Version::Current).await;
    server.bucket(BUCKET, json!({})).await;
    server.bucket("others", json!({})).await;
    let urls = [
        NATIVE.url(&server),
        OF_CLUSTER.url(&server),
        OF_LEADERS.url(&server),
        format!("{}?profile=leader&bucket=others", server.url()),
        format!("{}?profile=leader&bucket=others&group=leaders/reports", server.url()),
    ];
    let actors: Vec<Actor<Nats>> = urls.iter().map(|url| actor(url, "a")).collect();
    let mut all = Vec::new();
    for a in &actors {
        let grant = a.lead().await;
        a.backend.remember(&a.on, &past(a, &grant)).await.unwrap();
        all.push(past(a, &grant));
    }
    for (a, past) in actors.iter().zip(&all) {
        assert_eq!(a.backend.history(&a.on).await.unwrap(), std::slice::from_ref(past));
    }
    assert_eq!(actors[0].backend.elections().await.unwrap(), [actors[0].on.clone()]);
    assert_eq!(server.keys(BUCKET).await.len(), 1 + urls.len());
}

#[tokio::test]
async fn in_the_profile_leader_a_cooldown_outlives_a_restart_and_ends_with_its_note() {
    let server = server(Version::Current).await;
    server.bucket(BUCKET, json!({})).await;
    let a = actor(&OF_LEADERS.url(&server), "a");
    let grant = a.lead().await;
    let how = ReleaseOptions { reserve_for: None, cooldown: Some(MINUTE) };
    assert!(matches!(a.backend.release(&a.on, &grant, &how).await, Outcome::Done(())));
    assert_eq!(server.keys(BUCKET).await, ["leader.cooldown.leaders/reports/a"]);
    assert_eq!(server.keys(LEADERS).await, [KEY], "a key was added to the user's bucket");
    let restarted = || {
        let mut again = actor(&OF_LEADERS.url(&server), "a");
        again.bid.cooldown = Some(MINUTE);
        again
    };
    let left = restarted().denied().await.cooldown.expect("it stays away");
    assert!(left > MINUTE / 2 && left <= MINUTE, "{left:?}");
    server.remove_bucket(BUCKET).await;
    let _ = restarted().lead().await;
}

#[tokio::test]
async fn an_election_that_was_made_to_measure_takes_its_notes_along() {
    let server = server(Version::Current).await;
    server.bucket(BUCKET, json!({})).await;
    let a = actor(&OF_LEADERS.url(&server), "a");
    let grant = a.lead().await;
    a.backend.remember(&a.on, &past(&a, &grant)).await.unwrap();
    a.let_go(&grant).await;
    assert_eq!(a.backend.danger_discard(&a.on).await.unwrap(), Discarded::Gone);
    assert_eq!(server.keys(BUCKET).await, Vec::<String>::new());
    server.remove_bucket(BUCKET).await;
    let a = actor(&OF_LEADERS.url(&server), "a");
    let grant = a.lead().await;
    a.let_go(&grant).await;
    assert_eq!(a.backend.danger_discard(&a.on).await.unwrap(), Discarded::Gone);
}
