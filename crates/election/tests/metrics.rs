//! Metrics as Prometheus would read them, of real elections.

mod common;

use std::collections::BTreeMap;

use bellwether_backend::MemoryStore;
use bellwether_core::Signal;
use bellwether_election::{Connection, Election, Metrics, Store};
use common::*;

/// Every sample, by its name and labels.
fn samples(metrics: &Metrics) -> BTreeMap<String, f64> {
    let text = metrics.to_text();
    assert!(text.ends_with("# EOF\n"), "{text}");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("no sample: {line}"));
            (name.to_owned(), value.parse().unwrap_or_else(|_| panic!("no number: {line}")))
        })
        .collect()
}

/// The sample of this name with these labels beside those of the election.
fn sample(metrics: &Metrics, name: &str, id: &str, own: &str) -> Option<f64> {
    let comma = if own.is_empty() { "" } else { "," };
    let labels = format!("{name}{{role=\"{NAME}\",instance_id=\"{id}\",bucket=\"puppet\"{comma}{own}}}");
    samples(metrics).get(&labels).copied()
}

/// The upper bounds of a histogram's buckets, in seconds.
fn bounds(metrics: &Metrics, name: &str) -> Vec<f64> {
    let text = metrics.to_text();
    let buckets = text.lines().filter(|line| line.starts_with(&format!("{name}_bucket{{")));
    let bound = |line: &str| line.split("le=\"").nth(1)?.split('"').next()?.parse().ok();
    buckets.filter_map(bound).filter(|bound: &f64| bound.is_finite()).collect()
}

#[tokio::test]
async fn buckets_double_from_one_millisecond_ten_times_and_from_one_second_twelve_times() {
    let (store, metrics) = (MemoryStore::default(), Metrics::new());
    let (_puppet, builder) = puppet(&store, "a");
    let election = builder.metrics(&metrics).renew_interval(ms(50)).start().await.unwrap();
    soon(election.wait_for_leadership()).await.unwrap();
    let doubled = |first: f64, count: i32| (0..count).map(|power| first * 2_f64.powi(power)).collect();
    let renewals: Vec<f64> = doubled(0.001, 10);
    // A histogram appears with its first duration.
    eventually("a renewal is measured", || {
        bounds(&metrics, "election_heartbeat_duration_seconds") == renewals
    })
    .await;
    soon(election.step_down()).await.unwrap();
    let leaderships: Vec<f64> = doubled(1.0, 12);
    assert_eq!(bounds(&metrics, "election_leader_duration_seconds"), leaderships);
}

#[tokio::test]
async fn a_leadership_from_its_claim_to_its_release() {
    let store = MemoryStore::default();
    let metrics = Metrics::new();
    let (puppet, builder) = puppet(&store, "a");
    let election = builder.metrics(&metrics).renew_interval(ms(50)).start().await.unwrap();
    let of = |name: &str, own: &str| sample(&metrics, name, "a", own);
    let leadership = soon(election.wait_for_leadership()).await.unwrap();
    puppet.log.until("answered renew", 3).await;
    let status = bellwether_election::candidate_json(&election);
    let renewals = status["renewals"].as_array().expect("they are measured");
    assert!(renewals.len() >= 2 && renewals.iter().all(|one| one["status"] == "success"), "{renewals:?}");
    assert!(renewals.iter().all(|one| one["took_ms"].as_f64() >= Some(0.0)), "{renewals:?}");
    let ages: Vec<u64> = renewals.iter().map(|one| one["ago_ms"].as_u64().expect("an age")).collect();
    assert!(ages.is_sorted_by(|earlier, later| earlier >= later), "oldest first: {ages:?}");
    eventually("three renewals are counted", || {
        of("election_heartbeat_duration_seconds_count", "status=\"success\"")
            .is_some_and(|count| count >= 3.0)
    })
    .await;
    assert_eq!(of("election_is_leader", ""), Some(1.0));
    assert_eq!(of("election_connection_status", ""), Some(1.0));
    assert_eq!(of("election_epoch", ""), Some(leadership.epoch().get() as f64));
    let left = of("election_deadline_seconds", "").unwrap();
    assert!(left > 0.0 && left <= 3.0, "{left}");
    assert_eq!(of("election_acquire_attempts_total", "status=\"success\""), Some(1.0));
    assert_eq!(of("election_acquire_attempts_total", "status=\"denied\""), Some(0.0));
    assert_eq!(of("election_token_validation_failures_total", ""), Some(0.0));
    let became = "from_state=\"acquiring\",to_state=\"leader\"";
    assert_eq!(of("election_transitions_total", became), Some(1.0));
    assert_eq!(of("election_leader_duration_seconds_count", ""), None, "it lasts");
    soon(election.step_down()).await.unwrap();
    assert_eq!(of("election_is_leader", ""), Some(0.0));
    assert_eq!(of("election_deadline_seconds", ""), Some(0.0));
    assert_eq!(of("election_leader_duration_seconds_count", ""), Some(1.0));
    assert_eq!(of("election_store_calls_total", "call=\"release\",status=\"success\""), Some(1.0));
}

#[tokio::test]
async fn a_store_that_falls_silent_and_answers_again() {
    let store = MemoryStore::default();
    let metrics = Metrics::new();
    let (puppet, builder) = puppet(&store, "a");
    let election = builder.metrics(&metrics).renew_interval(ms(50)).start().await.unwrap();
    soon(election.wait_for_leadership()).await.unwrap();
    let of = |name: &str, own: &str| sample(&metrics, name, "a", own);
    let connection = |wanted| {
        let election = election.clone();
        async move { soon(election.wait_until(|status| status.connection == wanted)).await.unwrap() }
    };
    connection(Connection::Connected).await;
    puppet.set(Op::Renew, Rule::Fail);
    connection(Connection::Disconnected).await;
    assert_eq!(of("election_connection_status", ""), Some(0.0));
    assert!(of("election_failures_total", "error_type=\"unavailable\"").unwrap() >= 1.0);
    assert!(of("election_heartbeat_duration_seconds_count", "status=\"failure\"").unwrap() >= 1.0);
    assert_eq!(of("election_is_leader", ""), Some(1.0), "it leads until its deadline");
    puppet.set(Op::Renew, Rule::Pass);
    connection(Connection::Connected).await;
    assert_eq!(of("election_connection_status", ""), Some(1.0));
    // No call fails, and still the store says that nobody hears it.
    puppet.set(Op::Renew, Rule::Hang);
    puppet.log.until("called renew", puppet.log.count("called renew") + 1).await;
    puppet.signal(Signal::Doubt);
    connection(Connection::Disconnected).await;
    puppet.signal(Signal::Restored);
    connection(Connection::Connected).await;
}

#[tokio::test]
async fn a_lost_leadership_and_the_gap_until_the_next() {
    let store = MemoryStore::default();
    let metrics = Metrics::new();
    let (puppet, builder) = puppet(&store, "a");
    let first = builder.metrics(&metrics).ttl(ms(400)).start().await.unwrap();
    let lost = soon(first.wait_for_leadership()).await.unwrap();
    let second = common::on(Store::from(Puppet::new(connect(&store))), "b").metrics(&metrics);
    let second = second.start().await.unwrap();
    soon(second.wait_until(|status| status.leader.is_some())).await.unwrap();
    puppet.set_all(Rule::Hang);
    soon(lost.lost()).await;
    soon(second.wait_for_leadership()).await.unwrap();
    assert_eq!(sample(&metrics, "election_losses_total", "a", "reason=\"deadline\""), Some(1.0));
    assert_eq!(sample(&metrics, "election_failover_gap_seconds_count", "b", ""), Some(1.0));
    assert_eq!(sample(&metrics, "election_handover_gap_seconds_count", "b", ""), None);
    puppet.set_all(Rule::Pass);
    soon(first.wait_until(|status| status.leader.as_ref().is_some_and(|id| id.as_str() == "b")))
        .await
        .unwrap();
    soon(second.stop()).await.unwrap();
    soon(first.wait_for_leadership()).await.unwrap();
    assert_eq!(sample(&metrics, "election_handover_gap_seconds_count", "a", ""), Some(1.0));
    assert!(sample(&metrics, "election_is_leader", "b", "").is_none(), "one that has stopped is forgotten");
}

#[tokio::test]
async fn a_record_that_is_not_ours_counts_as_a_failed_validation() {
    let store = MemoryStore::default();
    let metrics = Metrics::new();
    let (puppet, builder) = puppet(&store, "a");
    puppet.deafen();
    let election = builder.metrics(&metrics).ttl(ms(60_000)).start().await.unwrap();
    soon(election.wait_for_leadership()).await.unwrap();
    store.delete(&name());
    assert!(!soon(election.validate()).await.unwrap_or(false));
    assert_eq!(sample(&metrics, "election_token_validation_failures_total", "a", ""), Some(1.0));
}

#[tokio::test]
async fn what_an_election_takes_is_bounded_and_one_that_stopped_takes_nothing() {
    const ELECTIONS: usize = 300;
    let store = Store::new(connect(&MemoryStore::default()));
    let metrics = Metrics::with_bucket("b\"quoted\\");
    // As the documents say.
    assert!(Metrics::series_max() <= 160, "{}", Metrics::series_max());
    for round in 0..3 {
        let mut elections = Vec::new();
        for n in 0..ELECTIONS {
            let builder = Election::builder(format!("round {round} election {n}")).id("a").ttl(ms(60_000));
            elections.push(builder.backend(store.clone()).metrics(&metrics).start().await.unwrap());
        }
        for election in &elections {
            soon(election.wait_for_leadership()).await.unwrap();
        }
        let all = samples(&metrics);
        let leading =
            all.iter().filter(|(name, value)| name.starts_with("election_is_leader") && **value == 1.0);
        assert_eq!(leading.count(), ELECTIONS, "and none of the rounds before");
        assert!(all.len() <= ELECTIONS * Metrics::series_max(), "{}", all.len());
        assert!(all.keys().all(|name| name.contains(r#"bucket="b\"quoted\\""#)), "{all:?}");
        for election in &elections {
            soon(election.stop()).await.unwrap();
        }
        assert!(samples(&metrics).is_empty());
    }
}

#[tokio::test]
async fn two_candidates_of_one_name_are_one_set_of_samples() {
    let store = MemoryStore::default();
    let metrics = Metrics::new();
    let (_, first) = puppet(&store, "a");
    let (_, second) = puppet(&store, "a");
    let first = first.metrics(&metrics).start().await.unwrap();
    soon(first.wait_for_leadership()).await.unwrap();
    let second = second.metrics(&metrics).start().await.unwrap();
    let text = metrics.to_text();
    assert_eq!(text.lines().filter(|line| line.starts_with("election_is_leader{")).count(), 1, "{text}");
    assert_eq!(sample(&metrics, "election_is_leader", "a", ""), Some(1.0));
    soon(second.stop()).await.unwrap();
}
