//! The end of a run: everything is put right, everybody leaves, and nothing is left behind.

use bellwether_core::Boot;
use bellwether_deadman::{ReadableFd, boot_now};
use rustix::process::Signal;

use super::Run;
use crate::limits::{GONE, LEAVING};
use crate::processes::Held;
use crate::seat::{Harm, Told};

impl Run {
    /// Ends everything that was started. Candidates leave in order, so that their last lines are written and the election is released.
    pub(super) async fn end(&mut self) {
        self.asking.iter().for_each(|process| process.signal(Signal::KILL));
        let now = boot_now();
        for seat in &mut self.seats {
            seat.proxies.iter().for_each(|proxy| proxy.heal());
            if let Some(Harm::Stopped(stopped)) = seat.trouble.take().map(|trouble| trouble.what) {
                stopped.iter().for_each(|process| process.signal(Signal::CONT));
            }
            if let Some(running) = seat.running.as_mut().filter(|running| running.told.is_none()) {
                running.told = Some(Told::ToLeave { by: now + self.settings.ttl + LEAVING });
                running.held.signal(Signal::TERM);
            }
        }
        while self.seats.iter().any(|seat| seat.running.is_some()) {
            let due = self.next_due().unwrap_or_else(|| boot_now() + GONE);
            tokio::select! {
                Some(ended) = self.ends.1.recv() => self.has_ended(ended),
                () = tokio::time::sleep(due.since(boot_now())) => {
                    self.look_for_overdue(boot_now());
                    // What SIGKILL does not end is in the kernel for good.
                    if self.seats.iter().all(|seat| seat.is_killed_since(due)) {
                        break;
                    }
                }
            }
        }
        self.deliver_late_writes();
        self.look_for_leftovers(boot_now() + GONE).await;
        self.hear_all();
    }

    /// Guards may still be at their last work; whatever else is there was left behind.
    async fn look_for_leftovers(&mut self, due: Boot) {
        for process in self.mark.carried() {
            if !ended_by(&process, due).await {
                self.complain(format!("process {} was left behind", process.name()));
                process.signal(Signal::KILL);
            }
        }
    }
}

async fn ended_by(process: &Held, due: Boot) -> bool {
    let Ok(ended) = process.ended().and_then(ReadableFd::new) else { return false };
    tokio::time::timeout(due.since(boot_now()), ended.readable()).await.is_ok()
}
