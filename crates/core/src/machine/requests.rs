//! Obeying what somebody asks of a leadership through the store: step down, hand over, make room.
//!
//! A request names the epoch that it is meant for. Others see that epoch in the store as soon as the claim is written,
//! and so a request can arrive before this candidate leads: while it settles after a crash, or before the
//! answer to its claim. The attempt keeps such a request, and the leadership obeys it as soon as it begins. The
//! store tells of a request only once.

use super::Core;
use super::state::{Attempt, Then, Why};
use crate::{Ask, Reason, Request};

impl Core {
    pub(super) fn asked_to(&mut self, request: Request) {
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
            Ask::StepDown { .. } => true,
            Ask::Preempt { priority, .. } => *priority > self.settings.options().priority,
        }
    }

    pub(super) fn obey(&mut self, what: Ask) {
        match what {
            Ask::StepDown { to } => self.let_go(Why::Lost(Reason::Admin), Then::Stand, to),
            Ask::Preempt { by, .. } => self.let_go(Why::Lost(Reason::Preempted), Then::Stand, Some(by)),
        }
    }
}

impl Attempt {
    /// Of several requests for one epoch the first counts, as it does for a leader. One for a later epoch replaces it: which
    /// epoch this attempt brings is not known before the answer to its claim.
    fn keep(&mut self, request: Request) {
        if self.asked.as_ref().is_none_or(|kept| kept.epoch < request.epoch) {
            self.asked = Some(request);
        }
    }
}
