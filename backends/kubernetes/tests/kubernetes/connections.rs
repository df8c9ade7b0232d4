//! How many connections a process opens.

use std::time::Duration;

use bellwether_backend::Backend;
use bellwether_kubernetes::from_url;
use bellwether_support::servers::kubernetes::ADMIN;
use bellwether_support::{clock, election, proxy_to};
use futures_util::future::try_join_all;

use crate::stage::Namespace;

const CALLS: usize = 500;
/// A few dozen at once, and some more where one that is free again is not yet known to be.
const CONNECTIONS_MAX: u64 = 100;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_calls_at_once_share_a_few_connections() {
    let namespace = Namespace::new().await;
    let proxy = proxy_to(namespace.server.port()).await;
    // All of them are under way before the first is answered.
    proxy.slow(Duration::from_millis(20));
    let kubeconfig = namespace.server.kubeconfig_through(proxy.port(), ADMIN);
    let url = format!("kubernetes://{}?kubeconfig={}&timeout=30s", namespace.name, kubeconfig.display());
    let backend = from_url(&url, clock()).expect("a URL");
    let names: Vec<_> = (0..CALLS).map(|number| election(&format!("e{number}"))).collect();
    try_join_all(names.iter().map(|on| backend.observe(on))).await.expect("answers");
    let opened = proxy.connections();
    assert!(opened <= CONNECTIONS_MAX, "{CALLS} calls opened {opened} connections");
}
