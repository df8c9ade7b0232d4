//! What is told: requests to a leader, and what becomes of every notice that is heard.

use std::sync::Arc;

use bellwether_core::{ElectionName, Error, ErrorKind, Outcome, Request, Signal};

use crate::errors::{BACKEND, outcome};
use crate::look::LOOK_LIMIT;
use crate::notices::Note;
use crate::postgres::Inner;
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

    /// Takes in what the session of that process of the server told.
    pub(crate) fn heard(&self, sender: i32, payload: &str) {
        match Note::read(payload) {
            Some(Note::Released(keys)) => self.heard_release(keys, sender),
            Some(Note::Reserved(keys, span, id)) => self.heard_reservation(keys, sender, span, id),
            // Who claimed and under which epoch is what the server says. That somebody used its reservation is believed: one
            // that is kept for too long has others stay away, and one that is given up too early is only politeness lost.
            Some(Note::Claimed { keys, id, .. }) => {
                self.hints.used(keys, &id);
                self.heard_claim(keys, sender);
            }
            Some(Note::Asked(keys, request)) => self.heard_request(keys, request),
            None => {}
        }
    }

    /// Whoever may connect may ask. A request names the epoch that it is meant for, so a late one is obeyed by nobody.
    fn heard_request(&self, keys: Keys, request: Request) {
        let slot = self.current().and_then(|link| link.slots.of(keys));
        let meant = matches!(slot, Some(Slot::Held { epoch, .. }) if epoch == request.epoch);
        if let (true, Some(on)) = (meant, self.followed_as(keys)) {
            self.news.about(on, Signal::Requested(request));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bellwether_core::{Boot, Clock, Wall};

    use super::*;
    use crate::from_url;

    /// Time that does not pass.
    struct Still;

    impl Clock for Still {
        fn boot(&self) -> Boot {
            Boot::from_nanos(1_000_000_000)
        }

        fn wall(&self) -> Wall {
            Wall::default()
        }
    }

    #[test]
    fn a_reservation_is_over_when_whom_it_was_for_is_heard_to_have_claimed() {
        let inner = from_url("postgres://localhost/postgres", Arc::new(Still)).unwrap().0;
        let reserved = |keys| inner.hints.reserved(Still.boot(), keys, Duration::from_secs(5)).is_some();
        inner.heard(7, "reserve 1 2 1000 named");
        inner.heard(7, "reserve 3 4 1000 named");
        inner.heard(8, "claim 1 2 8 another 5");
        assert!(reserved(Keys(1, 2)), "it was not for that one");
        inner.heard(9, "claim 1 2 9 named 6");
        assert!(!reserved(Keys(1, 2)) && reserved(Keys(3, 4)));
    }
}
