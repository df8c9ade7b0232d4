//! How the servers of each store are reached at other addresses: what each store does with its own URLs, in one shape.

use std::net::SocketAddr;
use std::path::Path;

use bellwether_election::Error;

/// What a store with servers does.
pub(crate) struct Reroute {
    /// `HOST:PORT` of each server.
    pub(crate) servers: fn(&str) -> Result<Vec<String>, Error>,
    /// The URL with these addresses instead, and a directory for files.
    pub(crate) through: fn(&str, &[SocketAddr], &Path) -> Result<String, Error>,
}

#[cfg(feature = "postgres")]
pub(crate) const POSTGRES: Reroute = Reroute {
    servers: |url| {
        let environment = bellwether_postgres::Environment::from_env();
        Ok(bellwether_postgres::Config::from_url_in(url, &environment)?.places()?)
    },
    through: |url, addresses, _| Ok(bellwether_postgres::through(url, addresses)),
};

#[cfg(feature = "nats")]
pub(crate) const NATS: Reroute = Reroute {
    servers: |url| Ok(bellwether_nats::Config::from_url(url)?.places()),
    through: |url, addresses, _| Ok(bellwether_nats::through(url, addresses)?),
};

#[cfg(feature = "kubernetes-any-version")]
pub(crate) const KUBERNETES: Reroute = Reroute {
    servers: |url| Ok(vec![bellwether_kubernetes::place(url)?]),
    through: |url, addresses, directory| match addresses {
        [address] => Ok(bellwether_kubernetes::through(url, *address, directory)?),
        _ => Err(Error::BadUrl("there is one API server".to_owned())),
    },
};

#[cfg(feature = "raft")]
pub(crate) const RAFT: Reroute = Reroute {
    servers: |url| Ok(bellwether_raft::places(url)?),
    through: |url, addresses, _| Ok(bellwether_raft::through(url, addresses)),
};
