//! Which fault ended which leadership.

use std::time::Duration;

use bellwether_audit::Leadership;

use super::Hit;
use crate::Kind;

/// One leadership after another.
pub(super) struct Change {
    /// The last fault that was done to the earlier leader while it led, if there was one.
    pub(super) after: Option<Kind>,
    /// How long nobody led; `None` where the end is not known, or was not before the next begin.
    pub(super) gap: Option<Duration>,
}

/// Every change between leaderships in the order of their begins.
pub(super) fn changes(leaderships: &[Leadership], hits: &[Hit]) -> Vec<Change> {
    leaderships.windows(2).map(|pair| change(&pair[0], &pair[1], hits)).collect()
}

fn change(before: &Leadership, next: &Leadership, hits: &[Hit]) -> Change {
    let is_it = |hit: &&Hit| {
        hit.incarnation.as_ref() == Some(&before.owner.incarnation)
            && hit.at >= before.from
            && hit.at <= next.from
    };
    let after = hits.iter().rev().find(is_it).map(|hit| hit.kind);
    let is_known = before.until.is_exact() && next.from >= before.until.at_most;
    Change { after, gap: is_known.then(|| next.from.since(before.until.at_most)) }
}

#[cfg(test)]
mod tests {
    use bellwether_audit::{Owner, Until};
    use bellwether_core::Boot;

    use super::*;

    fn led(who: &str, from: u64, until: u64) -> Leadership {
        let owner = Owner { id: who.into(), incarnation: who.into(), boot_id: String::new() };
        Leadership {
            election: "e".into(),
            owner,
            epoch: Some(from),
            from: Boot::from_nanos(from),
            until: Until::exactly(Boot::from_nanos(until)),
            deadline: Boot::from_nanos(until),
            is_released: false,
        }
    }

    fn hit(kind: Kind, who: &str, at: u64) -> Hit {
        Hit { kind, incarnation: Some(who.into()), at: Boot::from_nanos(at) }
    }

    #[test]
    fn a_change_comes_after_the_last_fault_of_the_leader_that_ended() {
        let all = [led("a", 10, 40), led("b", 45, 60), led("a", 61, 90)];
        let hits = [hit(Kind::Delay, "a", 20), hit(Kind::Kill, "a", 35), hit(Kind::Stop, "a", 50)];
        let found = changes(&all, &hits);
        let seen: Vec<_> = found.iter().map(|one| (one.after, one.gap.map(|gap| gap.as_nanos()))).collect();
        assert_eq!(seen, [(Some(Kind::Kill), Some(5)), (None, Some(1))]);
    }

    #[test]
    fn where_two_led_at_once_there_is_no_gap() {
        let found = changes(&[led("a", 10, 40), led("b", 30, 60)], &[]);
        assert!(found[0].gap.is_none() && found[0].after.is_none());
    }
}
