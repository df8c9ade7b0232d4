//! Faults: done, and put right.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bellwether_core::{Boot, Epoch};
use bellwether_deadman::{ReadableFd, boot_now};
use rustix::process::Signal;

use super::Run;
use crate::limits::{LEAVING, SERVER_RESTART, STEP_DOWN};
use crate::processes::Held;
use crate::report::Hit;
use crate::roles::tied_command;
use crate::seat::{Harm, Told};
use crate::{Aim, Fault, Step, wall_clock};

impl Run {
    /// The seat that a step is for; `None` if nobody would be left who can lead, or there is no such candidate now.
    pub(super) fn target(&self, aim: Aim) -> Option<usize> {
        let untroubled = |at: &usize| self.seats[*at].is_untroubled();
        let able: Vec<usize> = (0..self.seats.len()).filter(untroubled).collect();
        if able.len() < 2 {
            return None;
        }
        let leader = self.leader();
        match aim {
            Aim::Leader => leader.filter(untroubled),
            Aim::Follower(number) => {
                let followers: Vec<usize> = able.into_iter().filter(|at| Some(*at) != leader).collect();
                followers.get(usize::from(number) % followers.len().max(1)).copied()
            }
        }
    }

    /// Does it, if there is somebody to do it to.
    pub(super) fn act(&mut self, step: &Step) {
        let kind = step.fault.kind();
        let Some(at) = self.target(step.aim) else {
            *self.missed.entry(kind).or_default() += 1;
            return;
        };
        let epoch = self.seats[at].leads;
        if kind.is_sudden() {
            self.in_flight.extend(epoch.and_then(Epoch::new));
        }
        let before = boot_now();
        if let Err(error) = self.harm(at, step.fault, before) {
            self.complain(format!("{} could not be done to {}: {error}", step.fault, self.seats[at].name));
            return;
        }
        let seat = &self.seats[at];
        self.hits.push(Hit { kind, incarnation: seat.incarnation.clone(), at: before });
        let whom = if epoch.is_some() { "leader " } else { "" };
        self.last = Some(format!("{} of {whom}{}", step.fault, seat.name));
    }

    fn harm(&mut self, at: usize, fault: Fault, before: Boot) -> std::io::Result<()> {
        let (ttl, mark) = (self.settings.ttl, self.mark.clone());
        let seat = &mut self.seats[at];
        let Some(running) = &mut seat.running else { return Ok(()) };
        match fault {
            Fault::Kill { .. } => {
                running.told = Some(Told::Killed { at: before });
                running.held.signal(Signal::KILL);
                seat.troubled(Harm::Gone, before, fault.span());
            }
            Fault::Restart { .. } => {
                running.told = Some(Told::ToLeave { by: before + ttl + LEAVING });
                running.held.signal(Signal::TERM);
                seat.troubled(Harm::Gone, before, fault.span());
            }
            Fault::Stop { .. } => {
                let stopped = vec![Held::open(running.held.pid)?];
                running.held.signal(Signal::STOP);
                seat.troubled(Harm::Stopped(stopped), before, fault.span());
            }
            Fault::Freeze { .. } => {
                // The candidate first: it must not notice that its guard is stopped and end the command.
                running.held.signal(Signal::STOP);
                let family = mark.family(running.held.pid);
                family.iter().for_each(|process| process.signal(Signal::STOP));
                seat.troubled(Harm::Stopped(family), before, fault.span());
            }
            Fault::StepDown => self.ask_to_step_down()?,
            Fault::ServerRestart => self.restart_server()?,
            Fault::Cut { .. } => {
                seat.proxies.iter().for_each(|proxy| proxy.silence());
                seat.troubled(Harm::Network, before, fault.span());
            }
            Fault::Reset { .. } => {
                seat.proxies.iter().for_each(|proxy| proxy.cut());
                seat.troubled(Harm::Network, before, fault.span());
            }
            Fault::Delay { by, .. } => {
                seat.proxies.iter().for_each(|proxy| proxy.slow(by));
                seat.troubled(Harm::Network, before, fault.span());
            }
            Fault::Clock { seconds, .. } => {
                wall_clock::set(&self.settings.places.clock(&seat.name), seconds)?;
                seat.troubled(Harm::Clock, before, fault.span());
            }
        }
        Ok(())
    }

    /// By the command for it, as people do, which goes straight to the store. What it answers does not matter: another fault may come in between.
    fn ask_to_step_down(&mut self) -> std::io::Result<()> {
        let log = File::options().create(true).append(true).open(self.settings.places.log("step-down"))?;
        let mut command = tied_command(&self.settings.program);
        command
            .args(["step-down", self.settings.election.as_str()])
            .env("BELLWETHER_BACKEND", &self.settings.backend);
        let (variable, value) = self.mark.variable();
        command.env(variable, value).env_remove("BELLWETHER_CONFIG").env_remove("PG_DSN");
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).process_group(0);
        let child = command.spawn()?;
        let held = Held::open(child.id().cast_signed())?;
        self.asking.push(Held::open(held.pid)?);
        end_within(child, held, STEP_DOWN)
    }

    /// By the user's command. Servers that it starts are the user's, so they carry no mark and are not ended with the run.
    fn restart_server(&mut self) -> std::io::Result<()> {
        let Some(line) = self.settings.server_restart.clone() else { return Ok(()) };
        let log =
            File::options().create(true).append(true).open(self.settings.places.log("server-restart"))?;
        let mut command = Command::new("/bin/sh");
        command
            .arg("-c")
            .arg(line)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0);
        let child = command.spawn()?;
        let held = Held::open(child.id().cast_signed())?;
        end_within(child, held, SERVER_RESTART)
    }

    /// Puts right what is over.
    pub(super) fn put_right(&mut self, now: Boot) {
        for at in 0..self.seats.len() {
            let seat = &mut self.seats[at];
            let is_gone = seat.running.is_none();
            let is_over = |harm: &Harm| !matches!(harm, Harm::Gone) || is_gone;
            let Some(trouble) =
                seat.trouble.take_if(|trouble| trouble.until <= now && is_over(&trouble.what))
            else {
                continue;
            };
            match trouble.what {
                Harm::Gone => {
                    if let Err(error) = self.start(at) {
                        let name = self.seats[at].name.clone();
                        self.complain(format!("{name} could not be started again: {error}"));
                        self.seats[at].troubled(Harm::Gone, now, self.settings.ttl);
                    }
                }
                Harm::Stopped(stopped) => stopped.iter().for_each(|process| process.signal(Signal::CONT)),
                Harm::Network => seat.proxies.iter().for_each(|proxy| proxy.heal()),
                // It was written before, so it can be now.
                Harm::Clock => drop(wall_clock::set(&self.settings.places.clock(&seat.name), 0)),
            }
        }
    }

    /// When something is to be put right next, or is overdue.
    pub(super) fn next_due(&self) -> Option<Boot> {
        let trouble = |trouble: &crate::seat::Trouble, is_gone: bool| {
            (!matches!(trouble.what, Harm::Gone) || is_gone).then_some(trouble.until)
        };
        let of = |seat: &crate::seat::Seat| {
            let leaves = seat.running.as_ref().and_then(|running| match running.told {
                Some(Told::ToLeave { by }) => Some(by),
                _ => None,
            });
            let right = seat.trouble.as_ref().and_then(|one| trouble(one, seat.running.is_none()));
            [leaves, right].into_iter().flatten().min()
        };
        self.seats.iter().filter_map(of).min()
    }
}

/// Sees a process off, which is killed if it takes longer.
fn end_within(mut child: Child, held: Held, limit: Duration) -> std::io::Result<()> {
    let ended = ReadableFd::new(held.ended()?)?;
    tokio::spawn(async move {
        if tokio::time::timeout(limit, ended.readable()).await.is_err() {
            held.signal(Signal::KILL);
            let _ = ended.readable().await;
        }
        // It does not wait: the process has ended.
        let _ = child.wait();
    });
    Ok(())
}
