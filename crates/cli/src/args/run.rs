//! The flags of `bellwether run`, and those of timing and standing that others share.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use bellwether::{ElectionName, Exponential, Options};
use bellwether_vip::VirtualAddress;
use clap::{Args as ClapArgs, ValueEnum};

use super::{duration, duration_or_seconds, election, interval_from};

#[derive(Debug, ClapArgs)]
pub(crate) struct Run {
    /// The name of the election: candidates with the same name and backend compete. Optional with --key1 and --key2.
    #[arg(value_name = "ELECTION", value_parser = election)]
    pub(crate) election: Option<ElectionName>,

    /// Exit when the leadership ends, instead of competing again.
    #[arg(long, visible_alias = "no-auto-reacquire")]
    pub(crate) once: bool,

    /// Give up if the first leadership is not acquired within this time.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) wait: Option<Duration>,

    /// Give up as soon as a living leader is seen, or if this candidate is unhealthy or in cooldown. If the leader may be dead, wait for
    /// its ttl first.
    #[arg(short, long, conflicts_with = "wait")]
    pub(crate) nonblock: bool,

    /// The exit code for "did not become leader".
    #[arg(short = 'E', value_name = "CODE", default_value_t = 75)]
    pub(crate) code: u8,

    /// Write every event as one line of JSON, to stdout or to FILE.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub(crate) events: Option<PathBuf>,

    /// Also write an event `renewed` for every renewal. With them, `bellwether audit` knows until when a leader believed that was killed.
    #[arg(long, requires = "events")]
    pub(crate) events_renewals: bool,

    /// Run CMD with /bin/sh -c for every event, with the event's JSON on standard input. It is killed after 10s and delays nothing else.
    /// On exit, events that wait are still handed over for up to 5s.
    #[arg(long, value_name = "CMD")]
    pub(crate) hook: Option<String>,

    /// Run the hook for these events only, separated by commas: acquired,lost,released
    #[arg(long, value_name = "EVENTS", value_delimiter = ',', hide_possible_values = true,
          value_parser = clap::builder::PossibleValuesParser::new(bellwether::What::examples().iter().map(bellwether::What::as_str)))]
    pub(crate) hook_on: Vec<String>,

    /// Time between TERM and KILL when a deadline forces the command's end; must fit before the deadline. Default: a tenth of
    /// the ttl, at least 100ms.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) grace: Option<Duration>,

    /// Time between TERM and KILL on a planned end: a signal, `step-down`, preemption, a failed health check. The lease is still
    /// renewed meanwhile, and the deadline still applies. A client of --http has as long to stop its work.
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = super::STOP_TIMEOUT)]
    pub(crate) stop_timeout: Duration,

    /// Restart a command that ended by itself, under the same leadership, with growing pauses. A command that Ctrl-C ended at a terminal
    /// is not restarted.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    pub(crate) restart: Restart,

    /// Keep the lease for this long from the command's start, even if the command ends earlier, so that a cron job on several hosts runs
    /// once.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) keep_for: Option<Duration>,

    /// Hold this address while leading, as 10.0.0.9/24@eth0: from before the command's start until its end, or, without a command, for the
    /// whole leadership. Needs a ttl of at least 6s, Linux, CAP_NET_ADMIN and CAP_NET_RAW.
    #[arg(long, value_name = "ADDR/PREFIX@IFACE")]
    pub(crate) vip: Option<VirtualAddress>,

    /// Run LINE with /bin/sh -c, instead of COMMAND.
    #[arg(short = 'c', value_name = "LINE", conflicts_with = "command")]
    pub(crate) line: Option<OsString>,

    /// Make no PID namespace for the command even if permitted: for a command that needs the process ids of the rest of the system, or
    /// whose mounts must be visible outside.
    #[arg(long)]
    pub(crate) no_pid_namespace: bool,

    /// The command to run only while leading. It is executed directly, not by a shell. It ends, with every process that it started, before
    /// the leadership ends. Its environment has BELLWETHER_ELECTION, BELLWETHER_ID and BELLWETHER_EPOCH.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,

    // Last: their headings count for everything after them.
    #[command(flatten)]
    pub(crate) timing: TimingFlags,

    #[command(flatten)]
    pub(crate) standing: StandingFlags,

    #[command(flatten)]
    pub(crate) health: HealthFlags,

    #[cfg(feature = "http")]
    #[command(flatten)]
    pub(crate) http: super::HttpFlags,
}

impl Run {
    /// The flags, by their ids, that mean nothing without a command.
    pub(crate) const OF_COMMAND: [&str; 5] =
        ["grace", "stop_timeout", "restart", "keep_for", "no_pid_namespace"];

    /// COMMAND and its arguments, or the shell for a line; nothing without either.
    pub(crate) fn command_line(&self) -> Vec<OsString> {
        match &self.line {
            Some(line) => vec!["/bin/sh".into(), "-c".into(), line.clone()],
            None => self.command.clone(),
        }
    }
}

/// When a command that ended by itself is started again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Restart {
    /// Never: `bellwether` exits with the command's code.
    #[default]
    No,
    /// When it ended with another code than 0.
    OnFailure,
    /// Whatever it ended with.
    Always,
}

impl Restart {
    pub(crate) fn after(self, code: u8) -> bool {
        match self {
            Restart::No => false,
            Restart::OnFailure => code != 0,
            Restart::Always => true,
        }
    }
}

/// A health check by a command.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Health")]
pub(crate) struct HealthFlags {
    /// Compete only while CMD exits 0; a leader whose CMD fails steps down. Run with /bin/sh -c.
    #[arg(long, value_name = "CMD")]
    pub(crate) health_cmd: Option<String>,

    /// How often the health command runs, and how long it may take.
    #[arg(long, value_name = "DURATION", value_parser = health_interval, default_value = "5s")]
    pub(crate) health_cmd_interval: Duration,

    /// How many failures in a row make a candidate unhealthy.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) health_cmd_failures: u32,
}

/// At a shorter interval, the machine does nothing but start health commands.
const SHORTEST_HEALTH_INTERVAL: Duration = Duration::from_millis(10);

fn health_interval(text: &str) -> Result<Duration, String> {
    interval_from(SHORTEST_HEALTH_INTERVAL, text)
}

/// Lease, renewal, retry.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Timing")]
pub(crate) struct TimingFlags {
    /// How long a lease lasts without renewal, and so how long others wait for a silent leader. Default: 15s, or that of the profile in
    /// the backend's URL.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) ttl: Option<Duration>,

    /// The time between renewals. Default: a third of the ttl.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) renew: Option<Duration>,

    /// The same as --renew; a plain number is in seconds.
    #[arg(long, value_name = "DURATION", value_parser = duration_or_seconds, conflicts_with = "renew")]
    pub(crate) health_interval: Option<Duration>,

    /// The time between attempts to lead, if the store does not announce changes. Default: 2/15 of the ttl.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) retry: Option<Duration>,
}

/// How to stand.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Standing")]
pub(crate) struct StandingFlags {
    /// When leadership becomes uncertain, try for this long to regain it before reporting it lost.
    #[arg(long, value_name = "DURATION", value_parser = duration_or_seconds)]
    pub(crate) reconnect_grace: Option<Duration>,

    /// While leading, tolerate a lost connection for this long; then step down, even if the lease would last longer. At least two
    /// renewals. It never prolongs a leadership: the deadline still applies.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) disconnect_grace: Option<Duration>,

    /// Step down after N renewals in a row have failed or got no answer in time, instead of at the deadline.
    #[arg(long, value_name = "N")]
    pub(crate) failed_renewals: Option<u32>,

    /// While leading, read the record back this often, and step down if it names another leader. At least one renewal interval. Renewals
    /// prove the same; this also checks between them.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) validate_every: Option<Duration>,

    /// On stopping, let the lease run out instead of releasing it: nobody takes over during a quick restart, but without a restart nobody
    /// leads until the ttl has passed.
    #[arg(long)]
    pub(crate) no_release_on_stop: bool,

    /// After stepping down, stay out of the election for this long, also across a restart.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) cooldown: Option<Duration>,

    /// This candidate's priority; see --preempt.
    #[arg(long, value_name = "N", default_value_t = 0, allow_hyphen_values = true)]
    pub(crate) priority: i32,

    /// Ask a leader of lower priority to hand over.
    #[arg(long)]
    pub(crate) preempt: bool,

    /// The first pause after an error.
    #[arg(long, value_name = "DURATION", value_parser = duration_or_seconds)]
    pub(crate) retry_base: Option<Duration>,

    /// The longest pause after errors.
    #[arg(long, value_name = "DURATION", value_parser = duration_or_seconds)]
    pub(crate) retry_max: Option<Duration>,

    /// Take over the record of an earlier process with this id without proof that it is dead. Use it only if you know that it is: two
    /// processes with one id would both lead.
    #[arg(long)]
    pub(crate) danger_reclaim: bool,
}

impl TimingFlags {
    /// Into the library's options.
    pub(crate) fn apply(&self, options: &mut Options) {
        if let Some(ttl) = self.ttl {
            // A cooldown of one lease stays one, and intervals of a profile are those of its own lease.
            options.cooldown =
                options.cooldown.map(|span| if span == options.timing.ttl { ttl } else { span });
            (options.timing.ttl, options.timing.renew, options.timing.retry) = (ttl, None, None);
        }
        options.timing.renew = self.renew.or(self.health_interval).or(options.timing.renew);
        options.timing.retry = self.retry.or(options.timing.retry);
    }
}

impl StandingFlags {
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
