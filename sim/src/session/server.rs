//! The server: one lock, the presences, sessions that it ends when they fall silent, and numbers that only go up.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bellwether_backend::{LockHolder, Presence, SessionNotice};
use bellwether_core::{Boot, CandidateId, Epoch};

use super::store::Key;
use super::wire::{SessionKind, SessionNumber, Statement, StatementAnswer};
use crate::clock::Machine;
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

/// The lock, while somebody has it.
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
    /// Who has the lock.
    pub lock: Option<HeldLock>,
    present: BTreeSet<SessionNumber>,
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
    /// An epoch was issued under the lock.
    pub granted: Option<Epoch>,
    /// The lock was released, last held under this epoch.
    pub freed: Option<Epoch>,
    /// What everybody is told.
    pub told: Option<SessionNotice<Key>>,
}

impl Server {
    /// A server that has been up for long.
    pub fn new(machine: Machine) -> Server {
        Server {
            machine,
            sessions: BTreeMap::new(),
            lock: None,
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

    /// A session is over, for whatever reason. Whether it had the lock.
    pub fn end(&mut self, id: SessionNumber) -> bool {
        self.sessions.remove(&id);
        self.present.remove(&id);
        let had = self.lock.is_some_and(|hold| hold.by == id);
        if had {
            self.lock = None;
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
        self.lock = None;
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
            Statement::Try(name, lease) => match self.lock {
                Some(hold) if hold.by != id => self.held_by(boot, hold.by),
                held => {
                    let epoch = self.number();
                    self.lock =
                        Some(HeldLock { by: id, times: held.map_or(0, |hold| hold.times) + 1, epoch });
                    effect.granted = Some(epoch);
                    effect.told = Some(SessionNotice::Claimed(Key, name.clone()));
                    if let Some(session) = self.sessions.get_mut(&id) {
                        (session.lease, session.name) = (Some(*lease), Some(name.clone()));
                    }
                    StatementAnswer::Granted(epoch)
                }
            },
            Statement::Again => match self.lock {
                Some(hold) if hold.by == id => {
                    let epoch = self.number();
                    self.lock = Some(HeldLock { epoch, ..hold });
                    effect.granted = Some(epoch);
                    StatementAnswer::Granted(epoch)
                }
                _ => StatementAnswer::Yes(false),
            },
            Statement::Beat => {
                let holds = match self.sessions.get(&id).map(|session| session.kind) {
                    Some(SessionKind::Lock) => self.lock.is_some_and(|hold| hold.by == id),
                    _ => self.present.contains(&id),
                };
                StatementAnswer::Yes(holds)
            }
            Statement::Unlock(tell) => {
                effect.told = tell.then_some(SessionNotice::Released(Key));
                StatementAnswer::Yes(self.unlock(id, &mut effect))
            }
            Statement::Appear(condition, first, lease) => {
                let (others, quiet) = (self.others(id), boot.since(self.quiet_since));
                let locked = first.is_none_or(|first| self.lock.is_some_and(|hold| hold.by == first));
                let present = locked && condition.is_met(others, quiet);
                if present {
                    self.present.insert(id);
                    if let Some(session) = self.sessions.get_mut(&id) {
                        session.lease = Some(*lease);
                    }
                }
                StatementAnswer::Appeared(Presence { present, others, quiet })
            }
            Statement::Tell(notice) => {
                effect.told = Some(notice.clone());
                StatementAnswer::Yes(true)
            }
            Statement::Leave => {
                if let Some(session) = self.sessions.get_mut(&id) {
                    session.lease = None;
                }
                StatementAnswer::Yes(self.present.remove(&id))
            }
            Statement::Look => match self.lock {
                Some(hold) => self.held_by(boot, hold.by),
                None => StatementAnswer::Free,
            },
        };
        if let Some(session) = self.sessions.get_mut(&id) {
            session.active = boot;
        }
        (said, effect)
    }

    fn unlock(&mut self, id: SessionNumber, effect: &mut Effect) -> bool {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.lease = None;
        }
        let Some(hold) = self.lock.filter(|hold| hold.by == id) else { return false };
        if hold.times > 1 {
            self.lock = Some(HeldLock { times: hold.times - 1, ..hold });
            return true;
        }
        self.lock = None;
        effect.freed = Some(hold.epoch);
        true
    }

    fn held_by(&self, boot: Boot, by: SessionNumber) -> StatementAnswer {
        let session = self.sessions.get(&by);
        StatementAnswer::HeldBy(LockHolder {
            session: by,
            name: String::new(),
            is_ours: true,
            id: session.and_then(|session| session.name.clone()),
            leads: self.present.iter().any(|id| id >> 32 == by >> 32),
            ttl: session.and_then(|session| session.lease),
            silent: session.map(|session| boot.since(session.active)),
            epoch: None,
        })
    }

    fn others(&self, but: SessionNumber) -> bool {
        self.present.iter().any(|id| *id != but)
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

    #[test]
    fn a_lock_is_re_entrant_and_freed_with_its_session() {
        let mut server = server();
        let ttl = Duration::from_secs(5);
        let try_lock =
            |server: &mut Server, id| server.execute(SECOND, id, &Statement::Try(name(), ttl), 0).0;
        assert!(matches!(try_lock(&mut server, 1), StatementAnswer::Granted(_)));
        assert!(matches!(try_lock(&mut server, 1), StatementAnswer::Granted(_)));
        assert!(matches!(try_lock(&mut server, 2), StatementAnswer::HeldBy(LockHolder { session: 1, .. })));
        assert_eq!(server.idle_at(1), Some(6 * SECOND));
        assert_eq!(server.execute(SECOND, 1, &Statement::Unlock(true), 0).1.freed, None);
        assert!(matches!(try_lock(&mut server, 2), StatementAnswer::HeldBy(LockHolder { session: 1, .. })));
        assert!(server.end(1));
        assert!(matches!(try_lock(&mut server, 2), StatementAnswer::Granted(_)));
    }

    #[test]
    fn a_promotion_goes_back_in_transactions_and_up_in_epochs() {
        let mut server = server();
        let attempt = Statement::Try(name(), Duration::from_secs(3));
        let StatementAnswer::Granted(before) = server.execute(SECOND, 1, &attempt, 50).0 else { panic!() };
        assert_eq!(server.crash(Some(40)).len(), 4);
        server.up(9 * SECOND);
        server.open(9 * SECOND, 5, SessionKind::Presence);
        let StatementAnswer::Granted(after) = server.execute(SECOND, 5, &attempt, 0).0 else { panic!() };
        assert!(after > before);
        let condition = Condition { by_force: false, quiet: Duration::from_secs(3) };
        let appear = Statement::Appear(condition, None, Duration::from_secs(3));
        let present = |said| matches!(said, StatementAnswer::Appeared(Presence { present: true, .. }));
        assert!(!present(server.execute(11 * SECOND, 5, &appear, 0).0));
        assert!(present(server.execute(12 * SECOND, 5, &appear, 0).0));
    }
}
