//! Whether the servers and the bucket are fit for elections: reachable, of an age without known losses, durable, with room for watchers, open
//! to this user, and quick.
//!
//! Looking writes nothing. Only whether a watch may be opened takes making one, which the server forgets by itself within
//! seconds; that writing is allowed shows when elections are tried. How often the server flushes to disk cannot be seen from a
//! client; the sentence about durability says what to look at.

use std::time::Duration;

use bellwether_backend::{Finding, Probing};
use bellwether_core::{Clock, ErrorKind, StoreError, duration};

use crate::bucket::Bucket;
use crate::bucket_api::{Info, StreamSettings};
use crate::errors::{BACKEND, STREAM_NOT_FOUND};
use crate::register::BucketStore;

const CALL_LIMIT: Duration = Duration::from_secs(5);
const READS: usize = 20;
const SLOW_READ: Duration = Duration::from_millis(100);
/// Below it, acknowledged writes were lost in ways that have been mended since.
const SOUND: [u64; 3] = [2, 10, 23];
/// Replicas that survive the loss of one server.
const REPLICAS: u8 = 3;
/// A key that no election has.
const NOBODY: &str = "checkup";

pub(crate) async fn checkup(store: &BucketStore, probing: Probing<'_>, clock: &dyn Clock) -> Vec<Finding> {
    let mut findings = match store.connection.client().await {
        Ok(client) => vec![server(&client.server_info().version)],
        Err(error) => return vec![Finding::failed("server", &error)],
    };
    for name in store.layout.buckets() {
        let bucket = store.bucket(&name);
        match bucket.info(CALL_LIMIT).await {
            Ok(info) => {
                findings.extend(settings(&name, &info));
                findings.push(reading(&bucket, clock).await);
                if probing == Probing::Write {
                    findings.push(watching(&bucket, store.layout.leases()).await);
                }
            }
            Err(_) if store.connection.config().create && is_missing(&bucket).await => {
                let sentence = format!("{name} is not there yet: the first claim makes it");
                findings.push(Finding::good("bucket", sentence));
            }
            Err(error) => findings.push(Finding::failed("bucket", &error)),
        }
    }
    if let Some(bucket) = &store.notes {
        findings.push(notes(bucket, store.connection.config().create).await);
    }
    findings
}

/// Nothing here is bad: no leadership depends on it.
async fn notes(bucket: &Bucket, create: bool) -> Finding {
    let name = &bucket.name;
    match bucket.info(CALL_LIMIT).await {
        Ok(info) if info.config.max_age == 0 => {
            Finding::good("notes", format!("past leaderships are kept in the bucket {name}, which is there"))
        }
        Ok(info) => {
            let age = duration::print(Duration::from_nanos(info.config.max_age));
            let sentence = format!(
                "past leaderships are kept in the bucket {name}, which is there and forgets them after {age}: set its max age to 0"
            );
            Finding::warning("notes", sentence)
        }
        Err(_) if create && is_missing(bucket).await => {
            let sentence = format!(
                "the bucket {name} for past leaderships is not there yet: the first leadership makes it"
            );
            Finding::good("notes", sentence)
        }
        Err(error) => Finding::warning("notes", format!("past leaderships are not kept: {error}")),
    }
}

fn server(version: &str) -> Finding {
    let said = format!("the server is NATS {version}");
    let numbers: Vec<u64> =
        version.split(['.', '-']).take(3).map_while(|number| number.parse().ok()).collect();
    if numbers.as_slice() < SOUND.as_slice() {
        let sound = SOUND.map(|number| number.to_string()).join(".");
        let sentence =
            format!("{said}: earlier versions than {sound} lose acknowledged writes more easily; update it");
        return Finding::warning("server", sentence);
    }
    Finding::good("server", said)
}

async fn is_missing(bucket: &Bucket) -> bool {
    matches!(bucket.api(CALL_LIMIT).info(None).await, Err(failure) if failure.is(STREAM_NOT_FOUND))
}

fn settings(name: &str, Info { config, state, .. }: &Info) -> Vec<Finding> {
    let forgets = match config.max_age {
        0 => "keeps records for good".to_owned(),
        age => format!("forgets records after {}", duration::print(Duration::from_nanos(age))),
    };
    let bucket = match config.max_msgs_per_subject {
        1 => Finding::good("bucket", format!("{name} is there and {forgets}")),
        history => {
            let kept = if history < 1 { "all".to_owned() } else { history.to_string() };
            let sentence = format!(
                "{name} is there and {forgets}; it keeps {kept} versions of each, where 1 would do: it grows for nothing"
            );
            Finding::warning("bucket", sentence)
        }
    };
    vec![bucket, durability(config), watchers(config, state.consumer_count)]
}

fn durability(config: &StreamSettings) -> Finding {
    let replicas = config.num_replicas;
    let sync = "servers acknowledge before they flush to disk, by default every two minutes (sync_interval)";
    if replicas >= REPLICAS {
        let sentence = format!(
            "{replicas} replicas: the loss of one server costs nothing; {sync}, so a power failure of all of them can still \
             take leaderships back"
        );
        return Finding::good("durability", sentence);
    }
    let number = if replicas <= 1 { "one replica".to_owned() } else { format!("{replicas} replicas") };
    let sentence = format!(
        "{number}: no leader can renew while a server is away, and {sync}, so a power failure can take leaderships and epochs \
         back; use {REPLICAS} replicas on servers of their own, or sync_interval: always"
    );
    Finding::warning("durability", sentence)
}

fn watchers(config: &StreamSettings, count: u64) -> Finding {
    match u64::try_from(config.max_consumers) {
        Ok(limit) if limit > 0 && count.saturating_mul(5) >= limit.saturating_mul(4) => {
            let sentence = format!(
                "{count} of at most {limit} consumers are taken, and every process needs one to be told of changes: raise the limit"
            );
            Finding::warning("watchers", sentence)
        }
        Ok(limit) if limit > 0 => {
            Finding::good("watchers", format!("{count} of at most {limit} consumers are taken"))
        }
        _ => {
            let sentence =
                format!("{count} consumers; the bucket sets no limit (newer servers allow 1000 by default)");
            Finding::good("watchers", sentence)
        }
    }
}

async fn reading(bucket: &Bucket, clock: &dyn Clock) -> Finding {
    let mut times = Vec::with_capacity(READS);
    for _ in 0..READS {
        let start = clock.boot();
        if let Err(failure) = bucket.api(CALL_LIMIT).last(NOBODY).await {
            return Finding::failed("reading", &failure.error("read from the bucket's leader"));
        }
        times.push(clock.boot().since(start));
    }
    times.sort();
    let (middle, longest) = (times[READS / 2], times[READS - 1]);
    let said = format!("a read takes {middle:.1?}, at most {longest:.1?}");
    if middle > SLOW_READ {
        return Finding::warning(
            "reading",
            format!("{said}: the servers are far away or busy; choose a long ttl"),
        );
    }
    Finding::good("reading", said)
}

async fn watching(bucket: &Bucket, leases: &str) -> Finding {
    let failed = |error: StoreError| Finding::failed("watching", &error);
    let client = match bucket.connection.client().await {
        Ok(client) => client,
        Err(error) => return failed(error),
    };
    let inbox = client.new_inbox();
    let Ok(listening) = client.subscribe(inbox.clone()).await else {
        return failed(StoreError::new(ErrorKind::Unavailable, BACKEND, "cannot subscribe"));
    };
    let opened = bucket.api(CALL_LIMIT).watch(leases, &inbox, Duration::from_secs(1)).await;
    drop(listening);
    match opened {
        Ok(_) => Finding::good("watching", "this user is told of changes"),
        Err(failure) => failed(failure.error("watch the bucket")),
    }
}

#[cfg(test)]
mod tests {
    use bellwether_backend::Grade;

    use super::*;

    #[test]
    fn servers_with_known_losses_are_warned_of() {
        for (version, mark) in [
            ("2.9.10", Grade::Warning),
            ("2.10.22", Grade::Warning),
            ("2.10.23", Grade::Good),
            ("2.15.1", Grade::Good),
            ("2.11.0-RC.1", Grade::Good),
            ("3.0.0", Grade::Good),
            ("unknown", Grade::Warning),
        ] {
            assert_eq!(server(version).grade, mark, "{version}");
        }
    }

    #[test]
    fn a_limit_of_watchers_is_warned_of_before_it_is_reached() {
        let limit = |max_consumers| StreamSettings { max_consumers, ..StreamSettings::default() };
        assert_eq!(watchers(&limit(100), 79).grade, Grade::Good);
        assert_eq!(watchers(&limit(100), 80).grade, Grade::Warning);
        assert_eq!(watchers(&limit(-1), 900).grade, Grade::Good);
        assert_eq!(watchers(&limit(0), 900).grade, Grade::Good);
    }
}
