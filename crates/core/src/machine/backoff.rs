//! Errors in a row: how many, since when, and how long to wait now.

use std::time::Duration;

use super::Core;
use crate::{Boot, CoreEvent, ErrorKind, RETRY_MAX, RetryContext, Rng, Settings, StoreError};

/// A row of errors without an answer in between. Denials do not come here.
#[derive(Clone, Debug, Default)]
pub(super) struct Backoff {
    errors: u32,
    since: Option<Boot>,
    previous: Option<Duration>,
}

impl Backoff {
    /// One more error: when to try again, or `None` to give up.
    pub(super) fn another(
        &mut self,
        now: Boot,
        error: &StoreError,
        settings: &Settings,
        rng: &mut Rng,
    ) -> Option<Boot> {
        self.errors = self.errors.saturating_add(1);
        let since = *self.since.get_or_insert(now);
        let context = RetryContext {
            attempt: self.errors,
            elapsed: now.since(since),
            previous: self.previous,
            last_error: error,
        };
        let options = settings.options();
        // A pause of nothing would be a hot loop against a store that is already in trouble.
        let pause = options.strategy.next_delay(&context, rng)?.clamp(Duration::from_millis(1), RETRY_MAX);
        self.previous = Some(pause);
        let open = options.breaker.and_then(|breaker| breaker.open_until(self.errors, now));
        Some(open.map_or(now + pause, |open| open.max(now + pause)))
    }

    /// The store answered, or announced a change: the row is over.
    pub(super) fn over(&mut self) {
        *self = Backoff::default();
    }
}

impl Core {
    /// An error that trying again can mend: when to try, or `None` after giving up, which stops the machine.
    pub(super) fn back_off(&mut self, error: StoreError) -> Option<Boot> {
        let wake = self.backoff.another(self.now, &error, &self.settings, &mut self.rng);
        if wake.is_some() {
            self.tell(CoreEvent::Error(error));
            return wake;
        }
        let error = StoreError::new(
            ErrorKind::GaveUp,
            error.backend(),
            "the retry strategy gave up; start again when the store is back",
        )
        .caused_by(error);
        self.fail(error);
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{AtMost, Breaker, Fixed, Options};

    /// The pauses after three errors in a row at one instant.
    fn pauses(options: Options) -> [Option<Duration>; 3] {
        let (settings, mut rng) = (Settings::new(options).unwrap(), Rng::new(1));
        let error = StoreError::new(ErrorKind::Unavailable, "store", "away");
        let (mut backoff, now) = (Backoff::default(), Boot::from_nanos(7));
        let mut another = || Some(backoff.another(now, &error, &settings, &mut rng)?.since(now));
        [another(), another(), another()]
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_breaker_lengthens_the_pause_from_its_count_on() {
        let breaker = Some(Breaker { failures: 2, open_for: SECOND * 30 });
        let options = Options { strategy: Arc::new(Fixed(SECOND)), breaker, ..Options::default() };
        assert_eq!(pauses(options), [Some(SECOND), Some(SECOND * 30), Some(SECOND * 30)]);
    }

    #[test]
    fn a_strategy_gives_up_and_none_makes_a_hot_loop() {
        let strategy = Arc::new(AtMost { attempts: 2, then: Fixed(Duration::ZERO) });
        let shortest = Some(Duration::from_millis(1));
        let pauses = pauses(Options { strategy, ..Options::default() });
        assert_eq!((pauses[0], pauses[2]), (shortest, None));
    }

    #[test]
    fn an_answer_ends_the_row() {
        let mut backoff = Backoff { errors: 9, since: Some(Boot::default()), previous: Some(SECOND) };
        backoff.over();
        assert_eq!((backoff.errors, backoff.since, backoff.previous), (0, None, None));
    }
}
