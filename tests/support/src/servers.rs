//! Real servers, one a test program or test, gone with it.

pub mod dns;
pub mod etcd;
pub mod kubernetes;
pub mod nats;
pub mod peers;
pub mod pgbouncer;
pub mod postgres;
mod user;

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU8, Ordering};

/// An address of the loopback that nobody else in any test has, so that a port on it is free whoever else picks one.
pub fn own_address() -> Ipv4Addr {
    static GIVEN: AtomicU8 = AtomicU8::new(0);
    let [.., middle, last] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, 64 + GIVEN.fetch_add(1, Ordering::Relaxed) % 128, middle, last)
}
