//! A disk that is full: openraft's engine stops for good, says why, and has lost nothing when there is room again.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use bellwether_cluster::{EngineOptions, Member, NodeId, NodeName, OpenraftEngine, RaftAdapter, RaftFailure};
use bellwether_support::permitted;
use tempfile::TempDir;

use crate::cluster::CLUSTER;
use crate::machine::Commands;
use crate::network::Network;

/// More than a log needs to begin with, and less than the test writes.
const DISK_MIB: usize = 8;
const COMMAND_BYTES: usize = 32 << 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_stops_the_node_and_nothing_acknowledged_is_lost() {
    let Some(disk) = Disk::mount() else { return };
    let member = Member {
        node: NodeId::from_random(1),
        name: NodeName::new("node-0").unwrap(),
        address: "node-0:1".to_owned(),
    };
    let (engine, _) = open(disk.path()).await;
    engine.bootstrap(vec![member]).await.unwrap();
    let mut status = engine.status();
    status.wait_for(|status| status.is_leader).await.unwrap();

    let mut acknowledged = Vec::new();
    let stopped = loop {
        let command = format!("{:0>COMMAND_BYTES$}", acknowledged.len());
        match engine.propose(command.clone().into_bytes()).await {
            Ok(_) => acknowledged.push(command),
            Err(RaftFailure::Stopped(why)) => break why,
            Err(error) => panic!("after {} commands: {error}", acknowledged.len()),
        }
        assert!(acknowledged.len() * COMMAND_BYTES < (2 * DISK_MIB) << 20, "the disk does not get full");
    };
    assert!(acknowledged.len() > 10, "only {} commands fit", acknowledged.len());
    assert!(stopped.contains("raft.redb") && stopped.contains("make room"), "{stopped}");
    let said = status.wait_for(|status| status.stopped.is_some()).await.unwrap().clone();
    assert_eq!(said.stopped, Some(stopped));
    assert!(!said.is_leader);

    // Room alone changes nothing: what the failed write left behind is unknown.
    disk.grow();
    assert!(matches!(engine.propose(b"again".to_vec()).await, Err(RaftFailure::Stopped(_))));
    engine.shutdown().await;
    drop(engine);

    let (engine, commands) = open(disk.path()).await;
    engine.status().wait_for(|status| status.is_leader).await.unwrap();
    engine.confirm_leadership().await.unwrap();
    let kept = commands.all();
    assert!(kept.starts_with(&acknowledged), "{} of {} commands are left", kept.len(), acknowledged.len());
    engine.propose(b"after".to_vec()).await.unwrap();
    engine.shutdown().await;
}

async fn open(directory: &Path) -> (OpenraftEngine, Commands) {
    let commands = Commands::default();
    let node = NodeId::from_random(1);
    let options = EngineOptions::new(directory, node, CLUSTER);
    let link = Network::default().link(node);
    let engine = OpenraftEngine::open(options, Box::new(commands.clone()), Arc::new(link)).await.unwrap();
    (engine, commands)
}

/// A small file system in memory.
struct Disk(TempDir);

impl Disk {
    fn mount() -> Option<Disk> {
        let directory = TempDir::new().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={DISK_MIB}m"), "tmpfs"]).arg(directory.path());
        permitted(&mut mount, "a full disk").then(|| Disk(directory))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn grow(&self) {
        let size = format!("remount,size={}m", 8 * DISK_MIB);
        let grown = Command::new("mount").args(["-o", &size]).arg(self.path()).status().unwrap();
        assert!(grown.success());
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.path()).status();
    }
}
