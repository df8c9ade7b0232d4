//! Pausing an election: until the pause ends, nobody is elected.
//!
//! A pause only ever keeps candidates from claiming. It ends no leadership, extends none, and shortens no wait. It carries a span and no
//! instant, because no party's clock is compared with another's: whoever sees it counts the span on its own boot-time clock, from
//! when it first saw it. A leader that renews writes the span that is left, so that it shrinks for those who come later.

use std::time::Duration;

use crate::{BadSettings, Boot, CandidateId, Wall, duration};

/// The longest pause. Whoever may write to the store may pause, so what anybody writes beyond this counts as this much.
pub const PAUSE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// A pause as it is asked for, and as a record holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    span: Duration,
    /// Who paused, for readers.
    pub by: Option<CandidateId>,
    /// When, by the wall clock of who paused: for readers, and to tell one pause from the next. Compared with no clock.
    pub at: Option<Wall>,
}

impl Pause {
    /// A pause of this span, at most [`PAUSE_MAX`]; `None` for one that is over before it begins.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use bellwether_core::{PAUSE_MAX, Pause};
    /// assert_eq!(Pause::new(Duration::MAX, None, None).unwrap().span(), PAUSE_MAX);
    /// assert_eq!(Pause::new(Duration::ZERO, None, None), None);
    /// ```
    pub fn new(span: Duration, by: Option<CandidateId>, at: Option<Wall>) -> Option<Pause> {
        // As finely as records tell the time: a pause that is read back is the same.
        let at = at.map(|at| Wall::from_unix_nanos(at.as_unix_nanos().div_euclid(1_000) * 1_000));
        (!span.is_zero()).then(|| Pause { span: span.min(PAUSE_MAX), by, at })
    }

    /// As [`new`](Pause::new), for a span that somebody chose.
    ///
    /// # Errors
    /// It is longer than [`PAUSE_MAX`], or zero.
    pub fn chosen(span: Duration, by: Option<CandidateId>, at: Option<Wall>) -> Result<Pause, BadSettings> {
        if span > PAUSE_MAX {
            let most = duration::print(PAUSE_MAX);
            let sentence =
                format!("a pause lasts {most} at most: pause again before it ends, or stop the candidates");
            return Err(BadSettings::new(sentence));
        }
        Pause::new(span, by, at).ok_or_else(|| BadSettings::new("a pause has to last for longer than 0s"))
    }

    /// How long it lasts from when it is first seen.
    pub fn span(&self) -> Duration {
        self.span
    }

    /// What is left of this pause at `now` if it ends at `until`, in whole milliseconds, rounded up; `None` once it is over.
    #[must_use]
    pub fn left(&self, until: Boot, now: Boot) -> Option<Pause> {
        let millis = until.since(now).as_nanos().div_ceil(1_000_000);
        let left = Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX));
        Pause::new(left, self.by.clone(), self.at)
    }

    /// Whether this is the same pause, with another span left. One that tells no time of its own is always another.
    pub fn is_same(&self, other: &Pause) -> bool {
        self.is(other.at, other.by.as_ref())
    }

    fn is(&self, at: Option<Wall>, by: Option<&CandidateId>) -> bool {
        self.at.is_some() && self.at == at && self.by.as_ref() == by
    }

    /// This pause as it is seen at `now`, after `before` was seen. The same pause seen again never ends later than before.
    pub fn seen(&self, now: Boot, before: Option<&Paused>) -> Paused {
        let until = now + self.span;
        let until = before
            .filter(|before| self.is(before.at, before.by.as_ref()))
            .map_or(until, |before| until.min(before.until));
        Paused { until, left: until.since(now), by: self.by.clone(), at: self.at }
    }
}

/// A pause as an observer sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paused {
    /// Nobody is elected before then, on the observer's own clock.
    pub until: Boot,
    /// How long that was from when it was looked at.
    pub left: Duration,
    /// Who paused, where that is known.
    pub by: Option<CandidateId>,
    /// When, by the wall clock of who paused: for readers.
    pub at: Option<Wall>,
}

impl Paused {
    /// As it is at `now`; `None` once it is over.
    pub fn at(&self, now: Boot) -> Option<Paused> {
        let left = self.until.since(now);
        (!left.is_zero()).then(|| Paused { left, ..self.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn at(seconds: u64) -> Boot {
        Boot::from_nanos(seconds * 1_000_000_000)
    }

    fn pause(span: Duration, wall: Option<i64>) -> Pause {
        Pause::new(span, None, wall.map(|wall| Wall::from_unix_nanos(wall * 1_000))).unwrap()
    }

    #[test]
    fn a_pause_seen_again_never_ends_later_and_another_one_counts_from_when_it_is_seen() {
        let first = pause(MINUTE, Some(1)).seen(at(100), None);
        assert_eq!(first.until, at(160));
        let late = pause(MINUTE, Some(1)).seen(at(110), Some(&first));
        assert_eq!(late.until, at(160), "the record was written again with the whole span");
        let less = pause(MINUTE / 2, Some(1)).seen(at(110), Some(&first));
        assert_eq!(less.until, at(140));
        assert_eq!(pause(MINUTE, Some(2)).seen(at(110), Some(&first)).until, at(170));
        let nameless = pause(MINUTE, None).seen(at(100), None);
        assert_eq!(pause(MINUTE, None).seen(at(110), Some(&nameless)).until, at(170));
    }

    #[test]
    fn a_pause_that_somebody_chose_is_refused_beyond_the_bounds() {
        let chosen = |span| Pause::chosen(span, None, None).map_err(|error| error.to_string());
        assert_eq!(chosen(PAUSE_MAX).unwrap().span(), PAUSE_MAX);
        assert!(chosen(PAUSE_MAX + Duration::from_nanos(1)).unwrap_err().contains("24h0m0s at most"));
        assert!(chosen(Duration::ZERO).unwrap_err().contains("longer than 0s"));
    }

    #[test]
    fn what_is_left_shrinks_to_nothing_and_is_rounded_up() {
        let pause = pause(MINUTE, Some(1));
        assert_eq!(pause.left(at(160), at(130)).unwrap().span(), MINUTE / 2);
        let nearly = Boot::from_nanos(160 * 1_000_000_000 - 1);
        assert_eq!(pause.left(at(160), nearly).unwrap().span(), Duration::from_millis(1));
        assert_eq!((pause.left(at(160), at(160)), pause.left(at(160), at(999))), (None, None));
        assert_eq!(pause.left(Boot::FOREVER, at(1)).unwrap().span(), PAUSE_MAX);
    }
}
