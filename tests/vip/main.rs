//! `bellwether run --vip` on two hosts and a client, each a network namespace: whatever happens to the leader's processes, the client
//! reaches the next leader by the same address, its neighbour cache is right, and the address is never on both hosts.

#![cfg(target_os = "linux")]

mod failover;
mod hosts;
mod refusals;
mod servers;
mod sole_holder;
mod upkeep;
