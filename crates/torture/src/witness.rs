//! The command of candidates, of which there must never be two: it holds a lock for its whole life, and writes to the protected files, with and
//! without checking its epoch, for as long as it lives.
//!
//! Whatever ends it ends it: it heeds no signal.

use std::convert::Infallible;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use std::{fs, io};

use bellwether_core::{ElectionName, Epoch, duration};
use bellwether_deadman::boot_now;

use crate::limits::write_interval;
use crate::protected::Protected;

/// Bad usage, as the command has it.
const USAGE: i32 = 64;
/// The files could not be written.
const OUTPUT: i32 = 74;
/// In the directory, how long the run is.
const LENGTH: &str = "length";

/// A witness's whole life; returns its exit code if it cannot live it.
pub(crate) fn main(directory: Option<OsString>) -> i32 {
    let (Some(directory), Some(leader)) = (directory.map(PathBuf::from), Leader::from_env()) else {
        eprintln!("`__witness` is internal: bellwether torture runs it as the command of its candidates");
        return USAGE;
    };
    match live(&directory, leader) {
        Ok(never) => match never {},
        Err(error) => {
            eprintln!("the witness cannot write: {error}");
            OUTPUT
        }
    }
}

/// Whose command this is.
struct Leader {
    on: ElectionName,
    epoch: Epoch,
    who: String,
}

impl Leader {
    /// What every command is told.
    fn from_env() -> Option<Leader> {
        let variable = |name: &str| std::env::var(name).ok();
        let on = ElectionName::new(variable("BELLWETHER_ELECTION")?).ok()?;
        let epoch = Epoch::new(variable("BELLWETHER_EPOCH")?.parse().ok()?)?;
        Some(Leader { on, epoch, who: variable("BELLWETHER_ID").unwrap_or_default() })
    }
}

fn live(directory: &Path, leader: Leader) -> io::Result<Infallible> {
    let Leader { on, epoch, who } = leader;
    let protected = Protected::in_directory(directory, on);
    let exclusive = protected.exclusive()?;
    if exclusive.is_none() {
        let (now, pid) = (boot_now().as_nanos(), std::process::id());
        protected.broken(&format!(
            "the witness of {who} (epoch {epoch}, process {pid}) met another at {now} ns after boot"
        ))?;
    }
    let interval = write_interval(length(directory));
    loop {
        protected.write_unchecked(epoch, &who)?;
        protected.write_checked(epoch, &who)?;
        thread::sleep(interval);
    }
}

/// Tells witnesses in this directory how long the run is.
pub(crate) fn tell_length(directory: &Path, length: Duration) -> io::Result<()> {
    fs::write(directory.join(LENGTH), duration::print(length))
}

fn length(directory: &Path) -> Duration {
    let told = fs::read_to_string(directory.join(LENGTH)).unwrap_or_default();
    duration::parse(&told).unwrap_or_default()
}
