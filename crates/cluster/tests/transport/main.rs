//! The transport on real sockets of this machine: what it carries, and what it survives.

mod bounds;
mod calls;
#[cfg(feature = "tls")]
mod certificates;
mod garbage;
mod hello;
mod hostile;
mod links;
mod raw;
mod secret;
mod streams;
mod support;
