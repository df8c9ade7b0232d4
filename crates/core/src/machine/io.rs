//! What goes into the machine and what comes out.

use crate::{
    Bid, Boot, CandidateId, CoreEvent, Epoch, Error, Grant, Outcome, Parting, Reason, Request, Seen, Signal,
};

/// The number of a call to the store. Its answer, however late, comes back under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Call(pub u64);

/// What the machine is told.
#[derive(Clone, Debug)]
pub enum Input {
    /// Take part.
    Start,
    /// Let go if leading, and take part no more.
    Stop,
    /// Let go if leading, and stay away for a while.
    StepDown {
        /// Keep the record for this candidate for a moment.
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
    /// A look was answered.
    Looked(Call, Result<Seen, Error>),
    /// A request to the leader was answered by the store.
    Requested(Call, Outcome<()>),
    /// News from the store.
    Signal(Signal),
    /// The health check was run.
    Health(bool),
    /// Read the record back now and see whether it is still ours.
    Validate,
    /// The work of that leadership is over: future, process tree, address and demotion hook. Only now may it
    /// be released, and only now may this candidate stand again.
    WorkEnded(Epoch),
}

/// What the machine wants done.
#[derive(Clone, Debug)]
pub enum Output {
    /// Claim the lead.
    Claim(Call, Bid),
    /// Renew; the grant to come counts from `sent`.
    Renew {
        /// Answer under this.
        call: Call,
        /// What is held.
        grant: Grant,
        /// The instant before the call.
        sent: Boot,
    },
    /// Let go of exactly this grant.
    Release(Call, Grant, Parting),
    /// Read the record.
    Look(Call),
    /// Write a request to the leader.
    Request(Call, Request),
    /// Leading under `epoch` until then. Arm whatever enforces it before any work starts. Said again, with a
    /// later instant, at each renewal.
    Believe {
        /// The leadership.
        epoch: Epoch,
        /// Believed until then.
        until: Boot,
    },
    /// Stop the work now; it must be over by then. This epoch never comes back. Said twice, the earlier
    /// instant counts.
    EndWork {
        /// The leadership that is over.
        epoch: Epoch,
        /// When the work must be gone.
        by: Boot,
        /// Why, if against our will.
        why: Option<Reason>,
    },
    /// The work that was told to stop may take until then: the record was renewed meanwhile. The epoch is over all the same.
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
        event: CoreEvent,
    },
}
