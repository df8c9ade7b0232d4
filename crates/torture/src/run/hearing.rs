//! What candidates say, and how they end.

use std::fs::File;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;

use bellwether_audit::{Line, What};
use bellwether_core::{Boot, Epoch};
use bellwether_deadman::boot_id;
use rustix::process::Signal;
use serde_json::json;

use super::{Ended, Run};
use crate::seat::{Harm, Told};

impl Run {
    /// Takes in what was written since.
    pub(super) fn hear_all(&mut self) {
        for (at, line) in self.files.read() {
            self.hear(at, line);
        }
    }

    fn hear(&mut self, at: usize, line: Line) {
        let seat = &mut self.seats[at];
        if seat.incarnation.as_ref() != Some(&line.incarnation) {
            seat.incarnation = Some(line.incarnation.clone());
        }
        match line.what {
            What::Began { .. } => {
                seat.leads = line.epoch;
                self.leaderships += 1;
            }
            What::Ended { .. } | What::LeftLeader => seat.leads = None,
            _ => {}
        }
        self.audit.add(line);
    }

    /// A process has ended: as it was told to, or by itself, which none should.
    pub(super) fn has_ended(&mut self, ended: Ended) {
        // All that it wrote comes before its end.
        self.hear_all();
        let Ended { seat: at, number, status } = ended;
        let seat = &mut self.seats[at];
        let Some(running) = seat.running.take_if(|running| running.number == number) else { return };
        seat.leads = None;
        let how = match &status {
            Ok(status) => match (status.code(), status.signal()) {
                (Some(code), _) => format!("with code {code}"),
                (None, signal) => format!("by signal {}", signal.unwrap_or_default()),
            },
            Err(error) => format!("and cannot be waited for: {error}"),
        };
        match running.told {
            Some(Told::Killed { at: killed }) => self.tell_of_kill(at, killed),
            Some(Told::ToLeave { .. }) if status.as_ref().is_ok_and(|status| status.success()) => {}
            Some(Told::ToLeave { .. }) => {
                let (name, words) = (seat.name.clone(), seat.last_words());
                self.complain(format!("{name} was asked to leave and ended {how}: {words}"));
            }
            None => {
                let (name, words) = (seat.name.clone(), seat.last_words());
                self.complain(format!("{name} ended by itself {how}: {words}"));
                // Whatever was done to it is put right before it is started again.
                seat_is_gone(self, at);
            }
        }
    }

    /// Candidates that were asked to leave and have not.
    pub(super) fn look_for_overdue(&mut self, now: Boot) {
        for at in 0..self.seats.len() {
            let seat = &mut self.seats[at];
            let Some(running) = &mut seat.running else { continue };
            if matches!(running.told, Some(Told::ToLeave { by }) if by <= now) {
                running.told = Some(Told::Killed { at: now });
                running.held.signal(Signal::KILL);
                let name = seat.name.clone();
                self.complain(format!("{name} was asked to leave and did not"));
            }
        }
    }

    /// Nobody else can tell the judge when a candidate was killed.
    fn tell_of_kill(&mut self, at: usize, killed: Boot) {
        let seat = &self.seats[at];
        let Some(incarnation) = seat.incarnation.clone() else { return };
        let (election, id) = (self.settings.election.to_string(), seat.name.clone());
        let line = json!({
            "boot_ns": killed.as_nanos(), "boot_id": boot_id(), "election": election, "id": id,
            "incarnation": incarnation, "event": "killed",
        });
        let file = File::options().create(true).append(true).open(self.settings.places.kills());
        if let Err(error) = file.and_then(|mut file| writeln!(file, "{line}")) {
            self.complain(format!("the kill of {id} cannot be recorded: {error}"));
        }
        let boot_id = None;
        self.audit.add(Line {
            at: killed,
            election,
            id,
            incarnation,
            epoch: None,
            boot_id,
            what: What::Killed,
        });
    }

    /// What leaders had sent before they were struck may arrive after their successor's first write: here it does.
    pub(super) fn deliver_late_writes(&mut self) {
        if self.in_flight.is_empty() {
            return;
        }
        let fenced = self.protected.fenced();
        let is_late = |epoch: &Epoch| Some(*epoch) < fenced;
        let (late, waiting): (Vec<Epoch>, Vec<Epoch>) =
            std::mem::take(&mut self.in_flight).into_iter().partition(is_late);
        self.in_flight = waiting;
        for epoch in late {
            let unchecked = self.protected.write_unchecked(epoch, "late");
            let checked = self.protected.write_checked(epoch, "late");
            if let Err(error) = unchecked.and(checked.map(drop)) {
                self.complain(format!("the protected files cannot be written: {error}"));
            }
        }
    }
}

fn seat_is_gone(run: &mut Run, at: usize) {
    let ttl = run.settings.ttl;
    let seat = &mut run.seats[at];
    seat.proxies.iter().for_each(|proxy| proxy.heal());
    seat.troubled(Harm::Gone, bellwether_deadman::boot_now(), ttl);
}
