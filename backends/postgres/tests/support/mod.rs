//! What several tests of this crate need.
#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test file uses a part")]

pub mod proxy;

use std::time::Duration;

use bellwether_postgres::{Postgres, from_url};
use bellwether_support::{Actor, clock};

/// A candidate in the election `reports`, with connections of its own.
pub fn actor(url: &str, id: &str, ttl: Duration) -> Actor<Postgres> {
    Actor::new(from_url(url, clock()).unwrap(), id, ttl)
}
