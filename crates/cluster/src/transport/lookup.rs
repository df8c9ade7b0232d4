//! From host names to addresses, asked anew for every dial: pods come back elsewhere under the same name.

use std::io;
use std::net::SocketAddr;

use futures_util::future::BoxFuture;

/// Finds the addresses of `HOST:PORT`.
pub trait HostLookup: Send + Sync + 'static {
    /// The addresses as they are now.
    fn look_up(&self, address: &str) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>>;
}

/// Asks the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemLookup;

impl HostLookup for SystemLookup {
    fn look_up(&self, address: &str) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        let address = address.to_owned();
        Box::pin(async move { Ok(tokio::net::lookup_host(address).await?.collect()) })
    }
}
