//! What tells one start of a process from another, and one boot of a machine from another.

use std::io;
use std::sync::OnceLock;

/// Which boot of which machine this is, and so which clock [`boot_now`](crate::boot_now) reads; `None` where the kernel does not tell.
/// Containers share their host's.
pub fn boot_id() -> Option<&'static str> {
    static ID: OnceLock<Option<String>> = OnceLock::new();
    let read = || {
        let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        Some(id.trim().to_owned()).filter(|id| !id.is_empty())
    };
    ID.get_or_init(read).as_deref()
}

/// 128 bits from the kernel's random generator, waiting for it early in boot until it is seeded.
///
/// # Panics
/// If the kernel has none to give. Two processes with the same "random" incarnation could both believe that
/// they hold one leadership, so there is nothing to fall back on.
pub fn random_bits() -> u128 {
    let mut bytes = [0; 16];
    while let Err(error) = fill(&mut bytes) {
        // A signal may arrive while the generator is not yet seeded; every other error lasts.
        assert!(error.kind() == io::ErrorKind::Interrupted, "the kernel gives no random bytes: {error}");
    }
    u128::from_ne_bytes(bytes)
}

/// Up to 256 bytes come whole or not at all, so a short count is an error and not a loop.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn fill(bytes: &mut [u8; 16]) -> io::Result<()> {
    // SAFETY: the kernel writes at most `len` bytes to a buffer that is valid and exclusive for that many.
    let written = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    match usize::try_from(written) {
        Ok(written) if written == bytes.len() => Ok(()),
        Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn fill(bytes: &mut [u8; 16]) -> io::Result<()> {
    // SAFETY: the system writes `len` bytes to a buffer that is valid and exclusive for that many.
    match unsafe { libc::getentropy(bytes.as_mut_ptr().cast(), bytes.len()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_boot_has_one_id() {
        let id = boot_id().expect("the kernel tells");
        assert!(id.len() > 30 && !id.contains(char::is_whitespace), "{id:?}");
        assert_eq!(boot_id(), Some(id));
    }

    #[test]
    fn random_bits_do_not_repeat_and_use_all_their_width() {
        let drawn: Vec<u128> = (0..1_000).map(|_| random_bits()).collect();
        assert_eq!(drawn.iter().collect::<HashSet<_>>().len(), drawn.len());
        assert_eq!(drawn.iter().fold(0, |seen, bits| seen | bits), u128::MAX);
    }
}
