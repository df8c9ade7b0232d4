//! The states, each holding only what it knows.

use super::acquiring::Attempt;
use super::leading::Leading;
use super::reconnecting::Suspended;
use super::releasing::Releasing;
use crate::{Boot, Epoch, StateName};

#[derive(Clone, Debug)]
pub(super) enum State {
    Stopped,
    /// Not trying before `wake`.
    Follower {
        wake: Boot,
    },
    Acquiring(Attempt),
    Leader(Leading),
    Reconnecting(Suspended),
    Releasing(Releasing),
}

impl State {
    pub(super) fn name(&self) -> StateName {
        match self {
            State::Stopped => StateName::Stopped,
            State::Follower { .. } => StateName::Follower,
            State::Acquiring(_) => StateName::Acquiring,
            State::Leader(_) => StateName::Leader,
            State::Reconnecting(_) => StateName::Reconnecting,
            State::Releasing(_) => StateName::Releasing,
        }
    }

    /// The leadership that is held, or whose work is being stopped.
    pub(super) fn held(&self) -> Option<Epoch> {
        match self {
            State::Leader(leading) => Some(leading.grant.epoch),
            State::Releasing(releasing) => Some(releasing.grant.epoch),
            State::Stopped | State::Follower { .. } | State::Acquiring(_) | State::Reconnecting(_) => None,
        }
    }
}
