//! A candidate's seat: its name and its files, which stay, and the process that has it at the moment.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::Duration;

use bellwether_core::Boot;
use bellwether_core::duration::print;

use crate::limits::LOG_TAIL_BYTES;
use crate::processes::{Held, Mark};
use crate::proxy::Proxy;
use crate::roles::{tied_command, witness_args};
use crate::settings::{Places, Settings};
use crate::wall_clock;

/// Where the URL of the backend is handed to candidates: it may hold a password, which a command line would show.
const BACKEND: &str = "BELLWETHER_BACKEND";
/// What would change what a candidate does: settings of the user's own candidates.
const UNSET: [&str; 4] = ["BELLWETHER_CONFIG", "BELLWETHER_ID", "BELLWETHER_BACKEND", "PG_DSN"];

/// A candidate.
#[derive(Debug)]
pub(crate) struct Seat {
    /// Its id.
    pub(crate) name: String,
    /// Where it reaches the store.
    pub(crate) url: String,
    /// On its way there, one for each server.
    pub(crate) proxies: Vec<Proxy>,
    /// `None` while nothing runs.
    pub(crate) running: Option<Running>,
    pub(crate) trouble: Option<Trouble>,
    /// The leadership that it has, by its own word.
    pub(crate) leads: Option<u64>,
    /// Which start of it spoke last.
    pub(crate) incarnation: Option<String>,
    pub(crate) log: PathBuf,
}

/// The process of a candidate.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) held: Held,
    /// Which start it is.
    pub(crate) number: u64,
    /// Why it ends, if it does.
    pub(crate) told: Option<Told>,
}

/// What a process was told that is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// SIGKILL: the instant before.
    Killed { at: Boot },
    /// TERM; it has to be gone by then.
    ToLeave { by: Boot },
}

/// What was done to a candidate, until it is put right.
#[derive(Debug)]
pub(crate) struct Trouble {
    pub(crate) until: Boot,
    pub(crate) what: Harm,
}

/// How it is put right.
#[derive(Debug)]
pub(crate) enum Harm {
    /// It is started again.
    Gone,
    /// These go on.
    Stopped(Vec<Held>),
    /// Its way to the store is healed.
    Network,
    /// Its wall clock is right again.
    Clock,
}

impl Seat {
    pub(crate) fn new(name: String, url: String, proxies: Vec<Proxy>, places: &Places) -> Seat {
        let log = places.log(&name);
        Seat { name, url, proxies, running: None, trouble: None, leads: None, incarnation: None, log }
    }

    /// Starts the candidate, tied to this thread. Its process is not a zombie before `Child::wait`, so it is the one that is held.
    pub(crate) fn start(&mut self, number: u64, settings: &Settings, mark: &Mark) -> io::Result<Child> {
        let places = &settings.places;
        let mut command = tied_command(&settings.program);
        let ttl = print(settings.ttl);
        command.args([
            "--id",
            &self.name,
            "run",
            settings.election.as_str(),
            "--ttl",
            &ttl,
            "--stop-timeout",
            &ttl,
        ]);
        let mut events = std::ffi::OsString::from("--events=");
        events.push(places.events(&self.name));
        command.arg(events).args(["--events-renewals", "--"]);
        command.args(witness_args(&settings.program, &places.witness()));
        let log = File::options().create(true).append(true).open(&self.log)?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        for name in UNSET {
            command.env_remove(name);
        }
        if let Some(library) = &settings.clock {
            wall_clock::load(&mut command, library, &places.clock(&self.name));
        }
        let (variable, value) = mark.variable();
        command.env(variable, value).env(BACKEND, &self.url);
        // Of its own, so that what is typed at the terminal is for torture alone.
        let child = command.process_group(0).spawn()?;
        let held = Held::open(child.id().cast_signed())?;
        self.running = Some(Running { held, number, told: None });
        Ok(child)
    }

    /// Whether it can lead: it runs, and nothing is done to it.
    pub(crate) fn is_untroubled(&self) -> bool {
        self.trouble.is_none() && self.running.as_ref().is_some_and(|running| running.told.is_none())
    }

    /// Whether nothing runs, or what does was killed before that.
    pub(crate) fn is_killed_since(&self, due: Boot) -> bool {
        let killed = |running: &Running| matches!(running.told, Some(Told::Killed { at }) if at < due);
        self.running.as_ref().is_none_or(killed)
    }

    pub(crate) fn troubled(&mut self, what: Harm, now: Boot, span: Duration) {
        self.trouble = Some(Trouble { until: now + span, what });
    }

    /// The last line of its log.
    pub(crate) fn last_words(&self) -> String {
        let read = || -> io::Result<String> {
            let mut log = File::open(&self.log)?;
            let end = log.seek(SeekFrom::End(0))?;
            log.seek(SeekFrom::Start(end.saturating_sub(LOG_TAIL_BYTES)))?;
            let mut bytes = Vec::new();
            log.take(LOG_TAIL_BYTES).read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        };
        let text = read().unwrap_or_default();
        text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing").to_owned()
    }
}
