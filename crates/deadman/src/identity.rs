//! What tells one start of a process from another.

use std::io;

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

    #[test]
    fn random_bits_do_not_repeat_and_use_all_their_width() {
        let drawn: Vec<u128> = (0..1_000).map(|_| random_bits()).collect();
        assert_eq!(drawn.iter().collect::<HashSet<_>>().len(), drawn.len());
        assert_eq!(drawn.iter().fold(0, |seen, bits| seen | bits), u128::MAX);
    }
}
