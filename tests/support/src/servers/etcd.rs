//! A cluster of etcd: members as processes on the loopback, with etcd's defaults, fsync included. Ended with the test program, however
//! that ends.
//!
//! The programs are those that `cargo xtask env --install` provides: Debian's etcd, and clients made of etcd's own client library.

use std::io::{BufRead, BufReader, Write};
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use bellwether_core::Boot;
use serde_json::Value;

use super::kubernetes::ending::Ending;
use super::kubernetes::{log, missing, programs};
use super::own_address;
use crate::Scratch;

/// The members of one cluster. A member may be down.
#[derive(Debug)]
pub struct Etcd {
    // Before the directory, which the processes write to.
    ending: Ending,
    scratch: Scratch,
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    address: Ipv4Addr,
    process: Option<Child>,
}

impl Etcd {
    /// Starts so many members that know of each other, and waits for none of them: see [`EtcdClient::until_all`].
    pub fn start(count: usize) -> Etcd {
        // Every process of the cluster is in the group of one that does nothing, so that each of them may be killed.
        let mut idle = Command::new("sleep");
        idle.arg("infinity").stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
        let idle = idle.spawn().expect("there is a sleep");
        let scratch = Scratch::new();
        let ending = Ending::of_group(idle, scratch.path());
        let members = (0..count).map(|_| Member { address: own_address(), process: None }).collect();
        let mut etcd = Etcd { ending, scratch, members };
        (0..count).for_each(|number| etcd.up(number));
        etcd
    }

    /// Starts a member that is down, from where it was.
    pub fn up(&mut self, number: usize) {
        assert!(self.members[number].process.is_none(), "the member is up");
        let name = |number: usize| format!("m-{number}");
        let peer = |number: usize| format!("http://{}:2380", self.members[number].address);
        let all: Vec<String> =
            (0..self.members.len()).map(|number| format!("{}={}", name(number), peer(number))).collect();
        let mut command = Command::new(programs::etcd().unwrap_or_else(|| missing("etcd")));
        command.args(["--name", &name(number)]).arg("--data-dir").arg(self.scratch.path().join(name(number)));
        for flag in ["--listen-client-urls", "--advertise-client-urls"] {
            command.args([flag, &self.endpoint(number)]);
        }
        for flag in ["--listen-peer-urls", "--initial-advertise-peer-urls"] {
            command.args([flag, &peer(number)]);
        }
        command.args(["--initial-cluster", &all.join(",")]);
        permit_architecture(&mut command);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log(self.scratch.path(), &name(number)));
        command.process_group(self.ending.group());
        self.members[number].process = Some(command.spawn().expect("etcd starts"));
    }

    /// With kill −9; the member is gone when this returns.
    pub fn kill(&mut self, number: usize) {
        let mut process = self.members[number].process.take().expect("the member is up");
        process.kill().expect("a child of ours can be killed");
        process.wait().expect("a child of ours can be waited for");
    }

    /// The process of a member.
    pub fn pid(&self, number: usize) -> u32 {
        self.members[number].process.as_ref().expect("the member is up").id()
    }

    /// Where clients reach a member.
    pub fn endpoint(&self, number: usize) -> String {
        format!("http://{}:2379", self.members[number].address)
    }

    /// Where clients reach all members but this one.
    pub fn endpoints_without(&self, number: usize) -> Vec<String> {
        (0..self.members.len()).filter(|other| *other != number).map(|other| self.endpoint(other)).collect()
    }

    /// Where clients reach all members.
    pub fn endpoints(&self) -> Vec<String> {
        (0..self.members.len()).map(|number| self.endpoint(number)).collect()
    }

    /// The member that all members take for the leader. Waits until there is one.
    pub fn leader(&self) -> usize {
        let found = EtcdClient::bench("leader", &self.endpoints(), &[]);
        let leads = |number: &usize| found["leader"] == self.endpoint(*number).as_str();
        (0..self.members.len()).find(leads).expect("one of the members")
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        (0..self.members.len())
            .filter(|number| self.members[*number].process.is_some())
            .collect::<Vec<_>>()
            .into_iter()
            .for_each(|number| self.kill(number));
    }
}

/// A client in a process of its own, which waits to be told to begin.
#[derive(Debug)]
pub struct EtcdClient(Child);

impl EtcdClient {
    /// What one measure gives, in a process of its own.
    pub fn bench(measure: &str, endpoints: &[String], flags: &[&str]) -> Value {
        let output = command(measure, endpoints, flags).output().expect("the client starts");
        let logged = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "etcd-client {measure} failed: {logged}");
        serde_json::from_slice(&output.stdout).expect("one line of JSON")
    }

    /// A client that will tell when every endpoint has answered a write.
    pub fn until_all(endpoints: &[String]) -> EtcdClient {
        EtcdClient::waiting(endpoints, &[])
    }

    /// A client that will tell when any endpoint has answered a write.
    pub fn until_any(endpoints: &[String]) -> EtcdClient {
        EtcdClient::waiting(endpoints, &["--any"])
    }

    fn waiting(endpoints: &[String], flags: &[&str]) -> EtcdClient {
        let mut command = command("until", endpoints, flags);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().expect("the client starts");
        let mut said = String::new();
        let stderr = process.stderr.as_mut().expect("a pipe");
        BufReader::new(stderr).read_line(&mut said).expect("the client says that it is there");
        assert_eq!(said.trim(), "connected");
        EtcdClient(process)
    }

    /// Begins to write, and returns when the first answer came.
    pub fn answered(mut self) -> Boot {
        let stdin = self.0.stdin.as_mut().expect("a pipe");
        stdin.write_all(b"now\n").expect("the client reads");
        let mut line = String::new();
        let stdout = self.0.stdout.as_mut().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("the client answers");
        let line: Value = serde_json::from_str(&line).expect("a line of JSON");
        Boot::from_nanos(line["boot_ns"].as_u64().expect("a time"))
    }
}

impl Drop for EtcdClient {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn command(measure: &str, endpoints: &[String], flags: &[&str]) -> Command {
    let mut command = Command::new(programs::ETCD_CLIENT.built().unwrap_or_else(|| missing("etcd-client")));
    command.arg(measure).args(["--endpoints", &endpoints.join(",")]).args(flags);
    command
}

/// Debian's asks for this on other machines than those of its developers.
pub(super) fn permit_architecture(command: &mut Command) {
    if std::env::consts::ARCH == "aarch64" {
        command.env("ETCD_UNSUPPORTED_ARCH", "arm64");
    }
}
