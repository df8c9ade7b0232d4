//! What supervisor and guard say to each other: one JSON object a packet.
//!
//! Both ends are the same program, so there is one version, and it is checked. Every order names the epoch that it is
//! for: one that arrives late never touches the next leadership's command.

use crate::Survivor;
use bellwether_vip::VirtualAddress;
use serde::{Deserialize, Serialize};

/// Raised with every change to these messages.
pub(crate) const VERSION: u32 = 6;
/// Longest packet: the names of an election and a candidate are short, and a program's arguments are not sent.
pub(crate) const MESSAGE_MAX_BYTES: usize = 16 * 1024;

/// Supervisor to guard, about the command of this epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GuardOrder {
    pub(crate) epoch: u64,
    pub(crate) what: CommandOrder,
}

/// What the supervisor wants of a command. Instants are nanoseconds of the boot-time clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CommandOrder {
    /// Runs it; with this come the descriptors of its standard input and of the proofs.
    Start(StartOrder),
    /// The leadership was renewed.
    Extend { deadline: u64 },
    /// Passes a signal on to the command.
    Signal(i32),
    /// Sends this signal to the whole tree, unless it is 0, and kills it at that instant.
    Stop { signal: i32, kill_by: u64 },
    /// Kills the whole tree at once.
    Kill,
}

/// How a command is to be run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StartOrder {
    pub(crate) env: Vec<(String, String)>,
    pub(crate) deadline: u64,
    pub(crate) grace: u64,
    /// Whether a PID namespace is wanted.
    pub(crate) namespace: bool,
    /// The process that would become the command ends instead.
    pub(crate) rehearsal: bool,
    /// The signals that it is to ignore, as bits.
    pub(crate) ignored: u64,
    /// Whether sockets that were passed to the supervisor (`LISTEN_FDS`) are for it.
    pub(crate) listens: bool,
    /// The address that the host has while the command runs.
    pub(crate) address: Option<VirtualAddress>,
}

/// Guard to supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum GuardReport {
    /// Up, and waiting for orders.
    Ready { version: u32 },
    /// The guard cannot work, for this reason, and ends.
    Unable { sentence: String },
    /// What has become of the command of this epoch.
    Command(u64, CommandReport),
}

/// What has become of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CommandReport {
    /// Init runs, and its pidfd comes with this; nothing of the command runs yet.
    /// Where a PID namespace was wanted and there is none, `refused` says why.
    Contained { init: i32, namespace: bool, refused: Option<String> },
    /// The command runs, in the supervisor's process group or in one of its own, and in the latter case perhaps with the terminal.
    Started { pid: i32, shares_group: bool, has_terminal: bool },
    /// The command could not be run, and nothing of it is left.
    Failed { errno: Option<i32>, sentence: String },
    /// The address of the command cannot be held, and nothing of the command is left.
    NoAddress { sentence: String },
    /// Something has happened to the address that people should know. The command runs on.
    Address { sentence: String },
    /// The command has ended with this wait status, and its whole tree has been reaped. `overdue`: the guard had told
    /// it to stop for want of a renewal.
    Ended { status: i32, overdue: bool },
    /// This process of the command's tree cannot be killed. The guard keeps the proofs, and stays, until it has ended by itself.
    /// COMMAND itself has ended with that wait status, if it is known.
    Unkillable { survivor: Survivor, status: Option<i32> },
}

pub(crate) fn encode(message: &impl Serialize) -> Vec<u8> {
    let bytes = serde_json::to_vec(message).expect("messages have no maps and no odd keys");
    assert!(bytes.len() <= MESSAGE_MAX_BYTES, "a message of {} bytes is too long", bytes.len());
    bytes
}

pub(crate) fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_names_fit_and_survive() {
        let longest = "\u{10ffff}".repeat(63);
        let env =
            ["BELLWETHER_ELECTION", "BELLWETHER_ID"].map(|name| (name.to_owned(), longest.clone())).to_vec();
        let start = StartOrder {
            env,
            deadline: u64::MAX,
            grace: u64::MAX,
            namespace: true,
            rehearsal: false,
            ignored: u64::MAX,
            listens: true,
            address: "fd00::9/128@a-name-of-15-by".parse().ok(),
        };
        let order = GuardOrder { epoch: (1 << 53) - 1, what: CommandOrder::Start(start) };
        assert_eq!(decode(&encode(&order)), Some(order));
        assert_eq!(decode::<GuardOrder>(b"{}"), None);
    }
}
