//! What a candidate is measured by, and what that tells of its renewals.

#[cfg(feature = "metrics")]
use std::sync::Arc;

use super::Election;
use crate::observer::Observer;

impl Election {
    /// What watches a start of this candidate, if anything does.
    pub(super) fn observer(&self) -> Option<Box<Observer>> {
        #[cfg(feature = "metrics")]
        return self.0.recipe.metrics.as_ref().map(|metrics| {
            let backend = self.0.store.backend().name();
            let measured = metrics.measure(self.name(), self.id(), backend, &self.0.shared);
            *bellwether_backend::lock(&self.0.shared.measured) = Arc::downgrade(&measured);
            Box::new(Observer::new(measured))
        });
        #[cfg(not(feature = "metrics"))]
        None
    }

    /// The last renewals, oldest first, where they are measured.
    #[cfg(feature = "metrics")]
    pub(crate) fn renewals(&self) -> Option<Vec<crate::observer::Renewal>> {
        let measured = bellwether_backend::lock(&self.0.shared.measured).upgrade();
        measured.map(|measured| measured.renewals.kept())
    }
}
