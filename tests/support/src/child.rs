//! Real child processes: a test started again in another role.

use std::fmt::Display;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use bellwether_backend::Backend;
use bellwether_core::{Candidate, CandidateId, ElectionName, Incarnation};

use crate::{Actor, election, until_blocking};

const ROLE: &str = "BELLWETHER_TEST_ROLE";
const LEADING: &str = "leading";
/// How long a child may take to get where it is wanted, on a slow machine: a leader may have to wait for another first.
const LONGEST: Duration = Duration::from_secs(120);

/// A process that is killed when the test is over, whatever happened.
#[derive(Debug)]
pub struct Child(std::process::Child);

impl Child {
    /// Runs the test `name` of this same test program in another process, with `role` set for it.
    pub fn start(name: &str, role: &str) -> Child {
        let child = Command::new(std::env::current_exe().expect("a program has a path"))
            .args(["--exact", name, "--nocapture", "--test-threads=1"])
            .env(ROLE, role)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this very program can be started");
        Child(child)
    }

    /// Waits for a line with this in it, and returns the line.
    pub fn wait_for(&mut self, words: &str) -> String {
        let output = BufReader::new(self.0.stdout.take().expect("waited for once"));
        let (say, said) = mpsc::channel();
        let wanted = words.to_owned();
        std::thread::spawn(move || {
            let line = output.lines().map_while(Result::ok).find(|line| line.contains(&wanted));
            let _ = say.send(line);
        });
        match said.recv_timeout(LONGEST) {
            Ok(line) => line.unwrap_or_else(|| panic!("the child ended without saying {words}")),
            Err(_) => panic!("the child does not say {words} within {LONGEST:?}"),
        }
    }

    /// Sends a signal, as `-STOP`.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args([name, &self.id().to_string()]).status();
        assert!(status.expect("there is a kill").success(), "the child is gone");
    }

    /// With kill −9; it is gone when this returns.
    pub fn kill(&mut self) {
        self.0.kill().expect("a child of ours can be killed");
        self.0.wait().expect("a child of ours can be waited for");
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// The process itself.
    pub fn process(&mut self) -> &mut std::process::Child {
        &mut self.0
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Somebody else's process that does nothing any more; it goes on when this is dropped.
#[derive(Debug)]
pub struct Stopped(String);

impl Stopped {
    /// It does nothing any more when this returns, and its connections stay open.
    pub fn process(id: impl Display) -> Stopped {
        let stopped = Stopped(id.to_string());
        stopped.signal("-STOP");
        let status = format!("/proc/{id}/stat");
        let is_so = || std::fs::read_to_string(&status).is_ok_and(|text| text.contains(") T "));
        until_blocking(|| is_so().then_some(()).ok_or_else(|| format!("process {id} does not stop")));
        stopped
    }

    fn signal(&self, name: &str) {
        let _ = Command::new("kill").args([name, &self.0]).status();
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        self.signal("-CONT");
    }
}

/// What this process was started for, if it is a child.
pub fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// Lets another process lead on this store, and kills it: what a harness of the conformance suite needs. The test `name`
/// calls [`lead_until_killed`] when it has a role.
pub async fn crash(name: &'static str, store: &str, on: &ElectionName, who: &Candidate, ttl: Duration) {
    let ttl = ttl.as_millis().to_string();
    let role = [store, on.as_str(), who.id.as_str(), &who.incarnation.to_string(), &ttl].join("\n");
    let crashed = tokio::task::spawn_blocking(move || {
        let mut leader = Child::start(name, &role);
        leader.wait_for(LEADING);
        leader.kill();
    });
    crashed.await.expect("the leader was killed");
}

/// In the child of [`crash`]: leads on the store that `connect` makes of its name.
pub async fn lead_until_killed<B: Backend>(role: &str, connect: impl FnOnce(&str) -> B) {
    let parts: Vec<&str> = role.split('\n').collect();
    let [store, on, id, incarnation, millis] = parts[..] else { panic!("not a role of this test: {role}") };
    let ttl = Duration::from_millis(millis.parse().expect("a number"));
    let mut actor = Actor::new(connect(store), id, ttl);
    actor.on = election(on);
    let id = CandidateId::new(id).expect("an id");
    let incarnation = Incarnation::parse(incarnation).expect("an incarnation");
    actor.bid.who = Candidate { id, incarnation };
    actor.lead_within(Duration::from_secs(60)).await;
    println!("{LEADING}");
    std::future::pending::<()>().await;
}
