//! The flags of `torture`.

use std::path::PathBuf;
use std::time::Duration;

use bellwether_torture::{Kind, limits};
use clap::Args as ClapArgs;

use super::duration;

/// Run candidates on your store under kills, stops and network faults, and judge them: did two ever lead at once?
///
/// Starts candidates on this machine, real `bellwether run` processes, in an election of their own on the store of --backend, and does to
/// them what happens to programs: kill -9, SIGSTOP and CONT, restarts, requests to step down, connections that are cut with and without a
/// word, late answers. The command of each candidate is a witness: it holds a lock that only one at a time can have, and writes to a
/// file that refuses older epochs, and to one that does not.
///
/// At the end it prints the verdict on the event lines of all candidates (as `bellwether audit` does), what their witnesses saw, how
/// often the leader changed, for how long nobody led after which fault, and a line by which the same faults can be had again: they
/// are drawn from a seed. Faults that are not possible here are named with the reason.
///
/// Safe beside your own elections: it takes part in an election torture-<seed>-<random> only, and signals only what it started. The
/// network is cut between its own candidates and the store, by proxies on the loopback; the servers are left alone, unless you name a
/// command that restarts one. When all is clean, it removes what it wrote to the store, as far as the store permits, and says what remains.
///
/// Exits with 0 only if everything is clean, with 1 if a promise was broken or the lines do not tell, and as other commands do if the
/// store cannot be used. Ctrl-C ends it early, with the verdict until then; a second one at once. Needs Linux.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Try it: `bellwether torture --backend file:/tmp/try --for 20s`")]
pub(crate) struct Torture {
    /// How long faults happen, from 5s to 24h.
    #[arg(long = "for", value_name = "DURATION", value_parser = length, default_value = "60s")]
    pub(crate) length: Duration,

    /// What the faults are drawn from: the same seed and flags give the same faults. Default: a random one, which is printed.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,

    /// How many candidates there are, from 2 to 16.
    #[arg(long, value_name = "N", value_parser = candidates, default_value = "3")]
    pub(crate) candidates: usize,

    /// The candidates' ttl. Default: 1s, or the shortest that is sensible on the store: 2s on Kubernetes and in the profile cluster of NATS.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) ttl: Option<Duration>,

    /// Only these faults, separated by commas: kill, stop, freeze, restart, step-down, cut, reset, delay, clock,
    /// server-restart. Default: all that are possible.
    #[arg(long, value_name = "FAULTS", value_delimiter = ',', value_parser = str::parse::<Kind>)]
    pub(crate) faults: Vec<Kind>,

    /// Restart a server of the store as a fault too: CMD is run with /bin/sh -c each time, and is killed if it takes longer than 60s.
    #[arg(long, value_name = "CMD")]
    pub(crate) server_restart: Option<String>,

    /// Keep the files of the run in this directory, which must be empty or not there yet: event lines, logs, what witnesses wrote.
    /// Default: a temporary directory, which is removed if all is clean.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

fn length(text: &str) -> Result<Duration, String> {
    let length = duration(text)?;
    let bounds = limits::LENGTH;
    if bounds.contains(&length) { Ok(length) } else { Err("a run takes from 5s to 24h".to_owned()) }
}

fn candidates(text: &str) -> Result<usize, String> {
    let bounds = limits::CANDIDATES;
    let count = text.parse().ok().filter(|count| bounds.contains(count));
    count.ok_or_else(|| format!("there can be from {} to {} candidates", bounds.start(), bounds.end()))
}
