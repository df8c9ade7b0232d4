//! Promotion and demotion alternate, in what the driver is told to do and in what the outside is told.
//!
//! And an epoch whose work has been told to stop is over: it is never believed in again.

use bellwether_core::{CoreEvent, Epoch};

use super::{BrokenInvariant, Verdict};

const NAME: &str = "alternation";

/// What one candidate was told, and has told.
#[derive(Clone, Debug, Default)]
pub struct Alternation {
    leads: Option<Epoch>,
    stopped: Option<Epoch>,
    /// The work of `stopped` has not ended.
    ending: bool,
    announced: Option<Epoch>,
    suspended: Option<Epoch>,
}

impl Alternation {
    /// Told to believe.
    pub fn believes(&mut self, epoch: Epoch) -> Verdict {
        let wrong = |said: String| Err(BrokenInvariant::new(NAME, said));
        if self.leads == Some(epoch) {
            return Ok(());
        }
        if let Some(before) = self.leads {
            return wrong(format!("promoted to {epoch:?} while leading under {before:?}"));
        }
        if self.stopped.is_some_and(|stopped| stopped >= epoch) {
            return wrong(format!("{epoch:?} is believed in again after its work was told to stop"));
        }
        if self.ending {
            return wrong(format!("promoted to {epoch:?} while the work of {:?} goes on", self.stopped));
        }
        self.leads = Some(epoch);
        Ok(())
    }

    /// Told to end the work. May be said twice.
    pub fn ends(&mut self, epoch: Epoch) -> Verdict {
        if self.leads == Some(epoch) {
            self.leads = None;
            self.stopped = Some(epoch);
            self.ending = true;
        } else if self.stopped != Some(epoch) {
            return Err(BrokenInvariant::new(
                NAME,
                format!("told to end the work of {epoch:?}, which is not led"),
            ));
        }
        Ok(())
    }

    /// The work has ended.
    pub fn ended(&mut self, epoch: Epoch) {
        if self.stopped == Some(epoch) {
            self.ending = false;
        }
    }

    /// The outside is told.
    pub fn told(&mut self, what: &CoreEvent) -> Verdict {
        let fine = match what {
            CoreEvent::Acquired { epoch, .. } => {
                let fine = self.announced.is_none() && self.suspended.is_none();
                self.announced = Some(*epoch);
                fine
            }
            CoreEvent::Resumed { epoch, .. } => {
                let fine = self.announced.is_none() && self.suspended.take().is_some();
                self.announced = Some(*epoch);
                fine
            }
            CoreEvent::Suspended { epoch, .. } => {
                let fine = self.announced.take() == Some(*epoch);
                self.suspended = Some(*epoch);
                fine
            }
            CoreEvent::Lost { epoch, .. } | CoreEvent::Released { epoch, .. } => {
                self.announced.take().or_else(|| self.suspended.take()) == Some(*epoch)
            }
            // Who stops while suspended hears no `lost`, by seed 004's table: `stopped` ends the suspension.
            CoreEvent::Stopped => {
                self.suspended = None;
                self.announced.is_none()
            }
            _ => true,
        };
        if fine { Ok(()) } else { Err(BrokenInvariant::new(NAME, format!("out of turn: {what:?}"))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bellwether_core::{Boot, Reason};

    fn epoch(number: u64) -> Epoch {
        Epoch::new(number).unwrap()
    }

    #[test]
    fn an_epoch_that_comes_back_is_found() {
        let mut one = Alternation::default();
        one.believes(epoch(1)).unwrap();
        one.believes(epoch(1)).unwrap();
        one.ends(epoch(1)).unwrap();
        one.ends(epoch(1)).unwrap();
        assert!(one.believes(epoch(1)).is_err());
        assert!(one.believes(epoch(2)).is_err(), "the work of 1 has not ended");
        one.ended(epoch(1));
        one.believes(epoch(2)).unwrap();
        assert!(one.believes(epoch(3)).is_err());
        assert!(one.ends(epoch(7)).is_err());
    }

    #[test]
    fn events_out_of_turn_are_found() {
        let deadline = Boot::from_nanos(1);
        let (epoch, reason) = (epoch(1), Reason::Deadline);
        let acquired = CoreEvent::Acquired { epoch, deadline };
        let lost = CoreEvent::Lost { epoch, reason, deadline, released: false };
        let suspended = CoreEvent::Suspended { epoch, reason, deadline };
        let mut one = Alternation::default();
        one.told(&acquired).unwrap();
        one.told(&suspended).unwrap();
        one.told(&lost).unwrap();
        assert!(one.told(&lost).is_err());
        one.told(&acquired).unwrap();
        assert!(one.told(&acquired).is_err());
        assert!(one.told(&CoreEvent::Stopped).is_err(), "still leading");
        one.told(&suspended).unwrap();
        one.told(&CoreEvent::Stopped).unwrap();
        one.told(&acquired).unwrap();
    }
}
