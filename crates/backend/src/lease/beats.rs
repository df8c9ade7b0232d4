//! The beats that one candidate has written, or may have: how it tells its own record from that of a clone.
//!
//! A virtual machine that is restored from one snapshot twice gives two processes with one incarnation and one epoch. Each believes
//! that the record is its own, and what both know cannot tell them apart; only what they do afterwards can. So a beat is
//! more than a count:
//!
//! ```text
//!   count, one more than in the record that is replaced     nanoseconds of the boot-time clock, as far as they fit
//!   ────────────────────── 44 bits ───────────────────────┼─────────────────────── 20 bits ───────────────────────
//! ```
//!
//! Two clones that write at the same version write different beats. One of the writes wins. Whoever lost reads a beat that it
//! never wrote, and knows that it is not alone.
//!
//! Assumes that two clones do not write at the same nanosecond of their clocks. Should they do so once, the loser goes on upon the
//! winner's record, and the winner loses at its next renewal: still only one goes on.

use std::collections::VecDeque;

use bellwether_core::Boot;

/// Leaves room for 2^33 renewals before a beat is more than every JSON reader can represent.
const INSTANT_BITS: u32 = 20;

/// How many of the latest beats are remembered. A write whose outcome is unknown may land late, and a store may fall back to an
/// earlier beat: within these, both are recognised. Beyond them the record counts as a clone's, which is the safe side.
const REMEMBERED_MAX: usize = 64;

/// What a candidate has tried to write, latest last. Rises also when the store falls back: a repeated beat is no sign of life.
#[derive(Clone, Debug, Default)]
pub(super) struct Beats(VecDeque<u64>);

impl Beats {
    /// The beat for a write that replaces one with beat `before`. Counts as written from now on, because nobody knows when it lands.
    pub(super) fn next(&mut self, now: Boot, before: u64) -> u64 {
        let highest = self.0.back().map_or(before, |last| before.max(*last));
        let count = (highest >> INSTANT_BITS) + 1;
        let beat = (count << INSTANT_BITS) | (now.as_nanos() & ((1 << INSTANT_BITS) - 1));
        if self.0.len() == REMEMBERED_MAX {
            self.0.pop_front();
        }
        self.0.push_back(beat);
        beat
    }

    pub(super) fn wrote(&self, beat: u64) -> bool {
        self.0.contains(&beat)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beats_rise_and_differ_between_clones_that_write_at_different_instants() {
        let mut one = Beats::default();
        let first = one.next(Boot::from_nanos(5), 7);
        assert!(first > 7, "above one that was only counted");
        let mut two = one.clone();
        let (a, b) = (one.next(Boot::from_nanos(6), first), two.next(Boot::from_nanos(7), first));
        assert!(a > first && b > first && a != b);
        assert!(one.wrote(a) && one.wrote(first) && !one.wrote(b));
        // The store fell back: still above everything written before, whatever part of the instant fits.
        assert!(one.next(Boot::from_nanos(1 << INSTANT_BITS), first) > a);
    }

    #[test]
    fn a_beat_is_the_next_count_and_the_end_of_the_instant() {
        let mut beats = Beats::default();
        let first = beats.next(Boot::from_nanos((5 << INSTANT_BITS) + 3), 0);
        assert_eq!(first, (1 << INSTANT_BITS) + 3);
        assert_eq!(beats.next(Boot::from_nanos(4), first), (2 << INSTANT_BITS) + 4);
    }

    #[test]
    fn what_is_remembered_is_bounded_and_no_number_in_a_record_is_too_large() {
        let mut beats = Beats::default();
        let first = beats.next(Boot::from_nanos(0), u64::MAX);
        for nanos in 0..1_000 {
            beats.next(Boot::from_nanos(nanos), 0);
        }
        assert!(beats.0.len() == REMEMBERED_MAX && !beats.wrote(first));
    }
}
