//! Known bugs, put back in: each must be caught.

use bellwether_core::{Bug, Planted};

use crate::invariants::Violation;
use crate::options::StoreKind;

/// How many worlds a bug may survive before it counts as not caught.
pub const SEEDS_MAX: u64 = 2_000;

/// Where a bug was caught.
#[derive(Clone, Debug)]
pub struct Caught {
    /// The seed.
    pub seed: u64,
    /// How.
    pub violation: Violation,
}

/// The kind of store that this bug needs to show, if it needs one.
pub fn habitat(bug: Bug) -> Option<StoreKind> {
    use Bug::*;
    match bug {
        WallClockExpiry
        | OwnTtlForRecord
        | VanishedIsFree
        | ObservationKeptOverRollback
        | SeenBeforeRead
        | RequestCountsAsRenewal
        | BlindRelease
        | BlindRenew
        | SameIdIsMe
        | EpochResetOnDelete
        | EarlyRequestLost
        | RequestUnheard
        | AsksOnce
        | ReservationIgnored
        | ToldAbsenceIsFree
        | EpochFloorForgotten
        | CloneUnnoticed
        | BeatIsCount
        | WaitsTwice
        | FreeSleptOn => Some(StoreKind::Register),
        GoneIgnored | PresenceIgnored | RestartIgnored | SessionAgeFromAsking | RenewalFromAnswer
        | RenewalByOneSession | LockBeforePresence | PresenceGivenUpEarly | EpochBeforeLock
        | LateLockKept => Some(StoreKind::Session),
        DeadlineFromAnswer
        | FailureCountInsteadOfDeadline
        | ResumeAfterStop
        | ReleaseBeforeWorkEnds
        | ConflictIsTransient
        | DenialIsFailure
        | LateClaimIgnored
        | GraceKeepsLeading
        | ClockStopsInSuspend
        | NoMargin
        | CooldownIgnored
        | HealthIgnored => None,
    }
}

/// Runs seeds from 1 on with this bug until one catches it. Worlds in which it cannot show are left out.
pub fn hunt(bug: Bug, seeds: u64) -> Option<Caught> {
    let lives_in = |seed: &u64| habitat(bug).is_none_or(|store| store == StoreKind::of(*seed));
    (1..=seeds).filter(lives_in).find_map(|seed| {
        let outcome = crate::run(seed, Planted::with(bug), false);
        outcome.violation.map(|violation| Caught { seed, violation })
    })
}
