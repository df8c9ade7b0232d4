//! Giving out leaderships: each to one client, until that client's work is known to be gone.

use std::mem::ManuallyDrop;
use std::sync::Arc;

use bellwether_deadman::{BootTimer, boot_now};
use bellwether_election::{Election, Leadership, StateName, Store};

use super::entry::{Entry, Place};
use super::told::{Answer, Told};
use super::{ClientGate, ProofKeeper, Roster, wake};
use crate::limits::LOOK_EVERY;

/// What it takes to give out leaderships.
struct Turns {
    roster: Arc<Roster>,
    election: Election,
    store: Store,
    keeper: Arc<dyn ProofKeeper>,
    gate: Option<ClientGate>,
}

/// How a client's turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TurnEnd {
    /// The client said so.
    Left,
    /// Its process is dead.
    Dead,
    /// Whatever it was told has run out.
    Silent,
}

/// Gives every leadership to one client, for as long as it is polled.
pub(crate) async fn take_turns(
    roster: Arc<Roster>,
    election: Election,
    store: Store,
    keeper: Arc<dyn ProofKeeper>,
    gate: Option<ClientGate>,
) {
    let turns = Turns { roster, election, store, keeper, gate };
    loop {
        turns.roster.forget_absent(boot_now());
        let leadership = turns.election.leadership();
        if let Some(gate) = &turns.gate {
            let is_wanted = !turns.roster.is_empty();
            match &leadership {
                // Nobody is there to do its work.
                Some(_) if !is_wanted => {
                    let _ = turns.election.step_down().await;
                    continue;
                }
                _ => gate.set(is_wanted || leadership.is_some()),
            }
        }
        match leadership.and_then(|leadership| Some((leadership, turns.roster.next()?))) {
            Some((leadership, entry)) => turns.give(leadership, &entry).await,
            None => turns.wait().await,
        }
    }
}

impl Turns {
    /// Waits until there may be a leadership and a client for it.
    async fn wait(&self) {
        let follows = self.election.leadership().is_none();
        tokio::select! {
            Ok(_) = self.election.wait_until(|status| status.state == StateName::Leader), if follows => {
                // The deadline of one that was stopped may have passed, and its driver not know of it yet.
                tokio::task::yield_now().await;
                if self.election.leadership().is_none() {
                    tokio::time::sleep(LOOK_EVERY).await;
                }
            }
            () = self.roster.changed() => {}
        }
    }

    /// One turn, from the first answer that it leads until its work is gone.
    async fn give(&self, leadership: Leadership, entry: &Arc<Entry>) {
        // Dropped only when the client's work is known to be gone. If this is dropped half-way, the leadership runs out.
        let Ok(hold) = leadership.hold().map(ManuallyDrop::new) else { return };
        let told = match self.told(&leadership, entry) {
            Ok(told) => Arc::new(told),
            Err(error) => {
                tracing::error!(%error, "no client can lead here: the process that keeps the proof of a crash does not start");
                drop(ManuallyDrop::into_inner(hold));
                let _ = self.election.step_down().await;
                tokio::time::sleep(LOOK_EVERY).await;
                return;
            }
        };
        let (on, epoch) = (leadership.election(), leadership.epoch());
        match told.answer(entry.heard(), boot_now()) {
            Answer::Leads(until) if until > boot_now() => {}
            // Over already, or what the client is told now would have run out.
            _ => {
                told.close();
                drop(ManuallyDrop::into_inner(hold));
                self.roster.remove(entry);
                return;
            }
        }
        tracing::info!("{on}: a client leads (epoch {epoch})");
        entry.proceed(Place::Leading(Arc::clone(&told)));
        let end = turn_end(entry, &told).await;
        match end {
            TurnEnd::Left => tracing::info!("{on}: the client has ended its work (epoch {epoch})"),
            TurnEnd::Dead => tracing::info!("{on}: the client's process has ended (epoch {epoch})"),
            TurnEnd::Silent => {
                tracing::warn!("{on}: the client was not heard of in time and is given up (epoch {epoch})");
                entry.proceed(Place::Silent(Arc::clone(&told)));
                self.wait_out(entry, &told).await;
            }
        }
        self.roster.remove(entry);
        told.close();
        drop(ManuallyDrop::into_inner(hold));
        if leadership.is_valid() {
            let _ = self.election.step_down().await;
        }
    }

    fn told(&self, leadership: &Leadership, entry: &Entry) -> std::io::Result<Told> {
        let pace = self.roster.pace;
        let proofs = self.store.backend().crash_proof(self.election.name(), &self.election.candidate());
        let kept = if proofs.is_empty() {
            None
        } else {
            let client = entry.process.as_ref().map(std::os::fd::AsFd::as_fd);
            Some(self.keeper.keep(&proofs, client, boot_now())?)
        };
        Ok(Told::new(leadership.epoch(), leadership.standing(), pace, kept))
    }

    /// After the silence of a client, as long as after that of a leader: clocks differ.
    async fn wait_out(&self, entry: &Entry, told: &Told) {
        let until = *told.until().borrow() + self.roster.pace.margin;
        let mut timer = BootTimer::new().ok();
        while boot_now() < until {
            tokio::select! {
                () = entry.left() => return,
                () = entry.dead() => return,
                () = wake(timer.as_mut(), until) => {}
            }
        }
    }
}

/// Waits for the end of the client's work.
async fn turn_end(entry: &Entry, told: &Told) -> TurnEnd {
    let mut timer = BootTimer::new().ok();
    let mut latest = told.until();
    loop {
        let until = *latest.borrow_and_update();
        if boot_now() >= until {
            return if entry.is_gone() { TurnEnd::Left } else { TurnEnd::Silent };
        }
        tokio::select! {
            () = entry.left() => return TurnEnd::Left,
            () = entry.dead() => return TurnEnd::Dead,
            _ = latest.changed() => {}
            () = wake(timer.as_mut(), until) => {}
        }
    }
}
