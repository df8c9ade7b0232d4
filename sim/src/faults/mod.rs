//! What goes wrong, and how often it did.

mod nodes;
mod server;
mod store;
mod users;

use std::fmt;

/// Everything that the world does to the candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub enum Fault {
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
}

impl Fault {
    /// All of them, in the order in which they are counted.
    pub const ALL: [Fault; 29] = [
        Fault::Pause,
        Fault::Suspend,
        Fault::Crash,
        Fault::Twin,
        Fault::Clone,
        Fault::Cut,
        Fault::Spike,
        Fault::Outage,
        Fault::Rollback,
        Fault::Delete,
        Fault::Restart,
        Fault::Promotion,
        Fault::Terminate,
        Fault::HalfOpen,
        Fault::WallJump,
        Fault::CallLost,
        Fault::AnswerLost,
        Fault::CallTwice,
        Fault::SelfConflict,
        Fault::Error,
        Fault::AnswerLate,
        Fault::NewsLost,
        Fault::NewsAgain,
        Fault::NewsLate,
        Fault::StepDown,
        Fault::StopStart,
        Fault::Sick,
        Fault::Asked,
        Fault::Validate,
    ];

    /// What it is called in the figures.
    pub const fn name(self) -> &'static str {
        match self {
            Fault::Pause => "pauses",
            Fault::Suspend => "suspends",
            Fault::Crash => "crashes",
            Fault::Twin => "same id twice",
            Fault::Clone => "clones",
            Fault::Cut => "cut-offs",
            Fault::Spike => "slow spells",
            Fault::Outage => "outages",
            Fault::Rollback => "rollbacks",
            Fault::Delete => "deletions",
            Fault::Restart => "server restarts",
            Fault::Promotion => "promotions",
            Fault::Terminate => "sessions ended by hand",
            Fault::HalfOpen => "connections dead",
            Fault::WallJump => "wall clock jumps",
            Fault::CallLost => "calls lost",
            Fault::AnswerLost => "answers lost",
            Fault::CallTwice => "calls doubled",
            Fault::SelfConflict => "conflicts with oneself",
            Fault::Error => "errors",
            Fault::AnswerLate => "answers late",
            Fault::NewsLost => "news lost",
            Fault::NewsAgain => "news repeated",
            Fault::NewsLate => "news late",
            Fault::StepDown => "step-downs",
            Fault::StopStart => "stops",
            Fault::Sick => "sicknesses",
            Fault::Asked => "requests",
            Fault::Validate => "validations",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
