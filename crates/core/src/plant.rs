//! Known bugs that can be put back in.
//!
//! A checker that has never caught anything proves nothing. Each of these is a mistake that some election in
//! use has made; the simulator plants them one at a time and must catch every one. Without the feature
//! `plant` nothing can be planted, and the questions below are the constant `false`.

/// A mistake, and what it breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bug {
    /// The deadline counts from the answer instead of from the request.
    DeadlineFromAnswer,
    /// Failed renewals are counted, and the deadline does not exist: a hung call never counts.
    FailureCountInsteadOfDeadline,
    /// A renewal that succeeds after the work was told to stop brings the leadership back.
    ResumeAfterStop,
    /// The record is released while the work is still stopping.
    ReleaseBeforeWorkEnds,
    /// A conflict on renewal is taken for a passing error.
    ConflictIsTransient,
    /// A denial counts as a failure: followers back off while all is well.
    DenialIsFailure,
    /// The late answer of a claim is thrown away.
    LateClaimIgnored,
    /// The reconnect grace keeps the old leadership alive.
    GraceKeepsLeading,
    /// The clock behind the deadline stands still while the machine sleeps.
    ClockStopsInSuspend,
    /// Expiry is judged by comparing one's own wall clock with the record's.
    WallClockExpiry,
    /// The follower uses its own ttl instead of the one in the record.
    OwnTtlForRecord,
    /// A record that was seen and then vanished is free at once.
    VanishedIsFree,
    /// What was observed before a rollback or a reconnect is still trusted.
    ObservationKeptOverRollback,
    /// The time of an observation is taken before the read instead of after it.
    SeenBeforeRead,
    /// A request counts as a renewal.
    RequestCountsAsRenewal,
    /// Release writes without comparing.
    BlindRelease,
    /// Renewal writes without comparing.
    BlindRenew,
    /// A record with our id is ours, whichever start of us wrote it.
    SameIdIsMe,
    /// Epochs start at one again when the record is gone.
    EpochResetOnDelete,
    /// The margin is not subtracted.
    NoMargin,
    /// A request that comes before the leadership begins is forgotten.
    EarlyRequestLost,
    /// A renewal takes a request out of the record, and the leader is not told.
    RequestUnheard,
    /// A candidate of higher priority asks a leadership only once, whatever becomes of that.
    AsksOnce,
    /// A released record that is kept for somebody is free for everybody.
    ReservationIgnored,
    /// Whoever stepped down competes again at once.
    CooldownIgnored,
    /// The health check is run and not minded.
    HealthIgnored,
    /// A record that vanished is free at once, if its absence was told and not yet read.
    ToldAbsenceIsFree,
    /// A candidate forgets the epochs that it has seen, and relies on the store's own count.
    EpochFloorForgotten,
    /// A record in the own name is the own one, also if a clone wrote it.
    CloneUnnoticed,
    /// The beat of a record is a count and nothing else, so that clones write the same.
    BeatIsCount,
    /// A follower waits for two ttls without a sign of life.
    WaitsTwice,
    /// A follower that sees the record free sleeps for its retry interval first.
    FreeSleptOn,
    /// Sessions: the end of the session does not end the leadership.
    GoneIgnored,
    /// Sessions: whoever gets the lock leads, though somebody else is present.
    PresenceIgnored,
    /// Sessions: whoever gets the lock leads, though the server has just ended all sessions.
    RestartIgnored,
    /// Sessions: the age of a session counts from when it was asked for, not from when it was there.
    SessionAgeFromAsking,
    /// Sessions: a renewal counts from its answer.
    RenewalFromAnswer,
    /// Sessions: a renewal counts though only the session of the lock answered for it.
    RenewalByOneSession,
    /// Sessions: the lock is let go of before the presence.
    LockBeforePresence,
    /// Sessions: the session of presence is given up for a slow answer while a leadership still counts on it.
    PresenceGivenUpEarly,
    /// Sessions: the epoch is assigned before the lock was granted.
    EpochBeforeLock,
    /// Sessions: a lock that was granted after its caller had given up is neither led on nor undone.
    LateLockKept,
}

impl Bug {
    /// All of them.
    pub const ALL: [Bug; 42] = [
        Bug::DeadlineFromAnswer,
        Bug::FailureCountInsteadOfDeadline,
        Bug::ResumeAfterStop,
        Bug::ReleaseBeforeWorkEnds,
        Bug::ConflictIsTransient,
        Bug::DenialIsFailure,
        Bug::LateClaimIgnored,
        Bug::GraceKeepsLeading,
        Bug::ClockStopsInSuspend,
        Bug::WallClockExpiry,
        Bug::OwnTtlForRecord,
        Bug::VanishedIsFree,
        Bug::ObservationKeptOverRollback,
        Bug::SeenBeforeRead,
        Bug::RequestCountsAsRenewal,
        Bug::BlindRelease,
        Bug::BlindRenew,
        Bug::SameIdIsMe,
        Bug::EpochResetOnDelete,
        Bug::NoMargin,
        Bug::EarlyRequestLost,
        Bug::RequestUnheard,
        Bug::AsksOnce,
        Bug::ReservationIgnored,
        Bug::CooldownIgnored,
        Bug::HealthIgnored,
        Bug::ToldAbsenceIsFree,
        Bug::EpochFloorForgotten,
        Bug::CloneUnnoticed,
        Bug::BeatIsCount,
        Bug::WaitsTwice,
        Bug::FreeSleptOn,
        Bug::GoneIgnored,
        Bug::PresenceIgnored,
        Bug::RestartIgnored,
        Bug::SessionAgeFromAsking,
        Bug::RenewalFromAnswer,
        Bug::RenewalByOneSession,
        Bug::LockBeforePresence,
        Bug::PresenceGivenUpEarly,
        Bug::EpochBeforeLock,
        Bug::LateLockKept,
    ];
}

/// Which bug is in, if any.
#[derive(Clone, Copy, Debug, Default)]
pub struct Planted {
    #[cfg(feature = "plant")]
    bug: Option<Bug>,
}

impl Planted {
    /// With this bug in.
    #[cfg(feature = "plant")]
    pub fn with(bug: Bug) -> Planted {
        Planted { bug: Some(bug) }
    }

    /// Whether this one is in.
    #[inline]
    pub fn has(&self, bug: Bug) -> bool {
        #[cfg(feature = "plant")]
        return self.bug == Some(bug);
        #[cfg(not(feature = "plant"))]
        {
            let _ = bug;
            false
        }
    }
}
