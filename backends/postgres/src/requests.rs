//! What is told: requests to a leader, and what becomes of every notice that is heard.

use std::sync::Arc;
use std::time::Duration;

use bellwether_core::{
    Boot, CandidateId, ElectionName, Error, ErrorKind, Holder, Outcome, Proof, Request, Seen, Signal,
};

use crate::errors::{BACKEND, outcome};
use crate::link::Link;
use crate::look::LOOK_LIMIT;
use crate::notices::Note;
use crate::postgres::{Inner, lock};
use crate::slots::Slot;
use crate::{Keys, names};

impl Inner {
    /// Tells the leader of that epoch. It names the epoch, so one that is heard late is obeyed by nobody.
    pub(crate) async fn request(self: Arc<Self>, on: ElectionName, what: Request) -> Outcome<()> {
        let found = match self.look(&on).await {
            Ok(found) => found,
            Err(error) => return outcome(error),
        };
        let Some((pid, name)) = found.session else { return Outcome::Denied(found.seen) };
        let refused = |sentence| Outcome::Refused(Error::new(ErrorKind::Unsupported, BACKEND, sentence));
        if !names::is_ours(&name) {
            return refused(format!(
                "the lock of {on} is held by server process {pid} ({name:?}), which is not Bellwether's and cannot be asked; \
                 stop it by its own means"
            ));
        }
        match found.seen.epoch {
            Some(epoch) if epoch == what.epoch => {}
            Some(_) => return Outcome::Denied(found.seen),
            None => {
                return refused(format!(
                    "server process {pid} leads {on} and does not show its epoch, so it cannot be asked; stop it instead"
                ));
            }
        }
        let (keys, link) = match (self.keys(&on), self.link().await) {
            (Ok(keys), Ok(link)) => (keys, link),
            (Err(error), _) | (_, Err(error)) => return outcome(error),
        };
        match link.b().tell(LOOK_LIMIT, &Note::Asked(keys, what)).await {
            Ok(()) => Outcome::Held(()),
            Err(failure) => outcome(failure.error()),
        }
    }

    /// Takes in what a session told.
    pub(crate) fn heard(&self, payload: &str) {
        match Note::read(payload) {
            Some(Note::Released(keys)) => self.heard_release(keys),
            Some(Note::Reserved(keys, span, id)) => {
                let until = self.clock.boot() + span;
                lock(&self.reserved).insert(keys, (id, until));
            }
            Some(Note::Claimed { keys, pid, id, epoch }) => {
                // Others may have it for a moment, until they hear for whom it is kept.
                lock(&self.reserved).retain(|kept, (whom, _)| *kept != keys || *whom != id);
                let holder = Some(Holder { id, incarnation: None });
                self.heard_claim(keys, pid, Seen { holder, epoch: Some(epoch), ..Seen::nothing() });
            }
            Some(Note::Asked(keys, request)) => self.heard_request(keys, request),
            None => {}
        }
    }

    fn heard_release(&self, keys: Keys) {
        lock(&self.witnessed).remove(&keys);
        if let Some(link) = self.current() {
            link.released_by_other(keys);
            self.doubt_beat(&link, keys);
        }
        let Some(on) = self.followed_as(keys) else { return };
        let kept = self.reserved(keys);
        let (reserved_for, free_at) = kept.unzip();
        self.news.changed(on, Seen { proof: Proof::Released, free_at, reserved_for, ..Seen::nothing() });
    }

    /// Somebody else has the lock. From now on its session is watched.
    fn heard_claim(&self, keys: Keys, pid: i32, seen: Seen) {
        let (Some(on), Some(link)) = (self.followed_as(keys), self.current()) else { return };
        if pid == link.a.session.pid {
            return;
        }
        link.held_by_other(pid, keys);
        self.doubt_beat(&link, keys);
        self.witness(keys, Some(Duration::ZERO));
        self.news.changed(on, Seen { proof: Proof::Alive, ..seen });
    }

    /// News of others about what is led here: the next renewal asks the server, whatever was known before.
    fn doubt_beat(&self, link: &Link, keys: Keys) {
        if link.slots.of(keys).is_some() {
            link.beats.forget();
        }
    }

    fn heard_request(&self, keys: Keys, request: Request) {
        let slot = self.current().and_then(|link| link.slots.of(keys));
        let meant = matches!(slot, Some(Slot::Held { epoch, .. }) if epoch == request.epoch);
        if let (true, Some(on)) = (meant, self.followed_as(keys)) {
            self.news.about(on, Signal::Requested(request));
        }
    }

    /// For whom a lock that was let go is still kept, and until when.
    pub(crate) fn reserved(&self, keys: Keys) -> Option<(CandidateId, Boot)> {
        let mut reserved = lock(&self.reserved);
        let (id, until) = reserved.get(&keys)?.clone();
        if self.clock.boot() >= until {
            reserved.remove(&keys);
            return None;
        }
        Some((id, until))
    }

    fn followed_as(&self, keys: Keys) -> Option<ElectionName> {
        lock(&self.followed).get(&keys).cloned()
    }
}
