//! The server: a lock for each election, the presences, sessions that it ends when they fall silent, and numbers that only go up.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bellwether_backend::{LockHolder, Presence, SessionNotice};
use bellwether_core::{Boot, CandidateId, Epoch};

use super::wire::{
    LockState, LockWish, PresenceWish, SessionKind, SessionNumber, Statement, StatementAnswer,
};
use crate::clock::Machine;
use crate::key::ElectionKey;
use crate::time::Nanos;

/// An epoch is the timeline above so many bits of transaction id.
const XID_BITS: u32 = 40;

/// A session, as the server sees it.
#[derive(Debug)]
pub struct ServerSession {
    /// What it is for.
    pub kind: SessionKind,
    /// Ended after so much silence, while it holds anything.
    lease: Option<Duration>,
    /// The last statement ended then, by the server's clock.
    active: Boot,
    /// What it calls itself.
    name: Option<CandidateId>,
}

/// A lock that somebody has.
#[derive(Clone, Copy, Debug)]
pub struct HeldLock {
    /// Whose.
    pub by: SessionNumber,
    /// Locks are re-entrant: it has to be released as often.
    pub times: u32,
    /// The last epoch that was issued under it.
    pub epoch: Epoch,
}

/// Everything that the server knows.
#[derive(Debug)]
pub struct Server {
    /// Its clock.
    pub machine: Machine,
    /// Who is connected.
    pub sessions: BTreeMap<SessionNumber, ServerSession>,
    /// Who has which lock.
    pub locks: BTreeMap<ElectionKey, HeldLock>,
    present: BTreeSet<(ElectionKey, SessionNumber)>,
    timeline: u64,
    xid: u64,
    /// Since then it has not ended sessions of its own accord.
    quiet_since: Boot,
    /// Not running.
    pub down: bool,
}

/// What a statement brought about.
#[derive(Debug, Default)]
pub struct Effect {
    /// Epochs were issued under these locks.
    pub granted: Vec<(ElectionKey, Epoch)>,
    /// That lock was released, last held under this epoch.
    pub freed: Option<(ElectionKey, Epoch)>,
    /// What everybody is told.
    pub told: Vec<SessionNotice<ElectionKey>>,
}

impl Server {
    /// A server that has been up for long.
    pub fn new(machine: Machine) -> Server {
        Server {
            machine,
            sessions: BTreeMap::new(),
            locks: BTreeMap::new(),
            present: BTreeSet::new(),
            timeline: 1,
            xid: 700,
            quiet_since: Boot::default(),
            down: false,
        }
    }

    /// A client is let in.
    pub fn open(&mut self, now: Nanos, id: SessionNumber, kind: SessionKind) {
        let active = self.machine.boot(now);
        self.sessions.insert(id, ServerSession { kind, lease: None, active, name: None });
    }

    /// A session is over, for whatever reason. The locks that it had.
    pub fn end(&mut self, id: SessionNumber) -> Vec<ElectionKey> {
        self.sessions.remove(&id);
        self.present.retain(|(_, present)| *present != id);
        let had: Vec<ElectionKey> =
            self.locks.iter().filter(|(_, hold)| hold.by == id).map(|(key, _)| *key).collect();
        for key in &had {
            self.locks.remove(key);
        }
        had
    }

    /// When that session is to be ended for its silence, if it goes on; in true time.
    pub fn idle_at(&self, id: SessionNumber) -> Option<Nanos> {
        let session = self.sessions.get(&id)?;
        Some(self.machine.when(session.active + session.lease?))
    }

    /// Every session ends at once. Transaction ids that were handed out are durable here; a standby may not have seen
    /// the last of them, and has a timeline of its own instead.
    pub fn crash(&mut self, promoted: Option<u64>) -> Vec<SessionNumber> {
        self.down = true;
        self.locks.clear();
        self.present.clear();
        if let Some(behind) = promoted {
            self.timeline += 1;
            self.xid = self.xid.saturating_sub(behind).max(1);
        }
        std::mem::take(&mut self.sessions).into_keys().collect()
    }

    /// It runs again.
    pub fn up(&mut self, now: Nanos) {
        self.down = false;
        self.quiet_since = self.machine.boot(now);
    }

    /// Does what a session asks; `other_work` is how many transaction ids others have used meanwhile.
    pub fn execute(
        &mut self,
        now: Nanos,
        id: SessionNumber,
        statement: &Statement,
        other_work: u64,
    ) -> (StatementAnswer, Effect) {
        let boot = self.machine.boot(now);
        self.xid += other_work;
        let mut effect = Effect::default();
        let said = match statement {
            Statement::Open(_) | Statement::Close => StatementAnswer::Yes(true),
            Statement::Claim(wishes, lease) => {
                let tried = |wish: &LockWish| self.is_granted(id, wish);
                let granted: Vec<bool> = wishes.iter().map(tried).collect();
                // One transaction, and so one number for all of them.
                let epoch = granted.contains(&true).then(|| self.number());
                let each = wishes.iter().zip(granted);
                let states = each.map(|(wish, granted)| match epoch.filter(|_| granted) {
                    Some(epoch) => self.grant(id, wish, epoch, *lease, &mut effect),
                    None if wish.again => LockState::Free,
                    None => self.state_of(boot, wish.key),
                });
                StatementAnswer::Locks(states.collect())
            }
            Statement::Beat => {
                StatementAnswer::Has(match self.sessions.get(&id).map(|session| session.kind) {
                    Some(SessionKind::Lock) => {
                        let held = self.locks.iter().filter(|(_, hold)| hold.by == id);
                        held.map(|(key, _)| *key).collect()
                    }
                    _ => {
                        let present = self.present.iter().filter(|(_, present)| *present == id);
                        present.map(|(key, _)| *key).collect()
                    }
                })
            }
            Statement::Unlock(key, lease) => {
                self.bear(id, *lease);
                effect.told.push(SessionNotice::Released(*key));
                StatementAnswer::Yes(self.unlock(id, *key, &mut effect))
            }
            Statement::Undo(key) => StatementAnswer::Yes(self.unlock(id, *key, &mut effect)),
            Statement::Appear(wishes, lease) => {
                let quiet = boot.since(self.quiet_since);
                let found: Vec<Presence> = wishes.iter().map(|wish| self.appear(id, wish, quiet)).collect();
                if found.iter().any(|found| found.present) {
                    self.bear(id, *lease);
                }
                StatementAnswer::Appeared(found)
            }
            Statement::Tell(notice) => {
                effect.told.push(notice.clone());
                StatementAnswer::Yes(true)
            }
            Statement::Leave(key, lease) => {
                self.bear(id, *lease);
                StatementAnswer::Yes(self.present.remove(&(*key, id)))
            }
            Statement::Look(keys) => {
                StatementAnswer::Locks(keys.iter().map(|key| self.state_of(boot, *key)).collect())
            }
        };
        if let Some(session) = self.sessions.get_mut(&id) {
            session.active = boot;
        }
        (said, effect)
    }

    /// Tries a lock: granted to a session that has it already, too.
    fn is_granted(&self, id: SessionNumber, wish: &LockWish) -> bool {
        let held = self.locks.get(&wish.key);
        held.map_or(!wish.again, |hold| hold.by == id)
    }

    fn grant(
        &mut self,
        id: SessionNumber,
        wish: &LockWish,
        epoch: Epoch,
        lease: Duration,
        effect: &mut Effect,
    ) -> LockState {
        let held = self.locks.get(&wish.key).map_or(0, |hold| hold.times);
        let times = held + u32::from(!wish.again);
        self.locks.insert(wish.key, HeldLock { by: id, times, epoch });
        effect.granted.push((wish.key, epoch));
        if !wish.again {
            effect.told.push(SessionNotice::Claimed(wish.key, wish.id.clone()));
        }
        if let Some(session) = self.sessions.get_mut(&id) {
            session.lease = Some(lease);
            session.name = Some(wish.id.clone());
        }
        LockState::Granted(epoch)
    }

    fn appear(&mut self, id: SessionNumber, wish: &PresenceWish, quiet: Duration) -> Presence {
        let PresenceWish { key, condition, first } = *wish;
        let others = self.present.iter().any(|(other, present)| *other == key && *present != id);
        let locked = first.is_none_or(|first| self.locks.get(&key).is_some_and(|hold| hold.by == first));
        let present = locked && condition.is_met(others, quiet);
        if present {
            self.present.insert((key, id));
        }
        Presence { present, others, quiet }
    }

    /// From now on that session may be silent for this time; for ever while it holds nothing.
    fn bear(&mut self, id: SessionNumber, lease: Duration) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.lease = Some(lease).filter(|lease| !lease.is_zero());
        }
    }

    fn unlock(&mut self, id: SessionNumber, key: ElectionKey, effect: &mut Effect) -> bool {
        let Some(hold) = self.locks.get_mut(&key).filter(|hold| hold.by == id) else { return false };
        hold.times -= 1;
        if hold.times == 0 {
            effect.freed = Some((key, hold.epoch));
            self.locks.remove(&key);
        }
        true
    }

    fn state_of(&self, boot: Boot, key: ElectionKey) -> LockState {
        let Some(HeldLock { by, .. }) = self.locks.get(&key).copied() else { return LockState::Free };
        let session = self.sessions.get(&by);
        LockState::HeldBy(LockHolder {
            session: by,
            name: String::new(),
            is_ours: true,
            id: session.and_then(|session| session.name.clone()),
            leads: self.present.iter().any(|(other, id)| *other == key && id >> 32 == by >> 32),
            ttl: session.and_then(|session| session.lease),
            silent: session.map(|session| boot.since(session.active)),
            epoch: None,
        })
    }

    fn number(&mut self) -> Epoch {
        self.xid += 1;
        Epoch::new(self.timeline << XID_BITS | self.xid).unwrap_or(Epoch::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::PPM_TRUE;
    use crate::time::SECOND;
    use bellwether_backend::Condition;

    fn name() -> CandidateId {
        CandidateId::new("a").unwrap()
    }

    fn server() -> Server {
        let mut server = Server::new(Machine::new(0, PPM_TRUE, 0));
        for id in [1, 2] {
            server.open(SECOND, id, SessionKind::Lock);
            server.open(SECOND, id + 10, SessionKind::Presence);
        }
        server
    }

    const KEY: ElectionKey = ElectionKey(0);

    fn wish(key: ElectionKey) -> LockWish {
        LockWish { key, id: name(), again: false }
    }

    fn try_lock(server: &mut Server, id: SessionNumber) -> LockState {
        let attempt = Statement::Claim(vec![wish(KEY)], Duration::from_secs(5));
        match server.execute(SECOND, id, &attempt, 50).0 {
            StatementAnswer::Locks(mut states) => states.remove(0),
            other => panic!("{other:?}"),
        }
    }

    fn is_held_by_1(state: &LockState) -> bool {
        matches!(state, LockState::HeldBy(LockHolder { session: 1, .. }))
    }

    #[test]
    fn a_lock_is_re_entrant_and_freed_with_its_session() {
        let mut server = server();
        assert!(matches!(try_lock(&mut server, 1), LockState::Granted(_)));
        assert!(matches!(try_lock(&mut server, 1), LockState::Granted(_)));
        assert!(is_held_by_1(&try_lock(&mut server, 2)));
        assert_eq!(server.idle_at(1), Some(6 * SECOND));
        let unlock = Statement::Unlock(KEY, Duration::ZERO);
        assert_eq!(server.execute(SECOND, 1, &unlock, 0).1.freed, None);
        assert!(is_held_by_1(&try_lock(&mut server, 2)));
        assert_eq!(server.end(1), [KEY]);
        assert!(matches!(try_lock(&mut server, 2), LockState::Granted(_)));
    }

    #[test]
    fn elections_of_one_session_have_locks_of_their_own_and_one_lease() {
        let (mut server, other, lease) = (server(), ElectionKey(1), Duration::from_secs(5));
        let both = Statement::Claim(vec![wish(KEY), wish(other)], lease);
        let (said, effect) = server.execute(SECOND, 1, &both, 0);
        let StatementAnswer::Locks(states) = said else { panic!("{said:?}") };
        assert!(matches!(states[..], [LockState::Granted(one), LockState::Granted(two)] if one == two));
        assert_eq!((effect.granted.len(), effect.told.len()), (2, 2));
        let released = server.execute(SECOND, 1, &Statement::Unlock(KEY, lease), 0).1;
        assert_eq!(released.freed.map(|(key, _)| key), Some(KEY));
        assert_eq!(server.idle_at(1), Some(6 * SECOND), "it still holds the other");
        let beat = server.execute(SECOND, 1, &Statement::Beat, 0).0;
        assert_eq!(beat, StatementAnswer::Has([other].into()));
        server.execute(SECOND, 1, &Statement::Unlock(other, Duration::ZERO), 0);
        assert_eq!(server.idle_at(1), None);
    }

    #[test]
    fn a_promotion_goes_back_in_transactions_and_up_in_epochs() {
        let mut server = server();
        let LockState::Granted(before) = try_lock(&mut server, 1) else { panic!() };
        assert_eq!(server.crash(Some(40)).len(), 4);
        server.up(9 * SECOND);
        server.open(9 * SECOND, 5, SessionKind::Presence);
        let LockState::Granted(after) = try_lock(&mut server, 5) else { panic!() };
        assert!(after > before);
        let condition = Condition { by_force: false, quiet: Duration::from_secs(3) };
        let wish = PresenceWish { key: KEY, condition, first: None };
        let appear = Statement::Appear(vec![wish], Duration::from_secs(3));
        let mut present = |now| match server.execute(now, 5, &appear, 0).0 {
            StatementAnswer::Appeared(found) => found[0].present,
            other => panic!("{other:?}"),
        };
        assert!(!present(11 * SECOND));
        assert!(present(12 * SECOND));
    }
}
