//! A conflict is the end: whoever has read that another holds the lead, or a later epoch, or nobody, leads no more.
//!
//! This holds also where the loss of a record excuses an overlap: the excuse ends when the old leader hears of it.

use bellwether_core::{Candidate, Epoch, Seen};

use super::{BrokenInvariant, Verdict};

const NAME: &str = "conflict is the end";

/// Whether an answer to a renewal of `led` says that it is over.
pub fn says_over(answer: &Seen, who: &Candidate, led: Epoch) -> bool {
    !(answer.is_held_by(who) && answer.epoch == Some(led))
}

/// Whether news says so. News may be old, so only a later holder counts.
pub fn news_says_over(news: &Seen, led: Epoch) -> bool {
    news.holder.is_some() && news.epoch.is_some_and(|epoch| epoch > led)
}

/// Judges a candidate that heard that `led` is over.
pub fn check(led: Epoch, leads_now: Option<Epoch>) -> Verdict {
    if leads_now == Some(led) {
        return Err(BrokenInvariant::new(
            NAME,
            format!("leads on under {led:?} after reading that it is over"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bellwether_core::{CandidateId, Holder, Incarnation};

    #[test]
    fn leading_on_after_a_conflict_is_found() {
        let who = Candidate { id: CandidateId::new("a").unwrap(), incarnation: Incarnation::from_bits(1) };
        let led = Epoch::new(4).unwrap();
        let held = |bits, epoch| Seen {
            holder: Some(Holder { id: who.id.clone(), incarnation: Some(Incarnation::from_bits(bits)) }),
            epoch: Epoch::new(epoch),
            ..Seen::nothing()
        };
        assert!(!says_over(&held(1, 4), &who, led));
        assert!(says_over(&held(2, 5), &who, led) && says_over(&Seen::nothing(), &who, led));
        assert!(news_says_over(&held(2, 5), led) && !news_says_over(&held(2, 3), led));
        assert!(check(led, Some(led)).is_err());
        assert_eq!(check(led, None), Ok(()));
    }
}
