//! Reading the record back while leading.

use std::time::Duration;

use super::Election;
use crate::Error;
use crate::driver::DriverCommand;

impl Election {
    /// Reads the record back: true if it is still of this leadership. If it is not, the leadership is over.
    ///
    /// # Errors
    /// Not leading, or the store could not be asked; then nothing has changed.
    pub async fn validate(&self) -> Result<bool, Error> {
        let limit = self.0.recipe.settings.timing().call_timeout();
        let answer = self.ask(DriverCommand::Validate);
        tokio::time::timeout(limit, answer).await.map_err(|_| Error::TimedOut)?
    }

    /// Like [`validate`](Self::validate), but content with a confirmation by the store that is at most `age` old.
    pub async fn validate_within(&self, age: Duration) -> Result<bool, Error> {
        let confirmed = self.0.shared.snapshot.borrow().status.last_success;
        let fresh = confirmed.is_some_and(|at| self.0.shared.time.boot().since(at) <= age);
        if fresh && self.is_leader() { Ok(true) } else { self.validate().await }
    }

    /// Validates, and steps down if it cannot be shown that the record is still ours.
    pub async fn validate_or_step_down(&self) -> Result<(), Error> {
        let epoch = self.leadership().map(|leadership| leadership.epoch()).ok_or(Error::NotLeader)?;
        match self.validate().await {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::EpochMismatch { ours: epoch, holder: self.leader() }),
            Err(error) => {
                // What could not be validated must not be led on; that it may be over already is no error here.
                let _ = self.step_down().await;
                Err(error)
            }
        }
    }
}
