//! On a server instead of a directory: how long the client waits for the next leader.

use std::time::Duration;

use bellwether_support::servers::nats::{self, Version};
use bellwether_support::servers::postgres;
use tokio::runtime::Runtime;

use crate::failover::{Mishap, take_over_on};
use crate::hosts::{Hosts, Kind, V4};

/// The ttl of the candidates: a server that has been up for that long is waited for by no claim.
const TTL: Duration = Duration::from_secs(6);

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

#[test]
fn on_postgres_a_killed_leader_is_followed_at_once_and_so_is_one_that_hands_over() {
    let Some(mut hosts) = Hosts::new(V4) else { return };
    let machine = hosts.network.node();
    let server = runtime().block_on(postgres::Server::start_with(TTL, Some(&machine), &[]));
    hosts.backend = server.url();
    for mishap in [Mishap::SupervisorKilled, Mishap::BothKilled, Mishap::Handover] {
        take_over_on(&hosts, Kind::AddressAlone, mishap);
    }
}

#[test]
fn on_nats_a_killed_leader_is_followed_when_its_lease_ends_and_one_that_hands_over_at_once() {
    let Some(mut hosts) = Hosts::new(V4) else { return };
    let machine = hosts.network.node();
    let runtime = runtime();
    let server = runtime.block_on(nats::Server::start_on(Version::Current, &machine));
    hosts.backend = format!("{}?create=yes", server.url());
    for mishap in [Mishap::Handover, Mishap::SupervisorKilled] {
        take_over_on(&hosts, Kind::AddressAlone, mishap);
    }
}
