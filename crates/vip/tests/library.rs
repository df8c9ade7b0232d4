//! `hold` in a program of one's own: the address lasts as long as the leadership.

#![cfg(target_os = "linux")]

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use bellwether_backend::MemoryStore;
use bellwether_deadman::SystemClock;
use bellwether_election::{Election, Store};
use bellwether_support::netns::{Network, Node};
use bellwether_support::{Scratch, until};
use bellwether_vip::{TTL_MIN, VipError, VirtualAddress, hold};

fn address() -> VirtualAddress {
    "10.7.0.100/24@eth0".parse().unwrap()
}

fn has_it(host: &Node) -> bool {
    let shown = Command::new("ip").args(["-n", &host.namespace, "address", "show", "dev", "eth0"]).output();
    String::from_utf8(shown.unwrap().stdout).unwrap().contains(&address().cidr())
}

/// Runs this in the host's network, on a runtime of its own.
fn on<T: Send>(host: &Node, act: impl AsyncFnOnce() -> T + Send) -> T {
    host.inside(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(act())
    })
}

async fn leader(store: &Store, ttl: Duration) -> Election {
    Election::builder("vip").backend(store.clone()).id("a").ttl(ttl).start().await.unwrap()
}

#[test]
fn the_address_goes_with_the_leadership_and_before_its_release() {
    let Some(mut network) = Network::new() else { return };
    let host = network.node();
    on(&host, async || {
        let store = Store::from(MemoryStore::default().connect(Arc::new(SystemClock)));
        let election = leader(&store, TTL_MIN).await;
        let leadership = election.wait_for_leadership().await.unwrap();
        let held = hold(&address(), &store, &election, &leadership).unwrap();
        assert!(has_it(&host));
        // Returns when the release is written, which waits for the address.
        election.stop().await.unwrap();
        assert!(!has_it(&host));
        drop(held);
    });
}

#[test]
fn a_handle_that_is_dropped_gives_the_address_up() {
    let Some(mut network) = Network::new() else { return };
    let host = network.node();
    on(&host, async || {
        let store = Store::from(MemoryStore::default().connect(Arc::new(SystemClock)));
        let election = leader(&store, TTL_MIN).await;
        let leadership = election.wait_for_leadership().await.unwrap();
        hold(&address(), &store, &election, &leadership).unwrap().release().await;
        assert!(!has_it(&host));
        drop(hold(&address(), &store, &election, &leadership).unwrap());
        until(async || if has_it(&host) { Err("it is still there") } else { Ok(()) }).await;
        assert!(leadership.is_valid());
    });
}

#[test]
fn leases_that_are_too_short_and_stores_that_prove_crashes_are_refused() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Store::from(MemoryStore::default().connect(Arc::new(SystemClock)));
        let election = leader(&store, Duration::from_secs(5)).await;
        let leadership = election.wait_for_leadership().await.unwrap();
        let refused = hold(&address(), &store, &election, &leadership).unwrap_err();
        assert!(matches!(refused, VipError::TtlTooShort(_)), "{refused}");

        let directory = Scratch::new();
        let store = Store::from(bellwether_file::open(directory.path(), Arc::new(SystemClock)).unwrap());
        let election = leader(&store, TTL_MIN).await;
        let leadership = election.wait_for_leadership().await.unwrap();
        let refused = hold(&address(), &store, &election, &leadership).unwrap_err();
        assert!(matches!(refused, VipError::NeedsGuard), "{refused}");
        election.stop().await.unwrap();
    });
}
