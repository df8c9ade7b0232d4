//! What guard and init say to each other: a letter and a number a packet.

use bellwether_core::Boot;

/// Guard to init.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InitOrder {
    /// Make COMMAND, in a process group of its own or in that of init.
    Go { own_group: bool },
    /// The leadership lasts until this instant now.
    Deadline(Boot),
    /// Pass this signal on to COMMAND.
    ToCommand(i32),
    /// Send this signal to the whole tree.
    ToTree(i32),
}

/// Init to guard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InitReport {
    /// Ready to make COMMAND.
    Ready,
    /// It cannot contain COMMAND, or could not make it, for this reason.
    Unable(String),
    /// COMMAND has ended with this wait status.
    Ended(i32),
}

impl InitOrder {
    pub(crate) fn encode(self) -> Vec<u8> {
        let (tag, number) = match self {
            InitOrder::Go { own_group } => (b'g', u64::from(own_group)),
            InitOrder::Deadline(at) => (b'd', at.as_nanos()),
            InitOrder::ToCommand(signal) => (b'c', u64::from(signal.cast_unsigned())),
            InitOrder::ToTree(signal) => (b't', u64::from(signal.cast_unsigned())),
        };
        tagged(tag, number)
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<InitOrder> {
        let (tag, number) = untagged(bytes)?;
        Some(match tag {
            b'g' => InitOrder::Go { own_group: number != 0 },
            b'd' => InitOrder::Deadline(Boot::from_nanos(number)),
            b'c' => InitOrder::ToCommand(number as i32),
            b't' => InitOrder::ToTree(number as i32),
            _ => return None,
        })
    }
}

impl InitReport {
    pub(crate) fn encode(self) -> Vec<u8> {
        match self {
            InitReport::Ready => tagged(b'r', 0),
            InitReport::Unable(sentence) => [b"u", sentence.as_bytes()].concat(),
            InitReport::Ended(status) => tagged(b'e', u64::from(status.cast_unsigned())),
        }
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<InitReport> {
        if let Some(sentence) = bytes.strip_prefix(b"u") {
            return Some(InitReport::Unable(String::from_utf8_lossy(sentence).into_owned()));
        }
        let (tag, number) = untagged(bytes)?;
        Some(match tag {
            b'r' => InitReport::Ready,
            b'e' => InitReport::Ended(number as i32),
            _ => return None,
        })
    }
}

fn tagged(tag: u8, number: u64) -> Vec<u8> {
    [&[tag][..], &number.to_ne_bytes()].concat()
}

fn untagged(bytes: &[u8]) -> Option<(u8, u64)> {
    let (tag, number) = bytes.split_first()?;
    Some((*tag, u64::from_ne_bytes(number.try_into().ok()?)))
}
