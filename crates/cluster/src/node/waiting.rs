//! What a node waits for until it is ready, and telling people of it now and then.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::shared::Shared;

/// A node that is ready sooner says nothing of what it waited for.
const QUIET: Duration = Duration::from_secs(2);
/// Between two looks at what it waits for; changes in between are not told.
const INTERVAL: Duration = Duration::from_secs(5);
/// Looks after which the same is told again: twice a minute.
const SAME_LOOKS: u32 = 6;

/// Why the last attempt led to nothing.
pub(super) struct Waiting(Mutex<String>);

impl Default for Waiting {
    fn default() -> Waiting {
        Waiting(Mutex::new("nothing was tried yet".to_owned()))
    }
}

impl Waiting {
    /// From now on, this is what the node waits for.
    pub(super) fn now_for(&self, what: impl Into<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = what.into();
    }

    pub(super) fn sentence(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Tells it, at most once in [`INTERVAL`], until it is dropped.
pub(super) async fn tell(shared: &Shared) {
    tokio::time::sleep(QUIET).await;
    let (mut told, mut looks) = (String::new(), 0);
    loop {
        let sentence = shared.waiting.sentence();
        looks += 1;
        if sentence != told || looks >= SAME_LOOKS {
            tracing::info!("{}: not ready yet: {sentence}", shared.name());
            (told, looks) = (sentence, 0);
        }
        tokio::time::sleep(INTERVAL).await;
    }
}
