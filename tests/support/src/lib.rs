//! What the tests of backends share.
//!
//! - [`Actor`]: a candidate on a backend of its own, one call at a time.
//! - [`Child`]: this test program once more in another process, to be stopped and killed.
//! - [`one_clone_goes_on`]: a leader whose process is cloned, on any register.
//! - [`netns`]: machines on a network of their own, which can be cut off in silence.
//! - [`until`]: waiting for what nobody announces, with a bound.
//! - [`permitted`], [`skipped`]: what only root may do, and saying aloud what is left out.
//! - [`Proxy`] and [`proxy_to`]: a way to a server that can be cut, silenced or slowed down.
//! - [`servers`]: real servers, each started by the test that needs it, on a free port of the loopback.
//!
//! Nothing here is a stand-in for a store: what invents behaviour proves nothing.

mod actor;
mod child;
mod clones;
pub mod netns;
mod patience;
mod rights;
mod scratch;
pub mod servers;

pub use actor::{Actor, News, clock, election};
pub use bellwether_torture::proxy::Proxy;
pub use child::{Child, Stopped, crash, lead_until_killed, role};
pub use clones::one_clone_goes_on;
pub use patience::{PATIENCE, until, until_blocking};
pub use rights::{is_root, permitted, skipped};
pub use scratch::Scratch;

/// A way to this port of the loopback.
pub async fn proxy_to(port: u16) -> Proxy {
    Proxy::to(format!("127.0.0.1:{port}")).await.expect("a free port")
}
