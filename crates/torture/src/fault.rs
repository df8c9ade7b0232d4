//! The faults.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use bellwether_core::duration::print;

/// A kind of fault, as it is named on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// kill −9 of a candidate. Its guard ends the command.
    Kill,
    /// SIGSTOP of a candidate, and CONT. Its guard ends the command in time.
    Stop,
    /// SIGSTOP of a candidate, its guard and its command, and CONT.
    Freeze,
    /// TERM: the candidate releases and exits, and is started again.
    Restart,
    /// A request to step down, through the store.
    StepDown,
    /// Nothing passes between a candidate and the store, and nobody is told.
    Cut,
    /// A candidate's connections to the store are reset, and new ones are refused.
    Reset,
    /// Answers of the store come late.
    Delay,
    /// The wall clock of a candidate is set forward or back.
    Clock,
    /// The user's own command, which restarts a server of the store.
    ServerRestart,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 10] = [
        Kind::Kill,
        Kind::Stop,
        Kind::Freeze,
        Kind::Restart,
        Kind::StepDown,
        Kind::Cut,
        Kind::Reset,
        Kind::Delay,
        Kind::Clock,
        Kind::ServerRestart,
    ];

    /// Those that happen between a candidate and the servers of its store.
    pub const OF_NETWORK: [Kind; 3] = [Kind::Cut, Kind::Reset, Kind::Delay];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Kill => "kill",
            Kind::Stop => "stop",
            Kind::Freeze => "freeze",
            Kind::Restart => "restart",
            Kind::StepDown => "step-down",
            Kind::Cut => "cut",
            Kind::Reset => "reset",
            Kind::Delay => "delay",
            Kind::Clock => "clock",
            Kind::ServerRestart => "server-restart",
        }
    }

    /// What it is, for people.
    pub const fn meaning(self) -> &'static str {
        match self {
            Kind::Kill => "kill -9 of a candidate",
            Kind::Stop => "SIGSTOP of a candidate, then CONT",
            Kind::Freeze => "SIGSTOP of a candidate with its guard and its command, then CONT",
            Kind::Restart => "TERM: the candidate releases, exits and is started again",
            Kind::StepDown => "`bellwether step-down`",
            Kind::Cut => "nothing passes between a candidate and the store, and nobody is told",
            Kind::Reset => "a candidate's connections to the store are reset, and new ones are closed",
            Kind::Delay => "answers of the store come late",
            Kind::Clock => "the wall clock of a candidate is set forward or back",
            Kind::ServerRestart => "the command of `--server-restart` runs",
        }
    }

    /// Whether what a leader had sent before may arrive after its successor's first write: it was not asked to stop first.
    pub(crate) const fn is_sudden(self) -> bool {
        matches!(self, Kind::Kill | Kind::Stop | Kind::Freeze | Kind::Cut | Kind::Reset)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Kind, String> {
        Kind::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| {
            let known: Vec<&str> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
            format!("there is no fault {text:?}: there are {}", known.join(", "))
        })
    }
}

/// A fault, with everything that it needs to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// See [`Kind::Kill`]; the candidate is started again after `back`.
    Kill {
        /// How long it is gone.
        back: Duration,
    },
    /// See [`Kind::Restart`].
    Restart {
        /// How long it is gone.
        back: Duration,
    },
    /// See [`Kind::Stop`].
    Stop {
        /// Until CONT.
        span: Duration,
    },
    /// See [`Kind::Freeze`].
    Freeze {
        /// Until CONT.
        span: Duration,
    },
    /// See [`Kind::StepDown`].
    StepDown,
    /// See [`Kind::Cut`].
    Cut {
        /// Until everything passes again.
        span: Duration,
    },
    /// See [`Kind::Reset`].
    Reset {
        /// Until connections are accepted again.
        span: Duration,
    },
    /// See [`Kind::Delay`].
    Delay {
        /// How late answers are.
        by: Duration,
        /// Until they are not.
        span: Duration,
    },
    /// See [`Kind::Clock`].
    Clock {
        /// By how much, negative for back.
        seconds: i64,
        /// Until it is right again.
        span: Duration,
    },
    /// See [`Kind::ServerRestart`]. It happens to everybody.
    ServerRestart,
}

impl Fault {
    /// Its kind.
    pub const fn kind(self) -> Kind {
        match self {
            Fault::Kill { .. } => Kind::Kill,
            Fault::Restart { .. } => Kind::Restart,
            Fault::Stop { .. } => Kind::Stop,
            Fault::Freeze { .. } => Kind::Freeze,
            Fault::StepDown => Kind::StepDown,
            Fault::Cut { .. } => Kind::Cut,
            Fault::Reset { .. } => Kind::Reset,
            Fault::Delay { .. } => Kind::Delay,
            Fault::Clock { .. } => Kind::Clock,
            Fault::ServerRestart => Kind::ServerRestart,
        }
    }

    /// For how long the candidate may be unable to lead.
    pub const fn span(self) -> Duration {
        match self {
            Fault::StepDown | Fault::ServerRestart => Duration::ZERO,
            Fault::Kill { back: span }
            | Fault::Restart { back: span }
            | Fault::Stop { span }
            | Fault::Freeze { span }
            | Fault::Cut { span }
            | Fault::Reset { span }
            | Fault::Delay { span, .. }
            | Fault::Clock { span, .. } => span,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind();
        match self {
            Fault::StepDown | Fault::ServerRestart => write!(f, "{kind}"),
            Fault::Delay { by, span } => write!(f, "{kind} by {} for {}", print(*by), print(*span)),
            Fault::Clock { seconds, span } => write!(f, "{kind} {seconds:+} s for {}", print(*span)),
            other => write!(f, "{kind} for {}", print(other.span())),
        }
    }
}
