//! The way between candidates and the servers of the store, on which proxies are put: tried once, before anybody depends on it.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use bellwether::{ElectionName, Scheme};
use bellwether_torture::Way;
use bellwether_torture::proxy::Proxy;
use tokio::time::timeout;

/// How long the first look at the store by way of the proxies may take.
const TRIAL: Duration = Duration::from_secs(15);

/// The way, or why nothing can be put on it.
pub(super) async fn way(url: &str, on: &ElectionName, directory: &Path) -> Result<Way, String> {
    let scheme = Scheme::of(url).ok_or("the store has no scheme")?;
    let servers = scheme.servers(url).map_err(|error| error.to_string())?;
    if servers.is_empty() {
        return Err("a directory has no network".to_owned());
    }
    let original = url.to_owned();
    let through = move |addresses: &[SocketAddr], directory: &Path| {
        scheme.through(&original, addresses, directory).map_err(|error| error.to_string())
    };
    let way = Way { servers, through: Box::new(through) };
    let failed = |why: String| format!("the store is not reached by way of proxies: {why}");
    let tried = timeout(TRIAL, attempt(&way, on, directory)).await;
    tried.unwrap_or_else(|_| Err("no answer".to_owned())).map_err(failed)?;
    Ok(way)
}

/// Looks at the election by way of proxies. A name that a certificate does not have, for example, is found out here.
async fn attempt(way: &Way, on: &ElectionName, directory: &Path) -> Result<(), String> {
    let mut proxies = Vec::new();
    for server in &way.servers {
        proxies.push(Proxy::to(server.as_str()).await.map_err(|error| error.to_string())?);
    }
    let addresses: Vec<SocketAddr> = proxies.iter().map(Proxy::address).collect();
    let store =
        bellwether::open(&(way.through)(&addresses, directory)?).map_err(|error| error.to_string())?;
    store.backend().observe(on).await.map(drop).map_err(|error| error.to_string())
}
