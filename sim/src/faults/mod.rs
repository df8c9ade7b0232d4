//! What goes wrong, and how often it did.

mod nodes;
mod server;
mod store;
mod users;

use std::fmt;

/// Everything that the world does to the candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub enum WorldFault {
    /// A process stands still; answers and timers wait for it.
    Pause,
    /// A machine sleeps; its boot-time clock counts on.
    Suspend,
    /// A process dies, and its work with it.
    Crash,
    /// A second process is started with the id of one that only stands still.
    Twin,
    /// A machine is restored from a snapshot twice: two processes with one incarnation, which know the same.
    Clone,
    /// A process cannot reach the store: calls are lost, or only their answers.
    Cut,
    /// Everything between processes and store is slow for a while, and overtakes itself.
    Spike,
    /// The store answers nobody for a while.
    Outage,
    /// The store falls back to an older state, and every connection breaks.
    Rollback,
    /// The record is deleted.
    Delete,
    /// A server of sessions crashes, as a whole or in one of its processes, and every session ends.
    Restart,
    /// A standby takes the place of a server of sessions, and every session ends.
    Promotion,
    /// One session is ended by hand.
    Terminate,
    /// A connection goes dead without anybody being told.
    HalfOpen,
    /// A wall clock jumps.
    WallJump,
    /// A call never arrives.
    CallLost,
    /// A call arrives, and its answer is lost.
    AnswerLost,
    /// A call arrives twice.
    CallTwice,
    /// A call arrives twice, and only the second answer is heard.
    SelfConflict,
    /// A call ends in a passing error.
    Error,
    /// An answer comes long after anybody waited for it.
    AnswerLate,
    /// News is lost.
    NewsLost,
    /// News comes again, or old news comes after new.
    NewsAgain,
    /// News comes late.
    NewsLate,
    /// The leader steps down by its own choice.
    StepDown,
    /// A candidate is stopped, and started again later.
    StopStart,
    /// A health check fails for a while.
    Sick,
    /// Somebody asks the leader, through the store, to step down.
    Asked,
    /// The leader is told to read its record back.
    Validate,
    /// Somebody pauses the election, or ends a pause.
    ElectionPaused,
}

impl WorldFault {
    /// All of them, in the order in which they are counted.
    pub const ALL: [WorldFault; 30] = [
        WorldFault::Pause,
        WorldFault::Suspend,
        WorldFault::Crash,
        WorldFault::Twin,
        WorldFault::Clone,
        WorldFault::Cut,
        WorldFault::Spike,
        WorldFault::Outage,
        WorldFault::Rollback,
        WorldFault::Delete,
        WorldFault::Restart,
        WorldFault::Promotion,
        WorldFault::Terminate,
        WorldFault::HalfOpen,
        WorldFault::WallJump,
        WorldFault::CallLost,
        WorldFault::AnswerLost,
        WorldFault::CallTwice,
        WorldFault::SelfConflict,
        WorldFault::Error,
        WorldFault::AnswerLate,
        WorldFault::NewsLost,
        WorldFault::NewsAgain,
        WorldFault::NewsLate,
        WorldFault::StepDown,
        WorldFault::StopStart,
        WorldFault::Sick,
        WorldFault::Asked,
        WorldFault::Validate,
        WorldFault::ElectionPaused,
    ];

    /// What it is called in the figures.
    pub const fn name(self) -> &'static str {
        match self {
            WorldFault::Pause => "pauses",
            WorldFault::Suspend => "suspends",
            WorldFault::Crash => "crashes",
            WorldFault::Twin => "same id twice",
            WorldFault::Clone => "clones",
            WorldFault::Cut => "cut-offs",
            WorldFault::Spike => "slow spells",
            WorldFault::Outage => "outages",
            WorldFault::Rollback => "rollbacks",
            WorldFault::Delete => "deletions",
            WorldFault::Restart => "server restarts",
            WorldFault::Promotion => "promotions",
            WorldFault::Terminate => "sessions ended by hand",
            WorldFault::HalfOpen => "connections dead",
            WorldFault::WallJump => "wall clock jumps",
            WorldFault::CallLost => "calls lost",
            WorldFault::AnswerLost => "answers lost",
            WorldFault::CallTwice => "calls doubled",
            WorldFault::SelfConflict => "conflicts with oneself",
            WorldFault::Error => "errors",
            WorldFault::AnswerLate => "answers late",
            WorldFault::NewsLost => "news lost",
            WorldFault::NewsAgain => "news repeated",
            WorldFault::NewsLate => "news late",
            WorldFault::StepDown => "step-downs",
            WorldFault::StopStart => "stops",
            WorldFault::Sick => "sicknesses",
            WorldFault::Asked => "requests",
            WorldFault::Validate => "validations",
            WorldFault::ElectionPaused => "elections paused",
        }
    }
}

impl fmt::Display for WorldFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
