//! Elections of one process, all led by it: memory, processor time and connections while nothing happens.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::Duration;

use bellwether::boot_now;

use super::contest::CONNECTIONS;
use super::process::Process;
use super::{Make, Pair};
use crate::{Axis, Row, Unit, cpu_time_of, progress, resident_bytes_of};

pub(super) const COUNTS: [usize; 4] = [1, 100, 1_000, 10_000];
/// For what the start leaves behind.
const SETTLING: Duration = Duration::from_secs(3);
/// At the defaults of every make, everything is renewed at least once.
const STEADY: Duration = Duration::from_secs(10);
/// Until all are led.
const PATIENCE: Duration = Duration::from_secs(120);

/// The state of a TCP connection that is established, as Linux lists it.
const ESTABLISHED: &str = "01";

#[derive(Clone, Copy)]
pub(super) struct Cost {
    memory: f64,
    cores: f64,
    connections: f64,
}

pub(super) async fn measure(make: &Make, flags: &[String], elections: usize) -> Cost {
    progress(&format!("{}: {elections} elections", make.name));
    let mut process = Process::start(make, "compete", flags);
    process.until_all("started_leading", elections, PATIENCE).await;
    tokio::time::sleep(SETTLING).await;
    let (before, start) = (cpu_time_of(process.pid()), boot_now());
    tokio::time::sleep(STEADY).await;
    let used = cpu_time_of(process.pid()).saturating_sub(before);
    Cost {
        memory: resident_bytes_of(process.pid()) as f64,
        cores: used.as_secs_f64() / boot_now().since(start).as_secs_f64(),
        connections: connections(process.pid()) as f64,
    }
}

pub(super) fn rows<'a>(
    store: &'a str,
    pair: &'a Pair,
    cost: &'a HashMap<String, Cost>,
    elections: usize,
) -> impl Iterator<Item = (&'static str, Row)> {
    type Part = fn(&Cost) -> f64;
    let parts: [(&'static str, Unit, Part); 3] = [
        ("memory of the process", Unit::Bytes, |cost| cost.memory),
        ("processor of the process", Unit::Cores, |cost| cost.cores),
        (CONNECTIONS, Unit::Count, |cost| cost.connections),
    ];
    parts.into_iter().map(move |(what, unit, part)| {
        let row = pair.row(store, what, unit, |make| part(&cost[&make.name]));
        (what, row.at(Axis::Elections, elections))
    })
}

/// TCP connections of a process: its sockets among those that Linux lists as established.
fn connections(pid: u32) -> usize {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).expect("Linux's /proc").flatten();
    let links = open.filter_map(|entry| fs::read_link(entry.path()).ok());
    let sockets: HashSet<String> =
        links.filter_map(|link| inode(link.to_str()?).map(str::to_owned)).collect();
    let listed = ["tcp", "tcp6"].map(|family| fs::read_to_string(format!("/proc/{pid}/net/{family}")));
    listed
        .iter()
        .flatten()
        .flat_map(|list| established(list))
        .filter(|inode| sockets.contains(*inode))
        .count()
}

fn inode(link: &str) -> Option<&str> {
    link.strip_prefix("socket:[")?.strip_suffix(']')
}

/// The inodes of connections that are established.
fn established(list: &str) -> impl Iterator<Item = &str> {
    list.lines().filter_map(|line| {
        let mut fields = line.split_whitespace();
        (fields.nth(3)? == ESTABLISHED).then(|| fields.nth(5)).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn established_connections_are_told_from_listeners_by_their_inodes() {
        let list = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
                    \x20  0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11 1\n\
                    \x20  1: 0100007F:1F90 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 12 1\n";
        assert_eq!(established(list).collect::<Vec<_>>(), ["12"]);
        assert_eq!((inode("socket:[12]"), inode("pipe:[12]")), (Some("12"), None));
    }

    #[test]
    fn a_connection_of_this_process_is_counted() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let before = connections(std::process::id());
        let _here = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert_eq!(connections(std::process::id()), before + 1);
    }
}
