//! The command line.

mod looking;
#[cfg(feature = "postgres")]
mod postgres;

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use bellwether::{CandidateId, ElectionName, Exponential, Options, TimingOptions};
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

pub(crate) use looking::{Doctor, Top};
#[cfg(feature = "postgres")]
pub(crate) use postgres::{Init, Postgres, PostgresCommand};

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
pub(crate) struct Global {
    /// Where the election is held: file:DIR, postgres://…, nats://…, or memory: (one process, for trying out). Default: file: under
    /// $XDG_STATE_HOME/bellwether or ~/.local/state/bellwether.
    #[arg(long, value_name = "URL", env = "BELLWETHER_BACKEND", hide_env_values = true, global = true)]
    pub(crate) backend: Option<String>,

    /// Read the backend's URL from this file, so that a password in it shows in no process list.
    #[arg(long, value_name = "FILE", global = true, conflicts_with = "backend")]
    pub(crate) backend_file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) postgres: PostgresFlags,

    /// Settings from this TOML file: weaker than flags and environment. Keys are the long flags; those of one
    /// subcommand may stand in a table of its name.
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) config: Option<PathBuf>,

    /// This candidate's id: stable and readable. Default: $POD_NAME, or <hostname>-<pid>.
    #[arg(long, value_name = "ID", env = "BELLWETHER_ID", global = true)]
    pub(crate) id: Option<String>,

    /// For people or for machines.
    #[arg(short, long, value_name = "FORMAT", default_value = "table", global = true)]
    pub(crate) output: Format,

    /// How log lines on stderr look.
    #[arg(long, value_name = "FORMAT", default_value = "text", global = true)]
    pub(crate) log: LogFormat,

    /// More log lines; twice for still more.
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub(crate) verbose: u8,

    /// No log lines but errors.
    #[arg(short, long, conflicts_with = "verbose", global = true)]
    pub(crate) quiet: bool,
}

/// Names that users of PostgreSQL's advisory locks know.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "PostgreSQL")]
pub(crate) struct PostgresFlags {
    /// The server, by URL or as "host=… dbname=…", instead of --backend. Default: $PG_DSN, where no backend is named.
    #[arg(long, value_name = "DSN", global = true)]
    pub(crate) dsn: Option<String>,

    /// The first number of the election's advisory lock, instead of the hash of its name; with --key2.
    #[arg(long, value_name = "N", global = true, requires = "key2", allow_negative_numbers = true)]
    pub(crate) key1: Option<i32>,

    /// The second number of the election's advisory lock; with --key1.
    #[arg(long, value_name = "N", global = true, requires = "key1", allow_negative_numbers = true)]
    pub(crate) key2: Option<i32>,
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
    /// Try once to lead: take the lead, print its epoch, and let go.
    Acquire(Acquire),
    /// Show who leads. Changes nothing.
    Status(Status),
    /// Print a line for every change of an election. Changes nothing.
    Watch(Watch),
    /// Ask the leader, wherever it runs, to hand over; prints for how long nobody led.
    StepDown(StepDown),
    /// Show past leaderships, where the backend keeps them.
    History(History),
    Doctor(Doctor),
    Top(Top),
    #[cfg(feature = "postgres")]
    Postgres(Postgres),
    /// Print completions for a shell.
    Completions(Completions),
    /// Print the manual page.
    Man,
    /// Print a table of the documents.
    #[command(hide = true)]
    Tables(Tables),
    /// Show what the timing settings mean: when work stops, when somebody else takes over, what is tolerated.
    Explain(Explain),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Run {
    /// The election: any name; candidates with the same name and backend compete.
    #[arg(value_name = "ELECTION")]
    pub(crate) election: ElectionName,

    #[command(flatten)]
    pub(crate) timing: Timing,

    #[command(flatten)]
    pub(crate) standing: Standing,

    /// Leave when the leadership ends, instead of standing again.
    #[arg(long, visible_alias = "no-auto-reacquire")]
    pub(crate) once: bool,

    /// Give up when the first leadership has not come within this time.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) wait: Option<Duration>,

    /// Give up as soon as a living leader is seen. A record that may be a dead leader's is watched for its ttl first.
    #[arg(short, long, conflicts_with = "wait")]
    pub(crate) nonblock: bool,

    /// The exit code for "did not get to lead".
    #[arg(short = 'E', value_name = "CODE", default_value_t = 75)]
    pub(crate) code: u8,

    /// Print every event as one JSON object a line, on stdout or to FILE.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub(crate) events: Option<PathBuf>,

    /// Run on every event, by /bin/sh -c, with the event's JSON on standard input. Bounded in time; delays nothing.
    #[arg(long, value_name = "CMD")]
    pub(crate) hook: Option<String>,

    #[command(flatten)]
    pub(crate) health: HealthFlags,

    /// Between TERM and KILL to the command; must fit before the deadline. Default: a tenth of the ttl, at least 100ms.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) grace: Option<Duration>,

    /// Make no PID namespace for the command even where it may be made: for a command that must know its own process id,
    /// or others', as the rest of the system does, or whose mounts are for everybody.
    #[arg(long)]
    pub(crate) no_pid_namespace: bool,

    /// Runs only while leading: executed directly, never through a shell, and ended with everything that it started
    /// before the leadership ends. It gets BELLWETHER_ELECTION, BELLWETHER_ID and BELLWETHER_EPOCH.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// A health check by a command.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Health")]
pub(crate) struct HealthFlags {
    /// Only a candidate for which this ends with 0 stands, and a leader for which it does not steps down. By /bin/sh -c.
    #[arg(long, value_name = "CMD")]
    pub(crate) health_cmd: Option<String>,

    /// How often, and for how long at the most, the health command runs.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "5s")]
    pub(crate) health_cmd_interval: Duration,

    /// How many failures in a row make a candidate unfit.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) health_cmd_failures: u32,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Acquire {
    /// The election.
    #[arg(value_name = "ELECTION")]
    pub(crate) election: ElectionName,

    #[command(flatten)]
    pub(crate) timing: Timing,

    /// Keep the lead until interrupted.
    #[arg(long)]
    pub(crate) hold: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Status {
    /// The election; all that the store can list if left out.
    #[arg(value_name = "ELECTION")]
    pub(crate) election: Option<ElectionName>,

    /// Watch until the holder renews, or its ttl has passed without a sign of life.
    #[arg(long, requires = "election")]
    pub(crate) confirm: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Watch {
    /// The election; all that the store can list if left out.
    #[arg(value_name = "ELECTION")]
    pub(crate) election: Option<ElectionName>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct StepDown {
    /// The election.
    #[arg(value_name = "ELECTION")]
    pub(crate) election: ElectionName,

    /// Keep the lead for this candidate for a moment.
    #[arg(long, value_name = "ID")]
    pub(crate) to: Option<CandidateId>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct History {
    /// The election.
    #[arg(value_name = "ELECTION")]
    pub(crate) election: ElectionName,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Completions {
    /// The shell.
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Tables {
    pub(crate) table: Table,
}

/// The tables that are printed from the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Table {
    ExitCodes,
    Reasons,
    ErrorKinds,
    RunFlags,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Explain {
    #[command(flatten)]
    pub(crate) timing: Timing,

    /// Between TERM and KILL to a command.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) grace: Option<Duration>,

    #[command(flatten)]
    pub(crate) standing: Standing,
}

/// Lease, renewal, retry.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Timing")]
pub(crate) struct Timing {
    /// How long a lease lasts without renewal: as long as a silent leader keeps others waiting. Default: 15s, or what the
    /// profile in the backend's URL goes by.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) ttl: Option<Duration>,

    /// From one renewal to the next. Default: a third of the ttl.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) renew: Option<Duration>,

    /// The same as --renew; a plain number is in seconds.
    #[arg(long, value_name = "DURATION", value_parser = duration_or_seconds, conflicts_with = "renew")]
    pub(crate) health_interval: Option<Duration>,

    /// How long to wait before trying again where the store announces no changes. Default: 2/15 of the ttl.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) retry: Option<Duration>,
}

/// How to stand.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Standing")]
pub(crate) struct Standing {
    /// After a loss in doubt, try for so long to get back before calling it lost.
    #[arg(long, value_name = "DURATION", value_parser = duration_or_seconds)]
    pub(crate) reconnect_grace: Option<Duration>,

    /// While leading, bear a lost connection for so long; then let go, even if the lease would last longer. At least two
    /// renewals. It never prolongs a leadership: the deadline ends it all the same.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) disconnect_grace: Option<Duration>,

    /// Let go after so many renewals in a row that failed or got no answer in time, instead of at the deadline.
    #[arg(long, value_name = "N")]
    pub(crate) failed_renewals: Option<u32>,

    /// While leading, read the record back this often, and let go if it is not ours. At least one renewal interval; renewals
    /// prove as much, so this is for those who want to know between two of them.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) validate_every: Option<Duration>,

    /// On stopping, leave the record to run out instead of releasing it: nobody takes over while this is restarted quickly,
    /// and nobody leads until the ttl has passed if it is not.
    #[arg(long)]
    pub(crate) no_release_on_stop: bool,

    /// After stepping down, stay away for so long, also over a restart.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) cooldown: Option<Duration>,

    /// The greater priority may ask the smaller to hand over.
    #[arg(long, value_name = "N", default_value_t = 0, allow_hyphen_values = true)]
    pub(crate) priority: i32,

    /// Ask a leader of smaller priority to hand over.
    #[arg(long)]
    pub(crate) preempt: bool,

    /// The first pause after an error.
    #[arg(long, value_name = "DURATION", value_parser = duration_or_seconds)]
    pub(crate) retry_base: Option<Duration>,

    /// The longest pause after errors.
    #[arg(long, value_name = "DURATION", value_parser = duration_or_seconds)]
    pub(crate) retry_max: Option<Duration>,

    /// Take the record of an earlier start of this id without proof of its death. Only where you know that it is
    /// dead: two with one id would both lead.
    #[arg(long)]
    pub(crate) danger_reclaim: bool,
}

impl Timing {
    /// Into the library's options.
    pub(crate) fn apply(&self, options: &mut Options) {
        if let Some(ttl) = self.ttl {
            // A cooldown of one lease stays one, and intervals of a profile are those of its own lease.
            options.cooldown =
                options.cooldown.map(|span| if span == options.timing.ttl { ttl } else { span });
            options.timing = TimingOptions { ttl, renew: None, retry: None, ..options.timing };
        }
        options.timing.renew = self.renew.or(self.health_interval).or(options.timing.renew);
        options.timing.retry = self.retry.or(options.timing.retry);
    }
}

impl Standing {
    /// Into the library's options.
    pub(crate) fn apply(&self, options: &mut Options) {
        options.reconnect_grace = self.reconnect_grace.or(options.reconnect_grace);
        options.cooldown = self.cooldown.or(options.cooldown);
        options.disconnect_grace = self.disconnect_grace.or(options.disconnect_grace);
        options.failed_renewals = self.failed_renewals.or(options.failed_renewals);
        options.validation = self.validate_every.or(options.validation);
        options.release_on_stop &= !self.no_release_on_stop;
        options.priority = self.priority;
        options.preempt = self.preempt;
        options.danger_reclaim = self.danger_reclaim;
        if self.retry_base.is_some() || self.retry_max.is_some() {
            let usual = Exponential::default();
            let base = self.retry_base.unwrap_or(usual.base);
            let max = self.retry_max.unwrap_or(usual.max).max(base);
            options.strategy = std::sync::Arc::new(Exponential { base, max, ..usual });
        }
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    bellwether::core::duration::parse(text)
        .ok_or_else(|| format!("not a duration; write it like 500ms, 10s or 1m30s: {text:?}"))
}

/// For the flags whose names others have coined, with plain seconds.
fn duration_or_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.map_or_else(|| duration(text), Ok)
}
