//! A Raft cluster inside your program: three nodes, and a state machine of your own that all of them agree on.
//!
//! `cargo run -p bellwether --features node --example embedded_cluster -- DIR`. Run again with the same DIR, it goes on where it ended.
//! Here all three nodes are in one process; yours would start one each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bellwether::cluster::transport::Security;
use bellwether::cluster::{
    At, Cluster, ClusterError, Config, CorruptSnapshot, NodeName, NodeParts, Openraft, StateMachine,
    StaticResolver,
};

/// Counts votes for words: every node applies the same commands in the same order, and has the same counts.
#[derive(Default)]
struct Tally(BTreeMap<String, u64>);

impl StateMachine for Tally {
    /// The answer goes to whoever proposed the command.
    fn apply(&mut self, _at: At, command: &[u8]) -> Vec<u8> {
        let word = String::from_utf8_lossy(command).into_owned();
        let count = self.0.entry(word).or_default();
        *count += 1;
        count.to_string().into_bytes()
    }

    fn snapshot(&self) -> Vec<u8> {
        self.0.iter().map(|(word, count)| format!("{count} {word}\n")).collect::<String>().into_bytes()
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<(), CorruptSnapshot> {
        let line = |line: &str| {
            let (count, word) = line.split_once(' ')?;
            Some((word.to_owned(), count.parse().ok()?))
        };
        let corrupt = || CorruptSnapshot("a line is not COUNT WORD".to_owned());
        let text = std::str::from_utf8(snapshot).map_err(|error| CorruptSnapshot(error.to_string()))?;
        self.0 = text.lines().map(line).collect::<Option<_>>().ok_or_else(corrupt)?;
        Ok(())
    }
}

async fn start(
    name: &str,
    address: &str,
    peers: &StaticResolver,
    directory: &Path,
) -> Result<Cluster, ClusterError> {
    let name = NodeName::new(name).map_err(|error| {
        ClusterError::new(bellwether::cluster::ErrorKind::InvalidInput, error.to_string())
    })?;
    let config = Config::new(name.clone(), address, directory.join(name.as_str()), peers.peers().len());
    let parts = NodeParts {
        resolver: Arc::new(peers.clone()),
        // On this machine only. Between machines: certificates, or a secret.
        security: Security::LoopbackOnly,
        engines: Arc::new(Openraft),
        machine: Box::new(|| Box::new(Tally::default())),
        ledger: None,
        // Clients of their own would talk to one.
        service: None,
    };
    let (node, started) = Cluster::start(config, parts).await?;
    println!(
        "{name}: {}, {} leads",
        started.mode,
        started.leader.map_or("nobody".to_owned(), |leader| leader.id.to_string())
    );
    Ok(node)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "demo-cluster".to_owned()));
    let ports = std::env::args().nth(2).unwrap_or_else(|| "7117,7118,7119".to_owned());
    let addresses: Vec<String> = ports.split(',').map(|port| format!("127.0.0.1:{port}")).collect();
    let names = ["app-0", "app-1", "app-2"];
    let peers: Vec<String> =
        names.iter().zip(&addresses).map(|(name, address)| format!("{name}={address}")).collect();
    let peers: StaticResolver = peers.join(",").parse()?;

    // They form a cluster when all are there, so they are started together.
    let all = names.iter().zip(&addresses).map(|(name, address)| start(name, address, &peers, &directory));
    let nodes = futures_util::future::try_join_all(all).await?;

    // Any node takes a command: a follower passes it on to the leader.
    for (node, word) in nodes.iter().cycle().zip(["yes", "no", "yes", "yes"]) {
        let applied = node.propose(word.as_bytes().to_vec()).await?;
        println!("entry {}: {} × {word}", applied.index, String::from_utf8_lossy(&applied.answer));
    }

    // Whoever leads hands over, and the others go on.
    let (leader, others): (Vec<Cluster>, Vec<Cluster>) = nodes.into_iter().partition(Cluster::is_leader);
    for node in leader {
        node.shutdown().await;
    }
    let applied = others[0].propose(b"yes".to_vec()).await?;
    println!("without the old leader: {} × yes", String::from_utf8_lossy(&applied.answer));
    for node in others {
        node.shutdown().await;
    }
    Ok(())
}
