//! A request is obeyed, and none is taken out of the record unheard.
//!
//! A leadership that was asked to step down, or to make room for a higher priority, lets go as soon as its core has heard of it, and
//! one that was asked before it began lets go as soon as it begins. A renewal that takes the request out of the record
//! is one whose process has told its core.

use std::collections::BTreeSet;

use bellwether_core::{Ask, Epoch};

use super::{BrokenInvariant, Verdict};

const NAME: &str = "requests";

/// What was asked of one candidate.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    heard: BTreeSet<Epoch>,
    taken_out: BTreeSet<Epoch>,
}

/// Whether a leader of that priority has to obey.
pub fn binds(what: &Ask, leader: i32) -> bool {
    match what {
        Ask::StepDown { .. } => true,
        Ask::Preempt { priority, .. } => *priority > leader,
    }
}

impl Requests {
    /// The core is told of a request that binds it.
    pub fn heard(&mut self, epoch: Epoch) {
        self.heard.insert(epoch);
    }

    /// The store took a renewal that takes a binding request out of the record.
    pub fn taken_out(&mut self, epoch: Epoch) {
        self.taken_out.insert(epoch);
    }

    /// Judges a core that has handled everything that it was told.
    pub fn check(&self, leads: Option<Epoch>) -> Verdict {
        match leads.filter(|epoch| self.heard.contains(epoch)) {
            Some(epoch) => {
                Err(BrokenInvariant::new(NAME, format!("leads on under {epoch:?}, which was asked to end")))
            }
            None => Ok(()),
        }
    }

    /// Judges a process that has read all its news and answers.
    pub fn check_heard(&self, leads: Option<Epoch>) -> Verdict {
        let unheard = |epoch: &Epoch| self.taken_out.contains(epoch) && !self.heard.contains(epoch);
        match leads.filter(unheard) {
            Some(epoch) => {
                Err(BrokenInvariant::new(NAME, format!("{epoch:?} took a request out and never heard it")))
            }
            None => Ok(()),
        }
    }
}

/// Judges a leader that nothing has disturbed for long, by the highest priority among the followers that preempt.
pub fn check_priority(leader: i32, asker: Option<i32>) -> Verdict {
    match asker.filter(|asker| *asker > leader) {
        Some(asker) => Err(BrokenInvariant::new(
            NAME,
            format!("priority {leader} leads on, and {asker} does not get its way"),
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bellwether_core::CandidateId;

    #[test]
    fn a_request_that_is_not_obeyed_and_one_that_is_not_heard_are_found() {
        let (one, two) = (Epoch::new(1), Epoch::new(2));
        let mut requests = Requests::default();
        requests.heard(one.unwrap());
        assert!(requests.check(one).is_err());
        assert_eq!((requests.check(two), requests.check(None)), (Ok(()), Ok(())));
        requests.taken_out(one.unwrap());
        requests.taken_out(two.unwrap());
        assert!(requests.check_heard(two).is_err());
        assert_eq!((requests.check_heard(one), requests.check_heard(None)), (Ok(()), Ok(())));
    }

    #[test]
    fn only_a_higher_priority_binds() {
        let by = CandidateId::new("b").unwrap();
        assert!(binds(&Ask::StepDown { to: None }, 9));
        assert!(binds(&Ask::Preempt { by: by.clone(), priority: 2 }, 1));
        assert!(!binds(&Ask::Preempt { by, priority: 1 }, 1));
        assert!(check_priority(1, Some(2)).is_err());
        assert_eq!((check_priority(1, Some(1)), check_priority(1, None)), (Ok(()), Ok(())));
    }
}
