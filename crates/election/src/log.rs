//! Log lines and spans. The sentence of a line is for people: it names the election, who, and the epoch. Its fields are for
//! machines, and tell lines apart: election, candidate, incarnation, epoch, attempt, and the event's word.
//!
//! A store that cannot be reached is one line, then a count at 10, 100, 1,000, … failures, and one line when it answers again.

use bellwether_core::{Candidate, ElectionName, Epoch, Reason};

use crate::event::{Event, What};

/// After the end of a leadership that should have been released.
const UNCONFIRMED: &str =
    ", but the store did not confirm the release, so others may have to wait for the ttl";

/// The span of everything that is done for one candidate.
pub(crate) fn span(election: &ElectionName, who: &Candidate) -> tracing::Span {
    tracing::info_span!("election", election = %election, id = %who.id, incarnation = %who.incarnation)
}

/// The log of one candidate.
#[derive(Debug, Default)]
pub(crate) struct EventLog {
    /// Since the store last answered.
    failures: u64,
}

impl EventLog {
    /// A line for an event, unless it says what the one before it said.
    pub(crate) fn event(&mut self, event: &Event) {
        let is_failure = matches!(&event.what, What::Error(error) if error.is_retryable());
        self.failures += u64::from(is_failure);
        line(event, is_failure.then_some(self.failures));
    }

    /// The store has answered something.
    pub(crate) fn answered(&mut self, election: &ElectionName, who: &Candidate) {
        let failures = std::mem::take(&mut self.failures);
        if failures > 0 {
            let (id, incarnation) = (&who.id, &who.incarnation);
            let times = if failures == 1 { "once".to_owned() } else { format!("{failures} times") };
            tracing::info!(%election, %id, %incarnation, failures, "{election}: the store answers again; it failed {times}");
        }
    }
}

/// One line for an event. `failures`: how often the store has failed since it last answered, if the event is one of those failures.
pub(crate) fn line(event: &Event, failures: Option<u64>) {
    let (election, id, incarnation) = (&event.election, &event.candidate.id, &event.candidate.incarnation);
    let epoch = event.epoch.map(Epoch::get);
    let (attempt, word) = (event.attempt, event.what.as_str());
    macro_rules! line {
        ($level:ident, $($field:tt)*) => {
            tracing::$level!(%election, %id, %incarnation, epoch, attempt, event = word, $($field)*)
        };
    }
    match &event.what {
        What::StateChanged { from, to } => {
            let (from, to) = (from.as_str(), to.as_str());
            line!(debug, from, to, "{election}: {id} was {from} and is {to}");
        }
        What::Acquired { epoch, .. } => line!(info, "{election}: {id} leads (epoch {epoch})"),
        What::Resumed { epoch, .. } => line!(info, "{election}: {id} leads again (epoch {epoch})"),
        What::Released { epoch, confirmed: true } => {
            line!(info, confirmed = true, "{election}: released (epoch {epoch})");
        }
        What::Released { epoch, confirmed: false } => {
            line!(warn, confirmed = false, "{election}: released (epoch {epoch}){UNCONFIRMED}");
        }
        What::Lost { epoch, reason: Reason::Admin, released: true, .. } => {
            line!(
                info,
                reason = Reason::Admin.as_str(),
                "{election}: handed over on request (epoch {epoch})"
            );
        }
        What::Lost { epoch, reason: Reason::Preempted, released: true, .. } => {
            let reason = Reason::Preempted.as_str();
            line!(info, reason, "{election}: handed over to a higher priority (epoch {epoch})");
        }
        What::Lost { epoch, reason, released, .. } => {
            let meaning = reason.meaning();
            let waits = if reason.is_planned() && !released { UNCONFIRMED } else { "" };
            line!(warn, reason = reason.as_str(), "{election}: lost (epoch {epoch}): {meaning}{waits}");
        }
        What::Suspended { epoch, reason, .. } => {
            let meaning = reason.meaning();
            line!(warn, reason = reason.as_str(), "{election}: suspended (epoch {epoch}): {meaning}");
        }
        What::AcquireFailed { holder } => {
            let holder = holder.as_ref().map(|id| id.as_str());
            line!(debug, holder, "{election}: {} is in the way", holder.unwrap_or("somebody"));
        }
        What::LeaderChanged { leader: None, .. } => line!(info, "{election}: nobody leads"),
        // That it leads itself, it has said.
        What::LeaderChanged { leader: Some(leader), .. } if leader == id => {
            line!(debug, %leader, "{election}: {leader} leads")
        }
        What::LeaderChanged { leader: Some(leader), epoch: Some(epoch) } => {
            line!(info, %leader, "{election}: {leader} leads (epoch {epoch})")
        }
        What::LeaderChanged { leader: Some(leader), epoch: None } => {
            line!(info, %leader, "{election}: {leader} leads")
        }
        What::Danger { epoch, deadline } => {
            let left = deadline.since(event.boot);
            line!(
                warn,
                "{election}: a renewal is overdue (epoch {epoch}); the leadership ends in {left:.1?}"
            );
        }
        What::Error(error) => {
            let kind = error.kind().as_str();
            match failures {
                None => line!(warn, kind, "{election}: {error}"),
                Some(1) => line!(warn, kind, failures, "{election}: {error}; trying again"),
                Some(count) if is_power_of_ten(count) => {
                    line!(warn, kind, failures, "{election}: {error}; failed {count} times so far")
                }
                Some(_) => line!(debug, kind, failures, "{election}: {error}"),
            }
        }
        What::Stopped => line!(info, "{election}: {id} takes part no more"),
        What::ChildStarted { pid } => line!(info, pid, "{election}: started the command (process {pid})"),
        What::ChildExited { code } => line!(info, code, "{election}: the command ended with code {code}"),
        what => line!(debug, "{election}: {}", what.as_str()),
    }
}

fn is_power_of_ten(count: u64) -> bool {
    count.checked_ilog10().is_some_and(|digits| count == 10_u64.pow(digits))
}

#[cfg(test)]
mod tests {
    use super::is_power_of_ten;

    #[test]
    fn a_count_is_said_ever_more_rarely() {
        let said: Vec<u64> = (0..=10_000).filter(|count| is_power_of_ten(*count)).collect();
        assert_eq!(said, [1, 10, 100, 1_000, 10_000]);
    }
}
