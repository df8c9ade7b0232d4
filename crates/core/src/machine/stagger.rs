//! Staggering claims, for elections that many followers want to win at once.
//!
//! Every follower hears of a free record at the same moment. If all of them claim at once, one write wins and the store refuses all
//! others. So a follower that has lost such a race waits before its next claim, for a random share of its window. If it hears
//! meanwhile that somebody else has taken the record, it makes no claim at all.
//!
//! The window adapts to how many compete: it is zero at first, doubles with each race lost, and halves with each race won. One
//! follower never loses a race, and never waits.

use std::time::Duration;

use super::Core;
use crate::{Epoch, Rng, Seen};

/// The window after the first race lost: about as long as the whole handover on a fast store, so that it costs no more than that.
const FIRST: Duration = Duration::from_millis(2);

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stagger {
    on: bool,
    window: Duration,
    /// The last claim was made on a record that was free for all, with this as the highest epoch known.
    race: Option<Epoch>,
}

impl Stagger {
    /// The claim was denied. The race is lost if a leadership has begun since.
    fn denied(&mut self, seen: &Seen, longest: Duration) {
        let lost = self.race.take().is_some_and(|known| seen.leader().is_some() && seen.epoch > Some(known));
        if lost {
            self.window = (self.window * 2).max(FIRST).min(longest);
        }
    }

    /// The lead was granted.
    pub(super) fn won(&mut self) {
        self.race = None;
        let half = self.window / 2;
        self.window = if half < FIRST { Duration::ZERO } else { half };
    }

    fn draw(self, rng: &mut Rng) -> Duration {
        if self.on && !self.window.is_zero() {
            rng.between(Duration::ZERO, self.window)
        } else {
            Duration::ZERO
        }
    }
}

impl Core {
    /// From now on, a follower that has lost a race for a free record waits for a moment before its next claim on one, at most
    /// [`stagger_max`](crate::Timing::stagger_max). For stores on which each claim is a write that can lose.
    pub fn stagger_claims(&mut self) {
        self.stagger.on = true;
    }

    /// A claim leaves.
    pub(super) fn enter_race(&mut self) {
        self.stagger.race = self.view.is_free(self.now).then_some(self.view.highest());
    }

    /// The claim was denied.
    pub(super) fn judge_race(&mut self, seen: &Seen) {
        self.stagger.denied(seen, self.settings.timing().stagger_max());
    }

    /// How long this candidate lets others go first, once the record is free for all.
    pub(super) fn stagger(&mut self) -> Duration {
        self.stagger.draw(&mut self.rng)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CandidateId, Holder, Proof};

    const LONGEST: Duration = Duration::from_millis(50);

    fn e(number: u64) -> Epoch {
        Epoch::new(number).unwrap()
    }

    fn led_under(epoch: Option<Epoch>) -> Seen {
        let holder = Holder { id: CandidateId::new("b").unwrap(), incarnation: None };
        Seen { holder: Some(holder), epoch, proof: Proof::Record, ..Seen::nothing() }
    }

    fn lose(stagger: &mut Stagger, longest: Duration) {
        stagger.race = Some(e(4));
        stagger.denied(&led_under(Some(e(5))), longest);
    }

    fn windows(stagger: &mut Stagger, step: impl Fn(&mut Stagger)) -> Vec<u128> {
        let next = |_| {
            step(stagger);
            stagger.window.as_micros()
        };
        (0..7).map(next).collect()
    }

    #[test]
    fn the_window_doubles_with_each_race_lost_up_to_the_longest_and_halves_with_each_won_down_to_nothing() {
        let mut stagger = Stagger::default();
        let lost = windows(&mut stagger, |stagger| lose(stagger, LONGEST));
        assert_eq!(lost, [2_000, 4_000, 8_000, 16_000, 32_000, 50_000, 50_000]);
        let won = windows(&mut stagger, Stagger::won);
        assert_eq!(won, [25_000, 12_500, 6_250, 3_125, 0, 0, 0]);
    }

    #[test]
    fn a_longest_wait_below_the_first_window_counts() {
        let mut stagger = Stagger::default();
        lose(&mut stagger, FIRST / 4);
        assert_eq!(stagger.window, FIRST / 4);
    }

    #[test]
    fn a_race_is_lost_only_to_a_leadership_that_began_since_and_only_once() {
        let released = Seen { holder: None, proof: Proof::Released, ..led_under(Some(e(5))) };
        for (race, seen) in [
            (None, led_under(Some(e(5)))),
            (Some(e(5)), led_under(Some(e(5)))),
            (Some(e(4)), led_under(None)),
            (Some(e(4)), released),
        ] {
            let mut stagger = Stagger { race, ..Stagger::default() };
            stagger.denied(&seen, LONGEST);
            assert!(stagger.window.is_zero(), "{race:?} {seen:?}");
        }
        let mut stagger = Stagger::default();
        lose(&mut stagger, LONGEST);
        stagger.denied(&led_under(Some(e(6))), LONGEST);
        assert_eq!(stagger.window, FIRST);
    }

    #[test]
    fn a_wait_is_a_random_share_of_the_window_and_none_where_nothing_was_lost_or_it_is_off() {
        let rng = &mut Rng::new(1);
        let mut draws = |on, window| {
            let stagger = Stagger { on, window, race: None };
            (0..1_000).map(|_| stagger.draw(rng)).collect::<Vec<_>>()
        };
        let waits = draws(true, LONGEST);
        let (least, most) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
        assert!(
            *least < LONGEST / 50 && *most > LONGEST * 49 / 50 && *most <= LONGEST,
            "{least:?} to {most:?}"
        );
        for never in [draws(true, Duration::ZERO), draws(false, LONGEST)] {
            assert!(never.iter().all(Duration::is_zero));
        }
    }
}
