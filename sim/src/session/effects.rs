//! What statements and the ends of sessions bring about: locks that change hands, and what everybody is told.

use bellwether_core::{Epoch, Incarnation};

use super::line::Down;
use super::server::Effect;
use super::wire::{SentStatement, ServerNews, SessionKind, SessionNumber};
use crate::call::Purpose;
use crate::connection::lock;
use crate::invariants::exclusion::SimLeadership;
use crate::invariants::stale;
use crate::key::ElectionKey;
use crate::queue::WorldEvent;
use crate::world::{World, say};

impl World {
    pub(super) fn took_effect(&mut self, sent: &SentStatement, effect: &Effect) {
        for (key, epoch) in effect.granted.iter().copied() {
            self.tally.commits += 1;
            self.trace.mix(epoch.get());
            say!(self, "server: {key:?} under {epoch:?} to {:x}", sent.session);
            let claimer = self.claimer(sent, key);
            let election = self.election(key);
            let is_handover = std::mem::take(&mut election.is_released);
            let verdict = claimer
                .map_or(Ok(()), |who| election.owners.owns(SimLeadership { who, epoch }, &election.losses));
            self.judge(verdict);
            self.tally.handovers += u64::from(is_handover);
        }
        if let Some((key, epoch)) = effect.freed {
            say!(self, "server: {:x} releases {key:?} under {epoch:?}", sent.session);
            self.election(key).is_released = true;
            let working = self.working_under(key, epoch);
            self.judge(stale::check_freed(sent.purpose, epoch, working));
        }
        for notice in &effect.told {
            self.notify(&ServerNews::Notice(sent.session, notice.clone()));
        }
    }

    /// For whom a lock was claimed, if that is known: claims of several candidates go in one statement, on behalf of one of them.
    fn claimer(&self, sent: &SentStatement, key: ElectionKey) -> Option<Incarnation> {
        let Purpose::Claim(who) = sent.purpose else { return None };
        let node = self.sessions.as_ref()?.lines.get(&sent.session)?.node;
        let mut of = self.nodes[node].candidates.iter().filter(|candidate| candidate.key == key);
        match (of.next(), of.next()) {
            (Some(only), None) => Some(only.who.incarnation),
            _ => self.nodes[node].candidate_of(who).filter(|candidate| candidate.key == key).map(|_| who),
        }
    }

    fn working_under(&self, key: ElectionKey, epoch: Epoch) -> bool {
        let anybody = self.others_leading(key, None);
        anybody.iter().any(|leadership| leadership.epoch == epoch)
    }

    /// Everybody who listens is told, on the session that listens.
    fn notify(&mut self, news: &ServerNews) {
        let Some(sessions) = &self.sessions else { return };
        let listening =
            sessions.server.sessions.iter().filter(|(_, session)| session.kind == SessionKind::Presence);
        let listening: Vec<SessionNumber> = listening.map(|(id, _)| *id).collect();
        for id in listening {
            self.send_down(id, Down::News(news.clone()));
        }
    }

    /// A session is over at the server.
    pub(crate) fn end_session(&mut self, id: SessionNumber, told: bool) {
        let Some(sessions) = &mut self.sessions else { return };
        if !sessions.server.sessions.contains_key(&id) {
            return;
        }
        let had = sessions.server.end(id);
        say!(self, "server: {id:x} is over, and with it {had:?}");
        if told {
            self.hang_up(id);
        }
        for key in &had {
            self.election(*key).is_released = false;
        }
        if !had.is_empty() {
            self.announce_end(id);
        }
    }

    /// Followers park on the session that has a lock, and mostly hear when it ends.
    pub(crate) fn announce_end(&mut self, session: SessionNumber) {
        for node in self.alive() {
            if !lock(&self.nodes[node].connection).follows_any() {
                continue;
            }
            let Some(at) = self.heard_at(node) else { continue };
            self.queue.push(at, WorldEvent::Down(node, 0, Box::new(Down::News(ServerNews::Ended(session)))));
        }
    }
}
