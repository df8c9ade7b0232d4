//! An unfit candidate neither claims nor leads.
//!
//! Unfit is, where there is a health check, whoever has not passed it yet, or has failed it as often in a row as the settings allow.

use bellwether_core::Epoch;

use super::{BrokenInvariant, Verdict};

const NAME: &str = "health";

/// What the health check said of one candidate.
#[derive(Clone, Debug, Default)]
pub struct HealthInvariant {
    passed: bool,
    failures: u32,
}

impl HealthInvariant {
    /// The health check was run.
    pub fn told(&mut self, ok: bool) {
        self.passed |= ok;
        self.failures = if ok { 0 } else { self.failures + 1 };
    }

    /// Judges a claim that leaves; `threshold` is the candidate's setting.
    pub fn claims(&self, threshold: Option<u32>) -> Verdict {
        if self.is_unfit(threshold) { Err(BrokenInvariant::new(NAME, "claims while unfit")) } else { Ok(()) }
    }

    /// Judges a core that has handled what it was told.
    pub fn leads(&self, threshold: Option<u32>, leads: Option<Epoch>) -> Verdict {
        match leads.filter(|_| self.is_unfit(threshold)) {
            Some(epoch) => Err(BrokenInvariant::new(NAME, format!("leads under {epoch:?} while unfit"))),
            None => Ok(()),
        }
    }

    fn is_unfit(&self, threshold: Option<u32>) -> bool {
        threshold.is_some_and(|threshold| !self.passed || self.failures >= threshold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unfit_candidate_that_claims_or_leads_is_found() {
        let (two, led) = (Some(2), Epoch::new(1));
        let mut health = HealthInvariant::default();
        assert!(health.claims(two).is_err(), "nothing is known yet");
        health.told(true);
        health.told(false);
        assert_eq!((health.claims(two), health.leads(two, led)), (Ok(()), Ok(())));
        health.told(false);
        assert!(health.claims(two).is_err() && health.leads(two, led).is_err());
        assert_eq!((health.leads(two, None), health.leads(None, led)), (Ok(()), Ok(())));
        health.told(true);
        assert_eq!(health.claims(two), Ok(()));
    }
}
