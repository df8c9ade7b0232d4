//! Clients in other languages, two of one language, each beside an agent of its own: killed, stopped and handed over, round after round.

mod language;

use std::fmt;
use std::path::Path;
use std::time::Duration;

use bellwether_core::Boot;
use bellwether_deadman::boot_now;
use rustix::process::Signal;

use crate::{Candidate, Led, Overlap, bellwether, overlaps, run_to_end, until_blocking};

pub use language::Language;

/// What is done to the one that leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// `SIGKILL`: to the client, to its agent, to both.
    Kill,
    /// `SIGSTOP` until the other leads, and then `SIGCONT`: to the client, to its agent, to both.
    Pause,
    /// `step-down`, `SIGTERM` to the client, `SIGTERM` to its agent.
    Handover,
}

impl Trouble {
    /// All of them.
    pub const ALL: [Trouble; 3] = [Trouble::Kill, Trouble::Pause, Trouble::Handover];
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Trouble::Kill => "kill",
            Trouble::Pause => "pause",
            Trouble::Handover => "handover",
        })
    }
}

/// What came of it.
#[derive(Debug, Default)]
pub struct ClientFigures {
    /// Leaderships that were told of.
    pub leaderships: usize,
    /// From the trouble until the other client worked.
    pub gaps: Vec<Duration>,
    /// Two that led at once.
    pub overlaps: Vec<Overlap>,
    /// Signs of work while somebody else led.
    pub intrusions: Vec<String>,
}

impl ClientFigures {
    /// Above a table of figures.
    pub const HEADING: &str =
        "language    trouble    rounds  leaderships  overlaps  intrusions  gap: median     longest";

    /// What must not be.
    pub fn complaints(&self) -> Vec<String> {
        let overlaps = self.overlaps.iter().map(|overlap| format!("two at once: {overlap:?}"));
        overlaps.chain(self.intrusions.iter().cloned()).collect()
    }
}

impl fmt::Display for ClientFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut gaps = self.gaps.clone();
        gaps.sort();
        let at = |index: usize| gaps.get(index).copied().unwrap_or_default().as_millis();
        let [median, longest] = [at(gaps.len() / 2), at(gaps.len().saturating_sub(1))];
        let (rounds, led) = (gaps.len(), self.leaderships);
        let (overlaps, intrusions) = (self.overlaps.len(), self.intrusions.len());
        write!(f, "{rounds:>7}  {led:>11}  {overlaps:>8}  {intrusions:>10}  {median:>8} ms  {longest:>7} ms")
    }
}

/// So many rounds of one trouble, in one language.
pub fn series(language: Language, trouble: Trouble, rounds: usize) -> ClientFigures {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut all = ClientRounds::start(language, directory.path());
    (0..rounds).for_each(|_| all.round(trouble));
    all.judged()
}

/// The judgement of clients by what they have said.
pub fn judged(all: &[&Candidate]) -> ClientFigures {
    let led: Vec<Led> = all.iter().flat_map(|client| client.leaderships()).collect();
    let mut figures = ClientFigures { leaderships: led.len(), ..ClientFigures::default() };
    figures.overlaps = overlaps(all.iter().copied());
    for client in all {
        for beat in client.said.iter().filter(|line| line.event() == "beat") {
            let who = beat.text("incarnation").unwrap_or_default();
            let intruded = led
                .iter()
                .find(|other| other.who != who && other.from < beat.boot() && beat.boot() < other.until);
            if let Some(other) = intruded {
                figures.intrusions.push(format!("{beat} while {other:?}"));
            }
        }
    }
    figures
}

struct Seat {
    id: &'static str,
    agent: Candidate,
    client: Candidate,
}

/// Two seats, and all clients that there ever were.
pub struct ClientRounds<'a> {
    language: Language,
    directory: &'a Path,
    seats: [Seat; 2],
    /// Killed, or ended.
    gone: Vec<Candidate>,
    round: usize,
    figures: ClientFigures,
}

impl ClientRounds<'_> {
    /// Starts both.
    pub fn start(language: Language, directory: &Path) -> ClientRounds<'_> {
        let seats = ["a", "b"].map(|id| Seat::start(language, directory, id));
        ClientRounds {
            language,
            directory,
            seats,
            gone: Vec::new(),
            round: 0,
            figures: ClientFigures::default(),
        }
    }

    /// One round: trouble for the one that leads, until the other does.
    pub fn round(&mut self, trouble: Trouble) {
        let at = self.leader();
        let kind = self.round % 3;
        self.round += 1;
        let (client, agent) = (kind != 1, kind != 0);
        let before = match (trouble, kind) {
            (Trouble::Handover, 0) => self.step_down(),
            (Trouble::Handover, 1) => self.seats[at].client.signal(Signal::TERM),
            (Trouble::Handover, _) => self.seats[at].agent.signal(Signal::TERM),
            (Trouble::Kill | Trouble::Pause, _) => {
                let before = boot_now();
                let seat = &mut self.seats[at];
                let signal = |candidate: &mut Candidate| match trouble {
                    Trouble::Kill => candidate.kill(),
                    _ => candidate.signal(Signal::STOP),
                };
                client.then(|| signal(&mut seat.client));
                agent.then(|| signal(&mut seat.agent));
                before
            }
        };
        let other = &mut self.seats[1 - at].client;
        let took_over = until_blocking(|| working_since(other).ok_or("the other client does not work"));
        self.figures.gaps.push(took_over.since(before));
        let (gone_client, gone_agent) = match (trouble, kind) {
            (Trouble::Kill, _) => (client, agent),
            (Trouble::Handover, 1) => (true, false),
            (Trouble::Handover, 2) => (false, true),
            (Trouble::Handover, _) => (false, false),
            (Trouble::Pause, _) => {
                let seat = &mut self.seats[at];
                client.then(|| seat.client.signal(Signal::CONT));
                agent.then(|| seat.agent.signal(Signal::CONT));
                (false, false)
            }
        };
        self.replace(at, gone_client, gone_agent);
        // The one that had the trouble has found out what came of it.
        until_blocking(|| match working_since(&mut self.seats[at].client) {
            Some(since) if since < took_over => Err("the client has not said that its work has ended"),
            _ => Ok(()),
        });
    }

    /// The judgement of all rounds.
    pub fn judged(mut self) -> ClientFigures {
        for seat in &mut self.seats {
            seat.client.drain();
        }
        let all: Vec<&Candidate> =
            self.gone.iter().chain(self.seats.iter().map(|seat| &seat.client)).collect();
        ClientFigures { gaps: self.figures.gaps, ..judged(&all) }
    }

    fn leader(&mut self) -> usize {
        until_blocking(|| {
            let since = self.seats.each_mut().map(|seat| working_since(&mut seat.client));
            match since {
                [None, None] => Err("no client works"),
                [first, second] => Ok(usize::from(second > first)),
            }
        })
    }

    /// Asks for a handover, again if the other was not there yet: it may just have been started.
    fn step_down(&self) -> Boot {
        until_blocking(|| {
            let before = boot_now();
            let mut command = std::process::Command::new(bellwether());
            command.arg("--backend").arg(format!("file:{}", self.directory.join("store").display()));
            command.args(["step-down", "job"]);
            let output = run_to_end(command);
            if output.status.success() { Ok(before) } else { Err(format!("{output:?}")) }
        })
    }

    /// Waits for the end of those that end, and starts others in their place.
    fn replace(&mut self, at: usize, client: bool, agent: bool) {
        let seat = &mut self.seats[at];
        if agent {
            seat.agent.exit_code();
            seat.agent = Seat::agent(self.directory, seat.id);
        }
        if client {
            seat.client.exit_code();
            // What it still said.
            seat.client.ended();
            let next = Seat::client(self.language, self.directory, seat.id);
            self.gone.push(std::mem::replace(&mut seat.client, next));
        }
    }
}

impl Seat {
    fn start(language: Language, directory: &Path, id: &'static str) -> Seat {
        let agent = Seat::agent(directory, id);
        Seat { id, agent, client: Seat::client(language, directory, id) }
    }

    fn agent(directory: &Path, id: &str) -> Candidate {
        let address = address(directory, id);
        let flags = ["--ttl", "1s", "--for-clients", "--http", &address];
        Candidate::on_file(&directory.join("store"), "job", id, &flags)
    }

    fn client(language: Language, directory: &Path, id: &str) -> Candidate {
        Candidate::start(language.witness(&address(directory, id)))
    }
}

/// The address of an agent.
pub fn address(directory: &Path, id: &str) -> String {
    format!("unix:{}", directory.join(id).display())
}

/// Since when a client works, if it does.
pub fn working_since(client: &mut Candidate) -> Option<Boot> {
    client.drain();
    let last = client.said.iter().rev().find(|line| matches!(line.event(), "acquired" | "released"));
    last.filter(|line| line.event() == "acquired").map(crate::EventLine::boot)
}
