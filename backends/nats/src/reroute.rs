//! The same servers by way of other addresses, as by a proxy.
//!
//! A host's name is part of what TLS checks, and stays only where it means this machine.

use std::net::SocketAddr;

use bellwether_core::StoreError;

use crate::Config;
use crate::errors::invalid;

impl Config {
    /// `HOST:PORT` of each server.
    pub fn places(&self) -> Vec<String> {
        let place = |server: &String| server.trim_start_matches("nats://").to_owned();
        self.servers.iter().map(place).collect()
    }
}

/// The URL with these addresses in the place of its servers, in their order, and with no others, whatever the servers say of each other.
///
/// # Errors
/// When the URL cannot be read, or has another number of servers.
pub fn through(url: &str, addresses: &[SocketAddr]) -> Result<String, StoreError> {
    let places = Config::from_url(url)?.places();
    if places.len() != addresses.len() {
        return Err(invalid("there has to be one address for each server"));
    }
    let (scheme, rest) = url.split_once("://").unwrap_or(("nats", url));
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let user = place.rsplit_once('@').map(|(user, _)| format!("{user}@")).unwrap_or_default();
    let host = |(place, address): (&String, &SocketAddr)| match place.rsplit_once(':') {
        Some(("localhost", _)) => format!("localhost:{}", address.port()),
        _ => address.to_string(),
    };
    let hosts: Vec<String> = places.iter().zip(addresses).map(host).collect();
    let kept = query.split('&').filter(|option| !option.is_empty() && !option.starts_with("discover"));
    let options: Vec<&str> = kept.chain(["discover=no"]).collect();
    Ok(format!("{scheme}://{user}{}?{}", hosts.join(","), options.join("&")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_replaced_one_by_one_and_all_else_stays() {
        let addresses = [([127, 0, 0, 1], 9).into(), ([127, 0, 0, 1], 10).into()];
        for (url, servers, wanted) in [
            ("nats://a", 1, "nats://127.0.0.1:9?discover=no"),
            ("tls://localhost:1?ca=x", 1, "tls://localhost:9?ca=x&discover=no"),
            (
                "nats://u:p%40@a:1,[::1]:2/?bucket=b&discover=yes",
                2,
                "nats://u:p%40@127.0.0.1:9,127.0.0.1:10?bucket=b&discover=no",
            ),
        ] {
            let found = through(url, &addresses[..servers]).unwrap();
            assert_eq!(found, wanted);
            assert_eq!(Config::from_url(&found).unwrap().places().len(), servers);
        }
        assert_eq!(Config::from_url("nats://a,b:7").unwrap().places(), ["a:4222", "b:7"]);
        assert!(through("nats://a,b", &addresses[..1]).is_err());
    }
}
