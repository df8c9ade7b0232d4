//! The same servers by way of other addresses, as by a proxy.
//!
//! The hosts' names stay, since TLS checks them: libpq's `hostaddr` says where they are.

use std::net::{IpAddr, SocketAddr};

use bellwether_core::StoreError;

use crate::Config;
use crate::config::bad;
use crate::transport;

impl Config {
    /// `HOST:PORT` of each server.
    ///
    /// # Errors
    /// For a Unix socket, which has neither.
    pub fn places(&self) -> Result<Vec<String>, StoreError> {
        (0..self.server.get_hosts().len()).map(|host| self.place(host)).collect()
    }

    fn place(&self, host: usize) -> Result<String, StoreError> {
        if transport::is_local(self, host) {
            return Err(bad("a Unix socket has no port: name the server by a host".to_owned()));
        }
        let port = transport::port(self, host);
        match self.server.get_hostaddrs().get(host) {
            Some(address) => Ok(SocketAddr::new(*address, port).to_string()),
            None => {
                let name = transport::name(self, host);
                let is_bare = name.parse().is_ok_and(|address: IpAddr| address.is_ipv6());
                Ok(if is_bare { format!("[{name}]:{port}") } else { format!("{name}:{port}") })
            }
        }
    }
}

/// The URL, or text of `name=value`, with these addresses for its servers, in their order. Of what is named twice the last counts.
pub fn through(url: &str, addresses: &[SocketAddr]) -> String {
    let joined = |of: fn(&SocketAddr) -> String| addresses.iter().map(of).collect::<Vec<_>>().join(",");
    let (hosts, ports) = (joined(|one| one.ip().to_string()), joined(|one| one.port().to_string()));
    let is_pairs = url.split_once(':').is_none_or(|(_, rest)| !rest.starts_with("//"));
    match (is_pairs, url.contains('?')) {
        (true, _) => format!("{url} hostaddr={hosts} port={ports}"),
        (false, false) => format!("{url}?hostaddr={hosts}&port={ports}"),
        (false, true) => format!("{url}&hostaddr={hosts}&port={ports}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_reached_elsewhere_and_keep_their_names() {
        let addresses = [([127, 0, 0, 1], 9).into(), ([127, 0, 0, 1], 10).into()];
        for url in
            ["postgres://u@a:1,b/d?sslmode=prefer", "postgres://u@a,b", "postgres:host=a,b port=1,2 user=u"]
        {
            let config = Config::from_url(&through(url, &addresses)).unwrap();
            assert_eq!(config.places().unwrap(), ["127.0.0.1:9", "127.0.0.1:10"], "{url}");
            assert_eq!(transport::name(&config, 1), "b");
        }
    }

    #[test]
    fn places_are_those_of_the_url() {
        let places = |url| Config::from_url(url).unwrap().places();
        assert_eq!(places("postgres://a:1,[::1]/d").unwrap(), ["a:1", "[::1]:5432"]);
        assert_eq!(places("postgres:host=a hostaddr=10.0.0.1").unwrap(), ["10.0.0.1:5432"]);
        assert!(places("postgres://u@%2Frun%2Fpostgresql/d").is_err());
    }
}
