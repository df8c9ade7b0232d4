//! When neighbours are told who has the address.
//!
//! A neighbour that misses the news sends to the old leader until its cache entry ages. So the first announcement goes out as soon as the
//! address is set and is repeated, since frames get lost while switches learn; later ones are for neighbours that were cut off meanwhile.

use bellwether_core::Boot;
use std::time::Duration;

/// When the first announcements are due, counted from the moment at which the address was set.
pub const FIRST: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_millis(100),
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(5),
];

/// The time between announcements after the first ones: slow enough to cost nothing.
pub const REFRESH: Duration = Duration::from_secs(30);

/// When announcement number `sent` (the first is 0) of an address is due that was set at `since`.
pub fn due(since: Boot, sent: u32) -> Boot {
    let sent = sent as usize;
    match FIRST.get(sent) {
        Some(after) => since + *after,
        None => {
            let last = FIRST[FIRST.len() - 1];
            let more = u32::try_from(sent - FIRST.len() + 1).unwrap_or(u32::MAX);
            since + last.saturating_add(REFRESH.saturating_mul(more))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_at_once_and_a_few_follow_quickly_then_slowly() {
        let since = Boot::from_nanos(7);
        let after = |sent| due(since, sent).since(since);
        assert_eq!(after(0), Duration::ZERO);
        for sent in 1..100 {
            assert!(after(sent) > after(sent - 1));
        }
        assert_eq!(after(5), Duration::from_secs(35));
        assert_eq!(after(6) - after(5), REFRESH);
    }

    #[test]
    fn the_last_number_is_far_away_and_no_overflow() {
        assert!(due(Boot::from_nanos(0), u32::MAX) > due(Boot::from_nanos(0), 1_000_000));
    }
}
