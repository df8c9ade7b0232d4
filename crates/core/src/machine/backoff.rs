//! Errors in a row: how many, since when, and how long to wait now.

use std::time::Duration;

use super::Core;
use crate::{Boot, CoreEvent, Error, ErrorKind, RETRY_MAX, RetryContext, Rng, Settings};

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
        error: &Error,
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
    pub(super) fn back_off(&mut self, error: Error) -> Option<Boot> {
        let wake = self.backoff.another(self.now, &error, &self.settings, &mut self.rng);
        if wake.is_some() {
            self.tell(CoreEvent::Error(error));
            return wake;
        }
        let error = Error::new(
            ErrorKind::GaveUp,
            error.backend(),
            "the retry strategy gave up; start again when the store is back",
        )
        .caused_by(error);
        self.fail(error);
        None
    }
}
