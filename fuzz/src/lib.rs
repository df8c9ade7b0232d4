//! Every parser that reads foreign bytes, and what it promises about them.
//!
//! ```text
//! crates/…/src/fuzz.rs   the bodies: `fn target(bytes: &[u8])`, which panics where a promise is broken; beside the parser, which is private
//! [`TARGETS`]            all of them
//! corpus/TARGET/         inputs: real ones, nasty ones, and every one that ever broke a promise
//! fuzz_targets/          a program for each target, for cargo-fuzz; without it, an empty one
//! ```
//!
//! The tests of this crate run every body on its whole corpus, without a fuzzer. `cargo xtask fuzz` looks for more.
//!
//! A new target is a function in the `fuzz.rs` of its crate (whose feature `fuzz` adds that module and changes nothing), a row here, a program
//! in `fuzz_targets` with its entry in Cargo.toml, and a corpus. The tests say which of them is missing.

/// A parser, and what it promises.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// What it is called: as its body, its program and the folder of its corpus.
    pub name: &'static str,
    /// Panics where a promise is broken.
    pub body: fn(&[u8]),
    /// Makes examples, where they are bytes that nobody writes by hand. They are files of the corpus, so a format that changes is noticed.
    pub examples: Option<fn() -> Vec<Vec<u8>>>,
}

macro_rules! targets {
    ($($krate:ident { $($name:ident $(($examples:ident))?),+ })+) => {
        $(pub use $krate::fuzz::{$($name),+};)+

        /// All of them.
        pub const TARGETS: &[Target] = &[$($(Target {
            name: stringify!($name),
            body: $name,
            examples: first(&[$($krate::fuzz::$examples)?]),
        }),+),+];
    };
}

/// A target has one way to make examples, or none.
const fn first(all: &'static [fn() -> Vec<Vec<u8>>]) -> Option<fn() -> Vec<Vec<u8>>> {
    match all {
        [examples, ..] => Some(*examples),
        [] => None,
    }
}

targets! {
    bellwether_agent { http_address, http_request }
    bellwether_audit { event_lines }
    bellwether_backend { history, record, url_options }
    bellwether_cli { configuration }
    bellwether_cluster { bootstrap_ledger, cluster_frames(cluster_frames_examples), cluster_hello(cluster_hello_examples), cluster_identity(cluster_identity_examples), cluster_message(cluster_message_examples), engine_message(engine_message_examples), engine_snapshot(engine_snapshot_examples), kubernetes_peers, raft_url }
    bellwether_core { duration, wall_time }
    bellwether_deadman { proc_stat }
    bellwether_file { file_names, file_notices, file_record, file_url }
    bellwether_kubernetes { kubernetes_lease, kubernetes_url }
    bellwether_nats { nats_cluster, nats_keys, nats_leader, nats_native, nats_url }
    bellwether_postgres { postgres_files, postgres_notice, postgres_session_name, postgres_url }
    bellwether_raft { raft_log(raft_log_examples), raft_message(raft_message_examples), raft_state(raft_state_examples) }
    bellwether_supervise { guard_message }
    bellwether_vip { arp(arp_examples), ndp(ndp_examples), virtual_address }
}

#[cfg(test)]
mod tests;
