//! Obeying what somebody asks of a leadership through the store: step down, hand over.
//!
//! A request names the epoch that it is meant for. Others see that epoch in the store as soon as the claim is written,
//! and so a request can arrive before this candidate leads: while it settles after a crash, or before the
//! answer to its claim. The attempt keeps such a request, and the leadership obeys it as soon as it begins. The
//! store tells of a request only once.

use super::Core;
use super::releasing::{Cause, Then};
use super::state::State;
use crate::{Ask, Boot, CandidateId, Reason, Request};

/// A leadership that somebody asked to end at a later time. It belongs to its epoch: however that ends before, the plan ends with it.
#[derive(Clone, Debug)]
pub(super) struct PlannedStepDown {
    pub(super) at: Boot,
    to: Option<CandidateId>,
}

impl Core {
    pub(super) fn requested(&mut self, request: Request) {
        if !self.has_to_obey(&request.what) {
            return;
        }
        if let Some(attempt) = self.attempt_mut() {
            attempt.keep(request);
        } else if self.leadership().is_some_and(|(epoch, _)| epoch == request.epoch) {
            self.obey(request.what);
        }
    }

    fn has_to_obey(&self, what: &Ask) -> bool {
        match what {
            Ask::StepDown { .. } | Ask::StepDownLater { .. } => true,
            Ask::Preempt { priority, .. } => *priority > self.settings.options().priority,
        }
    }

    pub(super) fn obey(&mut self, what: Ask) {
        match what {
            Ask::StepDown { to } => self.release(Cause::Lost(Reason::Admin), Then::Compete, to),
            Ask::StepDownLater { to, after } => {
                self.plan_step_down(PlannedStepDown { at: self.now + after, to })
            }
            Ask::Preempt { by, .. } => self.release(Cause::Lost(Reason::Preempted), Then::Compete, Some(by)),
        }
    }

    fn plan_step_down(&mut self, planned: PlannedStepDown) {
        if let State::Leader(leading) = &mut self.state {
            leading.planned = Some(planned);
        }
    }

    /// The time of a planned step-down has come.
    pub(super) fn step_down_as_planned(&mut self) {
        if let State::Leader(leading) = &mut self.state
            && let Some(PlannedStepDown { to, .. }) = leading.planned.take()
        {
            self.obey(Ask::StepDown { to });
        }
    }
}
