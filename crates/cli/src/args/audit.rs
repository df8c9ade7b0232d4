//! The flags of `audit`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

/// Check recorded event lines: did two candidates ever lead at once?
///
/// Give it the event lines of every candidate, from `run --events=FILE --events-renewals`. It checks that leaderships never overlapped,
/// that epochs rose, that each epoch had one owner, and that each candidate began and ended its leaderships in turn. Lines that are no
/// event lines are skipped.
///
/// Lines of one machine are compared by its boot-time clock; those of several machines by their epochs only.
///
/// Exits with 0 if all is clean, and with 1 if a promise was broken or the lines do not tell.
#[derive(Debug, ClapArgs)]
pub(crate) struct Audit {
    /// Files of event lines, of one or of several candidates and elections; `-` is standard input.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Also draw who led when, as a picture in this file. An existing file is not overwritten.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}
