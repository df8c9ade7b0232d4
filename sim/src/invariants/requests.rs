//! A request is obeyed, and none is taken out of the record unheard.
//!
//! A leadership that was asked to step down, or to make room for a higher priority, lets go as soon as its core has heard of it, and
//! one that was asked before it began lets go as soon as it begins. One that was asked to step down later has done so when that time has
//! passed on its own clock. A renewal that takes the request out of the record
//! is one whose process has told its core.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_core::{Ask, Boot, Epoch};

use super::{BrokenInvariant, Verdict};

const NAME: &str = "requests";

/// What was asked of one candidate.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    /// By when each leadership has to be over.
    heard: BTreeMap<Epoch, Boot>,
    taken_out: BTreeSet<Epoch>,
}

/// Whether a leader of that priority has to obey.
pub fn binds(what: &Ask, leader: i32) -> bool {
    match what {
        Ask::StepDown { .. } | Ask::StepDownLater { .. } => true,
        Ask::Preempt { priority, .. } => *priority > leader,
    }
}

/// By when a leadership has to be over that hears of this now. One that has not begun counts a later end from its own beginning.
pub fn over_by(what: &Ask, now: Boot, leads: bool) -> Boot {
    match what {
        Ask::StepDown { .. } | Ask::Preempt { .. } => now,
        Ask::StepDownLater { after, .. } if leads => now + *after,
        Ask::StepDownLater { .. } => Boot::FOREVER,
    }
}

impl Requests {
    /// The core is told of a request that binds it. The last one counts, unless an earlier one is due.
    pub fn heard(&mut self, epoch: Epoch, now: Boot, over_by: Boot) {
        let due = self.heard.entry(epoch).or_insert(over_by);
        if *due > now {
            *due = over_by;
        }
    }

    /// The store took a renewal that takes a binding request out of the record.
    pub fn taken_out(&mut self, epoch: Epoch) {
        self.taken_out.insert(epoch);
    }

    /// Judges a core that has handled everything that it was told, and that the time has brought.
    pub fn check(&self, leads: Option<Epoch>, now: Boot) -> Verdict {
        match leads.filter(|epoch| self.heard.get(epoch).is_some_and(|due| *due <= now)) {
            Some(epoch) => {
                Err(BrokenInvariant::new(NAME, format!("leads on under {epoch:?}, which was asked to end")))
            }
            None => Ok(()),
        }
    }

    /// Judges a process that has read all its news and answers.
    pub fn check_heard(&self, leads: Option<Epoch>) -> Verdict {
        let unheard = |epoch: &Epoch| self.taken_out.contains(epoch) && !self.heard.contains_key(epoch);
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
    use std::time::Duration;

    #[test]
    fn a_request_that_is_not_obeyed_and_one_that_is_not_heard_are_found() {
        let (one, two) = (Epoch::new(1), Epoch::new(2));
        let now = Boot::from_nanos(1_000);
        let mut requests = Requests::default();
        requests.heard(one.unwrap(), now, now);
        assert!(requests.check(one, now).is_err());
        assert_eq!((requests.check(two, now), requests.check(None, now)), (Ok(()), Ok(())));
        requests.taken_out(one.unwrap());
        requests.taken_out(two.unwrap());
        assert!(requests.check_heard(two).is_err());
        assert_eq!((requests.check_heard(one), requests.check_heard(None)), (Ok(()), Ok(())));
    }

    #[test]
    fn a_request_for_later_binds_from_then_on_and_the_last_one_counts() {
        let (one, now, second) = (Epoch::new(1).unwrap(), Boot::from_nanos(1_000), Duration::from_secs(1));
        let later = |after| Ask::StepDownLater { to: None, after };
        let mut requests = Requests::default();
        requests.heard(one, now, over_by(&later(second), now, true));
        assert_eq!(requests.check(Some(one), now + second / 2), Ok(()));
        assert!(requests.check(Some(one), now + second).is_err());
        requests.heard(one, now, over_by(&later(2 * second), now, true));
        assert_eq!(requests.check(Some(one), now + second), Ok(()));
        requests.heard(one, now, over_by(&Ask::StepDown { to: None }, now, true));
        requests.heard(one, now, over_by(&later(second), now, true));
        assert!(requests.check(Some(one), now).is_err(), "what is due is not put off");
        assert_eq!(over_by(&later(second), now, false), Boot::FOREVER, "it has not begun");
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
