//! A process that keeps the proof that another lives, for work that neither of them can kill.
//!
//! ```text
//!  this process ── until, until, … ──▶ keeper: has the proofs
//!       │ killed                          │ waits until then, or for the end of the client's process
//!       ▼                                 ▼
//!  client believes, until then         closes the proofs: only now may another candidate lead
//! ```
//!
//! The guard of a command kills the command before it closes the proofs. The work of a client in another language cannot be killed
//! so, and believes in its leadership until what it was told has run out. A keeper lasts for one leadership.

use crate::channel::{self, Packet};
use crate::children::start_beside;
use bellwether_core::Boot;
use bellwether_deadman::process;
use bellwether_deadman::{TimerFd, boot_now};
use rustix::event::{PollFd, PollFlags, poll};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// The argument that makes a start of this program a keeper.
pub(crate) const ROLE: &str = "__proof";

/// The first packet: an instant, and whether the first descriptor is the client's pidfd.
const FIRST_BYTES: usize = 9;

/// A keeper that runs. Dropping it lets the keeper wait until the instant that it was told last; [`release`](ProofKept::release) ends it.
#[derive(Debug)]
pub struct ProofKept {
    socket: OwnedFd,
    process: Option<Child>,
}

impl ProofKept {
    /// Starts a process that keeps these descriptors open until that instant, or until the process behind the pidfd `client` has ended; but
    /// always for as long as this process lives.
    ///
    /// # Errors
    /// When there is no room for another process, or it cannot be told.
    pub fn start(proofs: &[OwnedFd], client: Option<BorrowedFd<'_>>, until: Boot) -> io::Result<ProofKept> {
        let (socket, theirs) = channel::pair()?;
        let mut command = Command::new("/proc/self/exe");
        command.arg0("bellwether-proof").arg(ROLE).stdin(Stdio::from(theirs));
        // Whoever reads what this process says waits for its end, not for the keeper's.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let process = start_beside(|| command.spawn(), |process| Some(process.id()))?;
        let kept = ProofKept { socket, process: Some(process) };
        let mut first = until.as_nanos().to_ne_bytes().to_vec();
        first.push(u8::from(client.is_some()));
        let descriptors: Vec<_> = client.into_iter().chain(proofs.iter().map(AsFd::as_fd)).collect();
        channel::send(kept.socket.as_fd(), &first, &descriptors)?;
        Ok(kept)
    }

    /// Keeps them until then.
    ///
    /// # Errors
    /// When the keeper is gone.
    pub fn extend(&self, until: Boot) -> io::Result<()> {
        channel::send(self.socket.as_fd(), &until.as_nanos().to_ne_bytes(), &[])
    }

    /// Ends the keeper.
    pub fn release(mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// A keeper's whole life; returns its exit code.
pub(crate) fn main() -> i32 {
    if !channel::is_channel(io::stdin()) {
        eprintln!("`__proof` is internal: bellwether starts its own keeper with it");
        return 64;
    }
    // It has nobody to tell why; whoever started it notices that it is gone.
    if keep().is_ok() { 0 } else { 70 }
}

fn keep() -> io::Result<()> {
    // What is typed at a terminal, and what is sent to the group, is not for it.
    process::block_all_signals();
    process::set_name(c"bellw-proof");
    rustix::process::setpgid(None, None)?;
    let timer = TimerFd::new()?;
    let stdin = io::stdin();
    let mut kept = Kept { until: Boot::default(), client: None, proofs: Vec::new(), is_alone: false };
    loop {
        kept.hear(stdin.as_fd());
        if kept.is_alone && (boot_now() >= kept.until || kept.client_is_gone()) {
            return Ok(());
        }
        timer.set(kept.is_alone.then_some(kept.until));
        let mut fds = vec![PollFd::new(&timer, PollFlags::IN)];
        if kept.is_alone {
            fds.extend(kept.client.as_ref().map(|client| PollFd::new(client, PollFlags::IN)));
        } else {
            fds.push(PollFd::new(&stdin, PollFlags::IN));
        }
        let _ = poll(&mut fds, None);
    }
}

struct Kept {
    until: Boot,
    client: Option<OwnedFd>,
    /// Closed by the end of this process.
    proofs: Vec<OwnedFd>,
    /// The process that was told of has ended.
    is_alone: bool,
}

impl Kept {
    fn hear(&mut self, socket: BorrowedFd<'_>) {
        while !self.is_alone {
            match channel::receive(socket) {
                Ok(Some(packet)) => self.obey(packet),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Ok(None) | Err(_) => self.is_alone = true,
            }
        }
    }

    fn obey(&mut self, packet: Packet) {
        if let Some(nanos) = packet.bytes.first_chunk() {
            self.until = self.until.max(Boot::from_nanos(u64::from_ne_bytes(*nanos)));
        }
        let mut descriptors = packet.descriptors.into_iter();
        if packet.bytes.len() == FIRST_BYTES && packet.bytes.last() == Some(&1) {
            self.client = descriptors.next();
        }
        self.proofs.extend(descriptors);
    }

    fn client_is_gone(&self) -> bool {
        self.client.as_ref().is_some_and(|client| {
            let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
            poll(&mut [PollFd::new(client, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
        })
    }
}
