//! The run: candidates, what is done to them by the plan, and what they say meanwhile.
//!
//! One task does all of it, on the thread that calls [`torture`], which the candidates are tied to. Others only wait for processes to end.

mod acts;
mod ending;
mod hearing;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use bellwether_audit::Audit;
use bellwether_core::{Boot, Epoch};
use bellwether_deadman::{ReadableFd, boot_now, random_bits};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::event_files::EventFiles;
use crate::limits::{COMPLAINTS, NEWS, first_leader};
use crate::processes::{Held, Mark};
use crate::protected::Protected;
use crate::proxy::Proxy;
use crate::report::{Hit, Recorded, Report};
use crate::seat::Seat;
use crate::settings::Settings;
use crate::{Kind, Step, plan, wall_clock, witness};

/// How often whoever watches is told at least.
const TICK: Duration = Duration::from_millis(250);

/// How it stands.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Since the first leadership.
    pub elapsed: Duration,
    /// Of the whole.
    pub length: Duration,
    /// Who leads, and under which epoch.
    pub leader: Option<(String, u64)>,
    /// How often that changed.
    pub changes: usize,
    /// How many faults were done.
    pub faults: usize,
    /// The last of them.
    pub last: Option<String>,
    /// What is wrong so far.
    pub complaints: usize,
}

/// Why there was nothing to judge.
#[derive(Debug)]
pub enum TortureError {
    /// Files, processes or ports of this machine.
    Machine(String),
    /// A candidate ended before anybody led: its exit code, and its last words.
    Candidate(u8, String),
    /// Nobody led within the time for it.
    NobodyLed(String),
    /// Interrupted before anybody led.
    Interrupted,
}

impl fmt::Display for TortureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TortureError::Machine(sentence)
            | TortureError::Candidate(_, sentence)
            | TortureError::NobodyLed(sentence) => f.write_str(sentence),
            TortureError::Interrupted => f.write_str("interrupted before anybody led"),
        }
    }
}

impl std::error::Error for TortureError {}

impl From<io::Error> for TortureError {
    fn from(error: io::Error) -> TortureError {
        TortureError::Machine(format!("torture cannot work here: {error}"))
    }
}

/// Everything about a run.
struct Run {
    settings: Settings,
    mark: Mark,
    seats: Vec<Seat>,
    files: EventFiles,
    protected: Protected,
    audit: Audit,
    ends: (Sender<Ended>, Receiver<Ended>),
    /// How many processes were started.
    starts: u64,
    /// Requests to step down that are under way.
    asking: Vec<Held>,
    leaderships: usize,
    hits: Vec<Hit>,
    /// Steps that nobody could be found for.
    missed: BTreeMap<Kind, usize>,
    /// Epochs of leaders that were not asked to stop: a write of theirs may still be under way.
    in_flight: Vec<Epoch>,
    last: Option<String>,
    complaints: Vec<String>,
    /// Those that are counted only.
    more_complaints: usize,
}

/// A candidate's process has ended.
struct Ended {
    seat: usize,
    number: u64,
    status: io::Result<ExitStatus>,
}

/// Runs candidates under faults until the time is over or `interrupted` is ready, and judges them. `told` hears how it stands, some times a
/// second.
///
/// Call it from a thread that outlives it: candidates end with that thread.
///
/// # Errors
/// When nobody ever led. Then nothing runs any more.
pub async fn torture(
    settings: Settings,
    interrupted: impl Future<Output = ()>,
    told: &mut dyn FnMut(&Progress),
) -> Result<Report, TortureError> {
    let mut interrupted = pin!(interrupted);
    let mut run = Run::new(settings).await?;
    let led = run.until_led(interrupted.as_mut()).await;
    let (begin, cut_short) = match led {
        Ok(()) => {
            let begin = boot_now();
            (begin, run.carry_out(begin, interrupted, told).await)
        }
        Err(error) => {
            run.end().await;
            return Err(error);
        }
    };
    let elapsed = boot_now().since(begin);
    run.end().await;
    Ok(run.recorded().report(elapsed, cut_short))
}

impl Run {
    async fn new(settings: Settings) -> Result<Run, TortureError> {
        let places = &settings.places;
        witness::tell_length(&places.witness(), settings.length)?;
        let names: Vec<String> = (1..=settings.candidates).map(|number| format!("c{number}")).collect();
        let files =
            EventFiles::in_directory(&places.all_events(), names.iter().map(|name| places.events(name)))?;
        let mut seats = Vec::new();
        for name in names {
            if settings.clock.is_some() {
                wall_clock::set(&places.clock(&name), 0)?;
            }
            let (mut proxies, mut url) = (Vec::new(), settings.backend.clone());
            if let Some(way) = &settings.way {
                for server in &way.servers {
                    proxies.push(Proxy::to(server.as_str()).await?);
                }
                let addresses: Vec<_> = proxies.iter().map(Proxy::address).collect();
                url =
                    (way.through)(&addresses, &places.of_candidate(&name)?).map_err(TortureError::Machine)?;
            }
            seats.push(Seat::new(name, url, proxies, places));
        }
        Ok(Run {
            mark: Mark::new(random_bits()),
            seats,
            files,
            protected: Protected::in_directory(places.witness(), settings.election.clone()),
            audit: Audit::new(),
            ends: channel(NEWS),
            starts: 0,
            asking: Vec::new(),
            leaderships: 0,
            hits: Vec::new(),
            missed: BTreeMap::new(),
            in_flight: Vec::new(),
            last: None,
            complaints: Vec::new(),
            more_complaints: 0,
            settings,
        })
    }

    /// Starts everybody, and waits until somebody leads.
    async fn until_led(
        &mut self,
        mut interrupted: impl Future<Output = ()> + Unpin,
    ) -> Result<(), TortureError> {
        for seat in 0..self.seats.len() {
            self.start(seat)?;
        }
        let limit = first_leader(self.settings.ttl);
        let due = boot_now() + limit;
        while self.leaderships == 0 {
            tokio::select! {
                () = self.files.grown() => self.hear_all(),
                Some(ended) = self.ends.1.recv() => {
                    let words = self.seats[ended.seat].last_words();
                    let code = ended.status.ok().and_then(|status| status.code()).unwrap_or(70);
                    return Err(TortureError::Candidate(code.try_into().unwrap_or(70), words));
                }
                () = tokio::time::sleep(due.since(boot_now())) => {
                    let words = self.seats[0].last_words();
                    return Err(TortureError::NobodyLed(format!("nobody led within {limit:?}: {words}")));
                }
                () = &mut interrupted => return Err(TortureError::Interrupted),
            }
        }
        Ok(())
    }

    /// Does what the plan says. True if it was cut short.
    async fn carry_out(
        &mut self,
        begin: Boot,
        mut interrupted: impl Future<Output = ()> + Unpin,
        told: &mut dyn FnMut(&Progress),
    ) -> bool {
        let end = begin + self.settings.length;
        let mut steps = plan(&self.settings.plan()).into_iter().peekable();
        let mut next_tick = begin;
        loop {
            self.hear_all();
            let now = boot_now();
            if now >= end {
                return false;
            }
            self.put_right(now);
            self.look_for_overdue(now);
            self.deliver_late_writes();
            while let Some(step) = steps.next_if(|step| self.comes_to_pass(step, begin, now)) {
                self.act(&step);
            }
            if now >= next_tick {
                told(&self.progress(begin));
                next_tick = now + TICK;
            }
            let due = steps.peek().map_or(end, |step| begin + step.at);
            // One that waits for a leader is looked at when somebody says something, and at the next tick.
            let due = if due > now { due } else { next_tick };
            let wake = [Some(due), Some(end), Some(next_tick), self.next_due()];
            let wake = wake.into_iter().flatten().min().unwrap_or(end);
            tokio::select! {
                () = tokio::time::sleep(wake.since(boot_now())) => {}
                () = self.files.grown() => {}
                Some(ended) = self.ends.1.recv() => self.has_ended(ended),
                () = &mut interrupted => return true,
            }
        }
    }

    /// Whether it is time for a step: it is due, and there is somebody to do it to, or nobody came for a ttl.
    fn comes_to_pass(&self, step: &Step, begin: Boot, now: Boot) -> bool {
        let due = begin + step.at;
        now >= due && (self.target(step.aim).is_some() || now >= due + self.settings.ttl)
    }

    fn progress(&self, begin: Boot) -> Progress {
        let leader = self.leader().map(|at| &self.seats[at]);
        Progress {
            elapsed: boot_now().since(begin),
            length: self.settings.length,
            leader: leader.and_then(|seat| Some((seat.name.clone(), seat.leads?))),
            changes: self.leaderships.saturating_sub(1),
            faults: self.hits.len(),
            last: self.last.clone(),
            complaints: self.complaints.len() + self.more_complaints + self.protected.told_broken().len(),
        }
    }

    /// The seat of whoever leads, by the candidates' own word. While a stopped one believes that it does, it is not that one.
    fn leader(&self) -> Option<usize> {
        let leading = self.seats.iter().enumerate().filter_map(|(at, seat)| Some((seat.leads?, at)));
        leading.max().map(|(_, at)| at)
    }

    fn start(&mut self, at: usize) -> io::Result<()> {
        self.starts += 1;
        let number = self.starts;
        let seat = &mut self.seats[at];
        seat.incarnation = None;
        let child = seat.start(number, &self.settings, &self.mark)?;
        let Some(running) = &self.seats[at].running else { return Ok(()) };
        let ended = running.held.ended()?;
        self.tell_of_end(at, number, child, ended);
        Ok(())
    }

    /// Has it told when this process has ended.
    fn tell_of_end(&self, seat: usize, number: u64, mut child: Child, ended: OwnedFd) {
        let ends = self.ends.0.clone();
        tokio::spawn(async move {
            if let Ok(ended) = ReadableFd::new(ended) {
                let _ = ended.readable().await;
            }
            // It does not wait: the process has ended.
            let status = child.wait();
            let _ = ends.send(Ended { seat, number, status }).await;
        });
    }

    fn recorded(self) -> Recorded {
        Recorded {
            settings: self.settings,
            audit: self.audit,
            protected: self.protected,
            hits: self.hits,
            complaints: self.complaints,
            more_complaints: self.more_complaints,
        }
    }

    fn complain(&mut self, sentence: String) {
        if self.complaints.len() < COMPLAINTS {
            self.complaints.push(sentence);
        } else {
            self.more_complaints += 1;
        }
    }
}
