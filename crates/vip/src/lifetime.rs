//! How long the kernel keeps an address that nobody refreshes.
//!
//! The kernel counts whole seconds and looks at lifetimes with a slack of up to a quarter of one. So the lifetime is the whole seconds that are
//! left until the deadline, less one: the address is gone between two seconds and three quarters of a second before the deadline.
//!
//! The kernel's count stands still while the machine is suspended, which the deadline does not. After a suspend, the guard's timer, which
//! does count it, is due at once.

use crate::VipError;
use bellwether_core::Boot;
use std::time::Duration;

/// The shortest ttl of a leadership with an address. With the usual margin and renewal interval it leaves the address a lifetime of two
/// renewal intervals, so one renewal may fail without the address going away.
pub const TTL_MIN: Duration = Duration::from_secs(6);

/// The lifetime of an address under a leadership with this deadline, in seconds; `None` when too little is left to set it at all.
///
/// ```
/// use bellwether_core::Boot;
/// use bellwether_vip::lifetime;
///
/// let second = |n: u64| Boot::from_nanos(n * 1_000_000_000);
/// assert_eq!(lifetime(second(0), second(13)), Some(12));
/// assert_eq!(lifetime(second(12), second(13)), None);
/// ```
pub fn lifetime(now: Boot, deadline: Boot) -> Option<u32> {
    let seconds = deadline.since(now).as_secs().checked_sub(1)?;
    // All ones means "for ever" to the kernel.
    (seconds > 0).then(|| u32::try_from(seconds).unwrap_or(u32::MAX).min(u32::MAX - 1))
}

/// Whether an address can be held under leases of this ttl.
///
/// # Errors
/// [`VipError::TtlTooShort`], which says what to do.
pub fn check_ttl(ttl: Duration) -> Result<(), VipError> {
    if ttl < TTL_MIN { Err(VipError::TtlTooShort(ttl)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINE: Boot = Boot::from_nanos(100_000_000_000);

    #[test]
    fn it_ends_at_least_a_second_before_the_deadline() {
        for left_ms in (0..20_000).step_by(7) {
            let left = Duration::from_millis(left_ms);
            let Some(seconds) = lifetime(DEADLINE - left, DEADLINE) else {
                assert!(left < Duration::from_secs(2), "{left:?}");
                continue;
            };
            let spare = left - Duration::from_secs(seconds.into());
            assert!((Duration::from_secs(1)..Duration::from_secs(2)).contains(&spare), "{left:?}: {spare:?}");
        }
    }

    #[test]
    fn none_is_left_at_the_deadline_and_after_it() {
        assert_eq!(lifetime(DEADLINE, DEADLINE), None);
        assert_eq!(lifetime(DEADLINE + Duration::from_secs(9), DEADLINE), None);
    }

    #[test]
    fn it_is_never_for_ever() {
        assert_eq!(lifetime(Boot::from_nanos(0), Boot::FOREVER), Some(u32::MAX - 1));
    }

    #[test]
    fn short_leases_are_refused_with_what_to_do() {
        assert!(check_ttl(TTL_MIN).is_ok());
        let error = check_ttl(Duration::from_millis(5_999)).unwrap_err().to_string();
        assert!(error.contains("--ttl 6s"), "{error}");
    }
}
