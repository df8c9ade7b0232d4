//! What guard and init say to each other, printed as what guard and supervisor say ([`guard_protocol`](crate::guard_protocol)).

use serde::{Deserialize, Serialize};

/// Guard to init.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum InitOrder {
    /// Make COMMAND, in a process group of its own or in that of init.
    Go { own_group: bool },
    /// The leadership lasts until this instant now, in nanoseconds of the boot-time clock.
    Deadline(u64),
    /// Pass this signal on to COMMAND.
    ToCommand(i32),
    /// Send this signal to the whole tree.
    ToTree(i32),
}

/// Init to guard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum InitReport {
    /// Ready to make COMMAND.
    Ready,
    /// It cannot contain COMMAND, or could not make it, for this reason.
    Unable(String),
    /// COMMAND has ended with this wait status.
    Ended(i32),
}
