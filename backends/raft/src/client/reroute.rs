//! The same nodes by way of other addresses, as by a proxy.

use std::net::SocketAddr;

use bellwether_core::StoreError;

use super::config;

/// `HOST:PORT` of each node that the URL names.
///
/// # Errors
/// When the URL cannot be read.
pub fn places(url: &str) -> Result<Vec<String>, StoreError> {
    Ok(config(url)?.addresses)
}

/// The URL with these addresses in the place of its nodes, in their order, and with no others, whatever the nodes say of each other.
pub fn through(url: &str, addresses: &[SocketAddr]) -> String {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let kept = query.split('&').filter(|option| !option.is_empty() && !option.starts_with("discover"));
    let options: Vec<&str> = kept.chain(["discover=no"]).collect();
    let hosts: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
    format!("raft://{}?{}", hosts.join(","), options.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bellwether_cluster::ClientConfig;

    #[test]
    fn nodes_are_replaced_and_all_else_stays() {
        let addresses = [([127, 0, 0, 1], 9).into(), ([127, 0, 0, 1], 10).into()];
        assert_eq!(places("raft://a,b:7").unwrap(), ["a:7117", "b:7"]);
        let url = through("raft://a,b:7?tls-ca=/c&discover=yes", &addresses);
        assert_eq!(url, "raft://127.0.0.1:9,127.0.0.1:10?tls-ca=/c&discover=no");
        let config = ClientConfig::from_url(&through("raft://a,b", &addresses)).unwrap();
        assert!(config.addresses.len() == 2 && !config.discovers);
    }
}
