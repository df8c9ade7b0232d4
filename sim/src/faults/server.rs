//! What happens to a server of sessions.

use super::WorldFault;
use crate::queue::WorldEvent;
use crate::session::wire::{SessionKind, SessionNumber};
use crate::world::{World, say};

impl World {
    /// The server crashes, or one of its processes does, which ends all sessions as well; or a standby takes its place.
    /// Some clients hear of it at once, the others when they next ask.
    pub(super) fn restart_server(&mut self, fault: WorldFault) {
        let behind = self.rng.below(40);
        let Some(sessions) = &mut self.sessions else { return };
        if sessions.server.down {
            return;
        }
        self.tally.count(fault);
        sessions.last_holders.extend(sessions.server.locks.values().map(|hold| hold.by));
        let ended = sessions.server.crash((fault == WorldFault::Promotion).then_some(behind));
        let down = match self.rng.below(3) {
            0 => self.a_while(),
            _ => self.rng.below(self.options.shortest_ttl() / 10),
        };
        say!(self, "server: {fault}, away for {down}ns");
        self.queue.push(self.now + down, WorldEvent::ServerUp);
        for id in ended {
            if self.rng.one_in(2) {
                self.hang_up(id);
            }
        }
    }

    pub(crate) fn server_up(&mut self) {
        let now = self.now;
        let Some(sessions) = &mut self.sessions else { return };
        if sessions.server.down {
            sessions.server.up(now);
            let holders = std::mem::take(&mut sessions.last_holders);
            say!(self, "server: up");
            self.read_backlog();
            for session in holders {
                self.announce_end(session);
            }
        }
    }

    /// Somebody ends one session by hand: mostly one of the leader's.
    ///
    /// Never both of one process within two ttls: against that no taker can defend itself, and GUARANTEES.md says so.
    pub(super) fn terminate(&mut self, victim: usize) {
        let now = self.now;
        let Some(sessions) = &self.sessions else { return };
        let own = || sessions.lines.iter().filter(|(_, line)| line.node == victim);
        let of = |kind: SessionKind| {
            let alive = |(id, _): &(&SessionNumber, _)| sessions.server.sessions.contains_key(*id);
            own().filter(|(_, line)| line.kind == kind).filter(alive).map(|(id, _)| *id).next_back()
        };
        let wanted = if self.rng.below(4) == 0 { SessionKind::Presence } else { SessionKind::Lock };
        let recently = now.saturating_sub(2 * self.options.longest_ttl());
        let other_ended = own().any(|(_, line)| {
            line.kind != wanted && line.ended_by_hand.is_some_and(|ended| ended >= recently)
        });
        let Some(id) = of(wanted).filter(|_| !other_ended) else { return };
        self.tally.count(WorldFault::Terminate);
        say!(self, "server: {id:x} of {victim} ({wanted:?}) is ended by hand");
        // What tells the process is lost every other time, and with it whatever it still asks there.
        let told = self.rng.one_in(2);
        if let Some(line) = self.sessions.as_mut().and_then(|sessions| sessions.lines.get_mut(&id)) {
            line.ended_by_hand = Some(now);
            line.dead |= !told;
        }
        self.end_session(id, told);
    }
}
