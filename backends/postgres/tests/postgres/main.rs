//! Elections on real PostgreSQL servers, a module for each situation. Each test starts a server of its own.

mod conformance;
mod elections;
mod encryption;
mod epochs;
mod fence;
mod followers;
mod forged;
mod half_open;
mod many;
mod order;
mod planted;
mod pooler;
mod reach;
mod requests;
mod sessions;
mod support;
mod tables;
mod takeover;
mod transitions;
