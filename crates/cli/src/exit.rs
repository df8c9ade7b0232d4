//! How a command ends: the exit codes that scripts rely on.

use std::fmt;
use std::process::ExitCode;

use bellwether::{Error, ErrorKind};

/// An exit code by meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All is well.
    Clean,
    /// Nobody leads, or not the candidate that was asked for.
    None,
    /// Bad usage or settings.
    Usage,
    /// The backend is out of reach, and we gave up.
    Unavailable,
    /// A bug.
    Bug,
    /// Did not get to lead.
    NotLed,
    /// Did not get to lead, with the code that the user chose.
    NotLedAs(u8),
    /// What was to be printed could not be written.
    Output,
    /// The leadership was lost.
    Lost,
    /// Permission denied, by the store or by the kernel.
    Permission,
    /// The store is misconfigured.
    Misconfigured,
    /// The command's own code, or that it cannot be run.
    Command(u8),
}

impl Exit {
    /// Every code, for tables.
    pub(crate) const ALL: [Exit; 12] = [
        Exit::Clean,
        Exit::None,
        Exit::Usage,
        Exit::Unavailable,
        Exit::Bug,
        Exit::Output,
        Exit::NotLed,
        Exit::Lost,
        Exit::Permission,
        Exit::Misconfigured,
        Exit::Command(126),
        Exit::Command(127),
    ];

    /// The one with this code; one that none has is a command's.
    #[cfg(all(feature = "torture", target_os = "linux"))]
    pub(crate) fn of_code(code: u8) -> Exit {
        Exit::ALL.into_iter().find(|exit| exit.code() == code).unwrap_or(Exit::Command(code))
    }

    /// Every code as people write it, and what it means.
    pub(crate) fn table() -> Vec<(String, &'static str)> {
        let mut rows: Vec<_> =
            Exit::ALL.iter().map(|exit| (exit.code().to_string(), exit.meaning())).collect();
        rows.push(("any".to_owned(), Exit::Command(0).meaning()));
        rows
    }

    /// What it means.
    pub(crate) fn meaning(self) -> &'static str {
        self.describe().1
    }

    /// The number.
    pub(crate) fn code(self) -> u8 {
        self.describe().0
    }

    /// The number, and what it means.
    fn describe(self) -> (u8, &'static str) {
        const NOT_LED: &str = "did not become leader (another code with `-E`); `step-down`: no other candidate, or not the one of `--to`, took over";
        match self {
            Exit::Clean => (0, "success"),
            Exit::None => (
                1,
                "`status`: nobody holds the election, or with `--is-leader`, another candidate does; `watch` without ELECTION: \
                 there is none yet; `nats health` without NODE: nobody leads; `members nodes`: a node is not ready; `audit` and `torture`: a promise was broken, or \
                 the lines do not tell",
            ),
            Exit::Usage => (64, "bad usage or settings"),
            Exit::Unavailable => (69, "the store cannot be reached, or cannot do what was asked"),
            Exit::Bug => (70, "a bug in Bellwether"),
            Exit::Output => (
                74,
                "the output could not be written, to a full disk for example; `node`: its data directory is damaged, or cannot be read \
                 or written",
            ),
            Exit::NotLed => (75, NOT_LED),
            Exit::NotLedAs(code) => (code, NOT_LED),
            Exit::Lost => (
                76,
                "the leadership was lost (`run --once`, `acquire --hold`); `node`: it was removed from its cluster",
            ),
            Exit::Permission => (
                77,
                "permission denied; `run`: a process that COMMAND started cannot be killed and is left running",
            ),
            Exit::Misconfigured => (
                78,
                "the store is not set up for elections; `node`: its ledger, its data directory and its flags contradict each other; `run --vip`: \
                 the interface is missing or down, or somebody else set the address",
            ),
            Exit::Command(126) => (126, "COMMAND cannot be executed"),
            Exit::Command(127) => (127, "COMMAND was not found"),
            Exit::Command(code) => {
                (code, "COMMAND's own code, if it ran and ended by itself (128 + n for signal n)")
            }
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

/// The settings that name a backend.
const BACKEND: [&str; 5] = ["backend", "backend-file", "dsn", "key1", "key2"];

/// A command that could not do what it was asked, and why.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    sentence: String,
    about_backend: bool,
}

impl Failure {
    /// With a sentence for people.
    pub(crate) fn new(exit: Exit, sentence: impl Into<String>) -> Failure {
        Failure { exit, sentence: sentence.into(), about_backend: false }
    }

    /// The same about the flags that name a backend, whether or not the sentence mentions them.
    pub(crate) fn about_backend(self) -> Failure {
        Failure { about_backend: true, ..self }
    }

    /// Whether the setting of this name has a part in it.
    pub(crate) fn is_about(&self, key: &str) -> bool {
        (self.about_backend && BACKEND.contains(&key)) || mentions(&self.sentence, key)
    }

    /// The same, with the name of what it happened to in front.
    #[cfg(feature = "node")]
    pub(crate) fn prefixed(self, name: &str) -> Failure {
        Failure { sentence: format!("{name}: {}", self.sentence), ..self }
    }

    /// The exit code.
    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let exit = match &error {
            Error::Settings(_)
            | Error::Name(_)
            | Error::NoBackend
            | Error::BadUrl(_)
            | Error::AlreadyLeader => Exit::Usage,
            Error::NotLeader | Error::InCooldown | Error::NotStarted | Error::CasFailed | Error::TimedOut => {
                Exit::NotLed
            }
            Error::LeaseExpired | Error::EpochMismatch { .. } => Exit::Lost,
            Error::Backend(error) => of_kind(error.kind()),
            _ => Exit::Bug,
        };
        let failure = Failure::new(exit, error.to_string());
        if matches!(error, Error::Backend(_) | Error::BadUrl(_)) { failure.about_backend() } else { failure }
    }
}

impl From<bellwether::StoreError> for Failure {
    fn from(error: bellwether::StoreError) -> Failure {
        Failure::new(of_kind(error.kind()), error.to_string()).about_backend()
    }
}

#[cfg(feature = "node")]
impl From<bellwether::cluster::ClusterError> for Failure {
    fn from(error: bellwether::cluster::ClusterError) -> Failure {
        use bellwether::cluster::ErrorKind;
        let exit = match error.kind() {
            ErrorKind::InvalidInput => Exit::Usage,
            ErrorKind::Corrupt | ErrorKind::Storage | ErrorKind::Stopped => Exit::Output,
            ErrorKind::PermissionDenied => Exit::Permission,
            ErrorKind::Removed => Exit::Lost,
            // What the ledger, the disk and the flags contradict each other in is for somebody to decide.
            ErrorKind::Refused => Exit::Misconfigured,
            _ => Exit::Unavailable,
        };
        Failure::new(exit, error.to_string())
    }
}

/// Whether a sentence has a word that begins like this setting's name: "validation interval" is about `validate-every`.
fn mentions(sentence: &str, key: &str) -> bool {
    let begin = key.split('-').next().unwrap_or(key);
    let begin = begin.get(..5).unwrap_or(begin);
    let mut words = sentence.split(|c: char| !c.is_alphanumeric());
    words.any(|word| if begin.len() < 5 { word == begin } else { word.starts_with(begin) })
}

/// The code for an error of this kind.
pub(crate) fn of_kind(kind: ErrorKind) -> Exit {
    match kind {
        ErrorKind::PermissionDenied => Exit::Permission,
        ErrorKind::Misconfigured => Exit::Misconfigured,
        ErrorKind::InvalidInput => Exit::Usage,
        ErrorKind::Bug => Exit::Bug,
        _ => Exit::Unavailable,
    }
}
