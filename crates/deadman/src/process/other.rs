//! Systems without these protections: each function says so.

use super::unsupported;
use std::ffi::CStr;
use std::io;

/// Not on this system.
///
/// # Errors
/// Always.
pub fn die_with_parent() -> io::Result<()> {
    unsupported("this system does not kill a process with its parent")
}

/// Not on this system.
///
/// # Errors
/// Always.
pub fn adopt_orphans() -> io::Result<()> {
    unsupported("this system gives orphans to process 1 only")
}

/// Does nothing: the name is for people, and they can do without.
pub fn set_name(_name: &CStr) {}
