//! Wall clocks that are set while a candidate runs, by libfaketime where it is installed.
//!
//! The library is loaded into the candidate and changes what it reads as the time of day. How far is in a file, which the library reads at every
//! look at the clock. Clocks that nobody can set stay as they are; whether that is so, and whether the wall clock moves at all, is tried once.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use bellwether_core::Clock;
use bellwether_deadman::{SystemClock, boot_now};

use crate::roles::clocks_command;

/// Where distributions put it: the variant for programs of several threads.
const FOLDERS: [&str; 7] = [
    "/usr/lib/x86_64-linux-gnu/faketime",
    "/usr/lib/aarch64-linux-gnu/faketime",
    "/usr/lib/faketime",
    "/usr/lib64/faketime",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib/faketime",
];
const LIBRARY: &str = "libfaketimeMT.so.1";
/// How far the clock is set when it is tried, and how far off it may then be, in seconds.
const TRIED: (i64, i64) = (1_000_000, 1_000);

/// The library, tried with this very program; or why it cannot be used.
///
/// # Errors
/// With a sentence for people.
pub fn clock_library(program: &Path, directory: &Path) -> Result<PathBuf, String> {
    let library = FOLDERS.iter().map(|folder| Path::new(folder).join(LIBRARY)).find(|path| path.exists());
    let library = library.ok_or("libfaketime was not found")?;
    let offset = directory.join("tried-clock");
    set(&offset, TRIED.0).map_err(|error| error.to_string())?;
    let mut command = clocks_command(program);
    load(&mut command, &library, &offset);
    let output = command.output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stdout);
    let mut numbers = said.split_whitespace().filter_map(|number| number.parse::<i64>().ok());
    let (Some(boot), Some(wall)) = (numbers.next(), numbers.next()) else {
        return Err("libfaketime could not be tried".to_owned());
    };
    let (own_boot, own_wall) = clocks();
    if (own_boot - boot).abs() > TRIED.1 {
        return Err("libfaketime also sets the clock that nobody can set".to_owned());
    }
    if (wall - own_wall - TRIED.0).abs() > TRIED.1 {
        return Err("libfaketime does not set the wall clock of this program".to_owned());
    }
    Ok(library)
}

/// Has a command read its wall clock through the library, with what is in that file added.
pub(crate) fn load(command: &mut Command, library: &Path, offset: &Path) {
    command.env("LD_PRELOAD", library).env("FAKETIME_TIMESTAMP_FILE", offset).env("FAKETIME_NO_CACHE", "1");
    // The second is what older versions call it.
    command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env("DONT_FAKE_MONOTONIC", "1");
}

/// Sets the clocks that read this file, in one step.
pub(crate) fn set(offset: &Path, seconds: i64) -> io::Result<()> {
    let new = offset.with_extension("new");
    fs::write(&new, format!("{seconds:+}\n"))?;
    fs::rename(new, offset)
}

/// What this process reads, in seconds: the boot-time clock, and the wall clock.
pub(crate) fn clocks() -> (i64, i64) {
    let seconds = |nanos: u64| i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX);
    (seconds(boot_now().as_nanos()), SystemClock.wall().as_unix_nanos() / 1_000_000_000)
}
