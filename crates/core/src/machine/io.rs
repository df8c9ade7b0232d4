//! What goes into the machine and what comes out.

use crate::{
    Bid, Boot, CandidateId, CoreEvent, Epoch, Grant, Outcome, Reason, ReleaseOptions, Request, Seen, Signal,
    StoreError,
};

/// The number of a call to the store. Its answer, however late, comes back under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Call(pub u64);

/// What the machine is told.
///
/// `Input` and [`Output`] are deliberately exhaustive: a driver that forgets one breaks the contract of [`Core`](super::Core).
#[derive(Clone, Debug)]
pub enum Input {
    /// Take part.
    Start,
    /// Release if leading, and stop taking part.
    Stop,
    /// Release if leading, and stay away for a while.
    StepDown {
        /// Reserve the record for this candidate for a moment.
        to: Option<CandidateId>,
    },
    /// The instant of [`poll_timeout`](super::Core::poll_timeout) has come.
    Timeout,
    /// A claim was answered.
    Claimed(Call, Outcome<Grant>),
    /// A renewal was answered.
    Renewed(Call, Outcome<Grant>),
    /// A release was answered.
    Released(Call, Outcome<()>),
    /// An observation was answered.
    Observed(Call, Result<Seen, StoreError>),
    /// A request to the leader was answered by the store.
    Requested(Call, Outcome<()>),
    /// News from the store.
    Signal(Signal),
    /// The health check was run.
    Health(bool),
    /// Read the record now, to see whether it is still ours.
    Validate,
    /// The work of that leadership is over: future, process tree, address and demotion hook. Only now may it
    /// be released, and only now may this candidate compete again.
    WorkEnded(Epoch),
}

/// What the caller has to do.
#[derive(Clone, Debug)]
pub enum Output {
    /// Call the store, and hand the answer back under this number.
    Call(Call, StoreCall),
    /// Leading under `epoch` until then. Arm whatever enforces the deadline before any work starts. Repeated, with a later
    /// instant, at each renewal.
    Believe {
        /// The leadership.
        epoch: Epoch,
        /// Believed until then.
        until: Boot,
    },
    /// Stop the work now; it must be over by then. This epoch never comes back. If repeated, the earlier instant counts.
    EndWork {
        /// The leadership that is over.
        epoch: Epoch,
        /// When the work must be gone.
        by: Boot,
        /// Why, if the leadership was lost.
        why: Option<Reason>,
    },
    /// The work that was told to stop may take until then, because the record was renewed. The epoch is over all the same.
    ExtendStop {
        /// The leadership that is over.
        epoch: Epoch,
        /// When the work must be gone.
        by: Boot,
    },
    /// Tell the outside.
    Event {
        /// When it happened.
        at: Boot,
        /// The attempt that it belongs to: one number from a claim to its outcome, 0 before the first.
        attempt: u64,
        /// What happened.
        what: CoreEvent,
    },
}

/// What the store is asked to do.
#[derive(Clone, Debug)]
pub enum StoreCall {
    /// Claim the lead.
    Claim(Bid),
    /// Renew; the grant to come counts from `sent`.
    Renew {
        /// What is held.
        grant: Grant,
        /// The instant before the call.
        sent: Boot,
    },
    /// Release exactly this grant.
    Release(Grant, ReleaseOptions),
    /// Read the record.
    Observe,
    /// Write a request to the leader.
    Request(Request),
}
