//! The command line.

mod audit;
#[cfg(feature = "http")]
mod http;
mod looking;
#[cfg(feature = "nats")]
mod nats;
#[cfg(feature = "node")]
mod node;
mod pause;
mod postgres;
mod run;
#[cfg(feature = "torture")]
mod torture;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use bellwether::{CandidateId, ElectionName, Scheme};
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

pub(crate) use audit::Audit;
#[cfg(feature = "http")]
pub(crate) use http::HttpFlags;
#[cfg(all(feature = "http", feature = "node"))]
pub(crate) use http::NodeHttpFlags;
pub(crate) use looking::{Doctor, Top};
#[cfg(feature = "nats")]
pub(crate) use nats::{NatsCommand, NatsHealth};
#[cfg(feature = "node")]
pub(crate) use node::{FormingFlags, LedgerFlags, MembersCommand, Node, PeerFlags, Recover, SecurityFlags};
pub(crate) use pause::Pause;
pub(crate) use postgres::PostgresFlags;
#[cfg(feature = "postgres")]
pub(crate) use postgres::{PostgresCommand, PostgresInit};
pub(crate) use run::{HealthFlags, Run, StandingFlags, TimingFlags};
#[cfg(feature = "torture")]
pub(crate) use torture::Torture;

/// One process does the work, the others stand by, and never two.
///
/// Bellwether holds leader elections on what you already run. Start the same command on several machines or several
/// times on one: one of them leads, and when it stops, crashes or falls silent, another takes over.
#[derive(Debug, Parser)]
#[command(name = "bellwether", version, max_term_width = 100)]
#[command(after_help = "Try it: run `bellwether run demo` in two terminals, and end the first with Ctrl-C.")]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Args {
    /// Whether somebody at a terminal is shown a live line instead of log lines.
    pub(crate) fn has_live_screen(&self) -> bool {
        let Global { quiet, log, output, .. } = &self.global;
        let plain = !quiet && *log == LogFormat::Text && *output == Format::Table;
        plain && matches!(self.command, Command::Run(_)) && std::io::stderr().is_terminal()
    }
}

/// What every subcommand takes.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    #[arg(help = backend_help())]
    #[arg(long, value_name = "URL", env = "BELLWETHER_BACKEND", hide_env_values = true, global = true)]
    pub(crate) backend: Option<String>,

    /// Read the backend's URL from this file, which keeps a password in it out of process lists.
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) backend_file: Option<PathBuf>,

    /// Read settings from this TOML file. Flags and environment variables take precedence. Keys are the names of long flags; a table
    /// named after a subcommand, such as [run], applies to that subcommand only.
    #[arg(long, value_name = "FILE", env = "BELLWETHER_CONFIG", global = true)]
    pub(crate) config: Option<PathBuf>,

    /// This candidate's id: stable and readable. Default: $POD_NAME, or <hostname>-<pid>, followed by six random digits in a
    /// container.
    #[arg(long, value_name = "ID", env = "BELLWETHER_ID", global = true, value_parser = trimmed)]
    pub(crate) id: Option<String>,

    /// How results are printed.
    #[arg(short, long, value_name = "FORMAT", default_value = "table", global = true)]
    pub(crate) output: Format,

    /// How log lines are written to stderr.
    #[arg(long, value_name = "FORMAT", default_value = "text", global = true)]
    pub(crate) log: LogFormat,

    /// Log more; repeat for even more.
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub(crate) verbose: u8,

    /// Log errors only.
    #[arg(short, long, conflicts_with = "verbose", global = true)]
    pub(crate) quiet: bool,

    // Last: its heading counts for everything after it.
    #[command(flatten)]
    pub(crate) postgres: PostgresFlags,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Table,
    /// For machines.
    Json,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Take part in an election until interrupted; with a COMMAND, run it only while leading.
    Run(Box<Run>),
    /// Try once to become leader: print the epoch, and release the leadership.
    Acquire(Acquire),
    /// Show who leads, and who follows if the store knows. Changes nothing.
    Status(StatusFlags),
    /// Print a line for every change of an election. Changes nothing.
    Watch {
        /// The election. Default: all that the store can list.
        #[arg(value_name = "ELECTION", value_parser = election)]
        election: Option<ElectionName>,
    },
    /// Ask the leader, wherever it runs, to hand over; print who took over, and for how long nobody led.
    StepDown(StepDown),
    Pause(Pause),
    /// End a pause: candidates compete again at once. Exits with 0 also if the election was not paused.
    Unpause {
        /// The election.
        #[arg(value_name = "ELECTION", value_parser = election)]
        election: Option<ElectionName>,
    },
    /// Show past leaderships, if the store keeps them.
    History {
        /// The election.
        #[arg(value_name = "ELECTION", value_parser = election)]
        election: Option<ElectionName>,
    },
    Audit(Audit),
    #[cfg(feature = "torture")]
    Torture(Torture),
    Doctor(Doctor),
    Top(Top),
    /// PostgreSQL-specific commands.
    #[cfg(feature = "postgres")]
    #[command(subcommand)]
    Postgres(PostgresCommand),
    /// NATS-specific commands.
    #[cfg(feature = "nats")]
    #[command(subcommand)]
    Nats(NatsCommand),
    #[cfg(feature = "node")]
    Node(Box<Node>),
    #[cfg(feature = "node")]
    #[command(subcommand)]
    Members(MembersCommand),
    #[cfg(feature = "node")]
    Recover(Recover),
    /// Print shell completions.
    Completions {
        /// The shell.
        #[arg(value_name = "SHELL")]
        shell: clap_complete::Shell,
    },
    /// Print the manual page.
    Man,
    /// Print a table of the documents.
    #[command(hide = true)]
    Tables {
        table: Table,
    },
    /// Show what the timing settings mean: when work stops, when somebody else takes over, what is tolerated.
    Explain(Explain),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Acquire {
    /// The election.
    #[arg(value_name = "ELECTION", value_parser = election)]
    pub(crate) election: Option<ElectionName>,

    /// Keep leading until interrupted.
    #[arg(long)]
    pub(crate) hold: bool,

    #[command(flatten)]
    pub(crate) timing: TimingFlags,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct StatusFlags {
    /// The election. Default: all that the store can list.
    #[arg(value_name = "ELECTION", value_parser = election)]
    pub(crate) election: Option<ElectionName>,

    /// Wait until the holder renews, or its ttl has passed without a renewal.
    #[arg(long)]
    pub(crate) confirm: bool,

    /// Print nothing; exit with 0 if candidate ID leads, with 1 if it does not. Default: the id given by --id, $BELLWETHER_ID or
    /// $POD_NAME.
    #[arg(long, value_name = "ID", num_args = 0..=1, value_parser = trimmed)]
    pub(crate) is_leader: Option<Option<String>>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct StepDown {
    /// The election.
    #[arg(value_name = "ELECTION", value_parser = election)]
    pub(crate) election: Option<ElectionName>,

    /// Hand over to this candidate: the election is reserved for it for a moment. Exits with 75 if it does not take over.
    #[arg(long, value_name = "ID", value_parser = candidate)]
    pub(crate) to: Option<CandidateId>,

    /// Later: the leader goes on for this long, by its own timer, and then hands over. Does not wait for that. If its leadership ends
    /// before, nothing happens; another step-down, with or without --in, replaces it.
    #[arg(long = "in", value_name = "TIME", value_parser = duration)]
    pub(crate) after: Option<Duration>,
}

/// The tables that are printed from the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Table {
    ExitCodes,
    Reasons,
    ErrorKinds,
    RunFlags,
    #[cfg(feature = "node")]
    NodeFlags,
    #[cfg(feature = "torture")]
    TortureFlags,
    #[cfg(feature = "torture")]
    Faults,
    Events,
    Schemes,
    KillSequence,
    #[cfg(feature = "http")]
    Metrics,
    #[cfg(all(feature = "http", feature = "node"))]
    NodeMetrics,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Explain {
    /// Time between TERM and KILL when a deadline forces the command's end.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) grace: Option<Duration>,

    /// Time between TERM and KILL on a planned end.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = STOP_TIMEOUT)]
    pub(crate) stop_timeout: Duration,

    #[command(flatten)]
    pub(crate) timing: TimingFlags,

    #[command(flatten)]
    pub(crate) standing: StandingFlags,
}

fn backend_help() -> String {
    let urls: Vec<&str> =
        Scheme::all().iter().filter(|one| one.is_built_in()).map(|one| one.example).collect();
    let home = "$XDG_STATE_HOME/bellwether or ~/.local/state/bellwether";
    format!("Where the election is held: {}. Default: file: under {home}", urls.join(", "))
}

/// A command's time to stop on a planned end, unless it is set.
const STOP_TIMEOUT: &str = "10s";

/// The name of an election. The library takes any; one that looks like another in every table is mostly a slip of the shell's.
fn election(text: &str) -> Result<ElectionName, String> {
    ElectionName::new(trimmed(text)?).map_err(|error| error.to_string())
}

/// The id of a candidate; see [`election`].
fn candidate(text: &str) -> Result<CandidateId, String> {
    CandidateId::new(trimmed(text)?).map_err(|error| error.to_string())
}

fn trimmed(text: &str) -> Result<String, String> {
    match text.trim() {
        inner if inner == text => Ok(text.to_owned()),
        "" => Err("a name cannot be white space alone".to_owned()),
        inner => Err(format!("white space before or after a name: write {inner:?}")),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    use bellwether::duration::{parse, print};
    parse(text).ok_or_else(|| {
        if parse(&format!("{text}s")).is_some() {
            return format!("a duration needs a unit: write {text}s or {text}ms");
        }
        let zeros: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        match parse(&zeros) {
            Some(_) if text.starts_with('-') => format!("a duration cannot be negative: {text:?}"),
            Some(_) => format!("too long; the longest duration is {}: {text:?}", print(Duration::MAX)),
            None => format!("not a duration; write it like 500ms, 10s or 1m30s: {text:?}"),
        }
    })
}

fn interval_from(shortest: Duration, text: &str) -> Result<Duration, String> {
    let interval = duration(text)?;
    if interval < shortest {
        Err(format!("the interval must be at least {shortest:?}"))
    } else {
        Ok(interval)
    }
}

/// For the flags whose names others have coined, with plain seconds.
fn duration_or_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.map_or_else(|| duration(text), Ok)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;

    use super::*;

    /// A heading counts for every flag that comes after it, also for those of other structs.
    #[test]
    fn every_flag_is_under_its_own_heading() {
        fn of<T: ClapArgs>() -> BTreeSet<String> {
            let command = T::augment_args(clap::Command::new("any"));
            command.get_arguments().map(|flag| flag.get_id().to_string()).collect()
        }
        let headings = [
            #[cfg(all(feature = "http", feature = "node"))]
            ("HTTP", of::<NodeHttpFlags>()),
            ("PostgreSQL", of::<PostgresFlags>()),
            ("Global options", of::<Global>()),
            ("Timing", of::<TimingFlags>()),
            ("Standing", of::<StandingFlags>()),
            ("Health", of::<HealthFlags>()),
            #[cfg(feature = "http")]
            ("HTTP", of::<HttpFlags>()),
            #[cfg(feature = "node")]
            ("Peers", of::<PeerFlags>()),
            #[cfg(feature = "node")]
            ("Forming a cluster", of::<FormingFlags>()),
            #[cfg(feature = "node")]
            ("Security", of::<SecurityFlags>()),
        ];
        let is_plain = |one: &clap::Command, flag: &clap::Arg| {
            match one.get_name() {
                // Where a cluster is not formed, the ledger is a flag like others.
                "recover" => flag.get_id().as_str().starts_with("ledger"),
                // These are those of its candidates, and of its faults.
                "torture" => ["seed", "ttl"].contains(&flag.get_id().as_str()),
                _ => false,
            }
        };
        let mut command = Args::command();
        command.build();
        for one in command.get_subcommands() {
            for flag in one.get_arguments() {
                let its_own = headings.iter().find(|(_, flags)| flags.contains(flag.get_id().as_str()));
                let heading = its_own.map(|(heading, _)| *heading).filter(|_| !is_plain(one, flag));
                assert_eq!(flag.get_help_heading(), heading, "{} of {}", flag.get_id(), one.get_name());
            }
        }
    }
}
