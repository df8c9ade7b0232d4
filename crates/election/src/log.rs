//! Log lines and spans, each with what tells them apart: election, candidate, incarnation, epoch, attempt.

use bellwether_core::{Candidate, ElectionName, Epoch, What};

use crate::event::Event;

/// The span of everything that is done for one candidate.
pub(crate) fn span(election: &ElectionName, who: &Candidate) -> tracing::Span {
    tracing::info_span!("election", election = %election, id = %who.id, incarnation = %who.incarnation)
}

/// One line for an event.
pub(crate) fn event(event: &Event) {
    let (election, id, incarnation) = (&event.election, &event.candidate.id, &event.candidate.incarnation);
    let epoch = event.epoch.map(Epoch::get);
    let attempt = event.attempt;
    macro_rules! line {
        ($level:ident, $($field:tt)*) => {
            tracing::$level!(%election, %id, %incarnation, epoch, attempt, $($field)*)
        };
    }
    match &event.what {
        What::StateChanged { from, to } => {
            line!(debug, from = from.as_str(), to = to.as_str(), "state changed")
        }
        What::Acquired { .. } => line!(info, "acquired"),
        What::Resumed { .. } => line!(info, "resumed"),
        What::Released { confirmed, .. } => line!(info, confirmed, "released"),
        What::Lost { reason, .. } => line!(warn, reason = reason.as_str(), "lost"),
        What::Suspended { reason, .. } => line!(warn, reason = reason.as_str(), "suspended"),
        What::AcquireFailed { holder } => {
            line!(debug, holder = holder.as_ref().map(|id| id.as_str()), "attempt denied");
        }
        What::LeaderChanged { leader } => {
            line!(info, leader = leader.as_ref().map(|id| id.as_str()), "leader changed");
        }
        What::Danger { .. } => line!(warn, "renewal overdue"),
        What::Error(error) => line!(warn, %error, kind = error.kind().as_str(), "error"),
        What::Stopped => line!(info, "stopped"),
        What::ChildStarted { pid } => line!(info, pid, "command started"),
        What::ChildExited { code } => line!(info, code, "command ended"),
        _ => line!(debug, what = event.what.as_str()),
    }
}
