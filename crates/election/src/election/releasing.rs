//! Releasing the leadership: by stepping down or by stopping. `stop_signal` stops by a signal of the caller's.

use std::time::Duration;

use bellwether_core::CandidateId;

use super::Election;
use crate::Error;
use crate::driver::DriverCommand;

impl Election {
    /// Releases the leadership and stays out of the election for a while, so that somebody else can take over. Returns when the
    /// release is written or the leadership has expired.
    pub async fn step_down(&self) -> Result<(), Error> {
        self.step_down_with(None).await
    }

    /// Like [`step_down`](Self::step_down), and reserves the lead for `to` for a moment.
    ///
    /// # Errors
    /// [`Error::AlreadyLeader`] when `to` is this candidate, and it leads; then nothing has changed.
    pub async fn step_down_to(&self, to: CandidateId) -> Result<(), Error> {
        if to == *self.id() && self.is_leader() {
            return Err(Error::AlreadyLeader);
        }
        self.step_down_with(Some(to)).await
    }

    /// Like [`step_down`](Self::step_down). After `limit` it drops the demotion hook and returns [`Error::TimedOut`].
    pub async fn step_down_within(&self, limit: Duration) -> Result<(), Error> {
        self.within(limit, self.step_down()).await
    }

    /// Releases the leadership and leaves the election. Returns when everything has ended: the work, the hook, the release, and
    /// every call to the store. Does nothing if this candidate does not compete.
    pub async fn stop(&self) -> Result<(), Error> {
        if !self.0.shared.snapshot.borrow().running {
            return Ok(());
        }
        self.ask(DriverCommand::Stop).await
    }

    /// Like [`stop`](Self::stop). After `limit` it drops the demotion hook and returns [`Error::TimedOut`].
    pub async fn stop_within(&self, limit: Duration) -> Result<(), Error> {
        self.within(limit, self.stop()).await
    }

    async fn step_down_with(&self, to: Option<CandidateId>) -> Result<(), Error> {
        self.ask(|reply| DriverCommand::StepDown(to, reply)).await
    }

    /// On time-out, cuts the demotion hook off, which lets the release be written. Work that does not yield cannot
    /// be cut off: then nothing is released, and the record runs out.
    async fn within(
        &self,
        limit: Duration,
        asked: impl Future<Output = Result<(), Error>>,
    ) -> Result<(), Error> {
        let mut asked = std::pin::pin!(asked);
        if let Ok(done) = tokio::time::timeout(limit, &mut asked).await {
            return done;
        }
        self.0.tell(DriverCommand::Hurry)?;
        let last = self.0.recipe.settings.timing().call_timeout();
        tokio::time::timeout(last, asked).await.map_err(|_| Error::TimedOut)?
    }
}
