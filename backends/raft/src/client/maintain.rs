//! What a session needs besides renewals: a sign of life while somebody waits, the end of leaderships that nobody renews, and word of
//! candidates that have gone.

use std::sync::{Arc, Weak};

use bellwether_backend::lock;
use bellwether_core::{ElectionName, Epoch, Incarnation};
use tokio::runtime::Handle;

use super::Shared;
use super::calls::interval;
use super::candidates::Gone;
use super::session::{Beat, Session};
use crate::answer::{Answer, Refusal};
use crate::command::Act;

/// Looks after this session until it ends, or the store does.
pub(super) fn begin(shared: &Arc<Shared>, session: Arc<Session>) {
    let (shared, mut alive) = (Arc::downgrade(shared), shared.alive.subscribe());
    if let Ok(runtime) = Handle::try_current() {
        runtime.spawn(async move {
            tokio::select! {
                () = look_after(&shared, &session) => {}
                _ = alive.changed() => {}
            }
        });
    }
}

async fn look_after(shared: &Weak<Shared>, session: &Arc<Session>) {
    while !session.is_over() {
        tokio::time::sleep(interval(session.ttl)).await;
        let Some(shared) = shared.upgrade() else { return };
        shared.resign_overdue(session).await;
        if lock(&shared.candidates).is_waited_in(session.id) {
            match session.keep_alive(&shared.link).await {
                Ok(beat) if beat.is_end() => shared.ended(session),
                Ok(beat) => shared.resign_unresolved(session, &beat).await,
                // The next one may be answered.
                Err(error) => tracing::debug!(%error, "a keepalive had no answer"),
            }
        }
        // Last: nothing hangs on how soon the cluster hears of it.
        shared.tell_all_gone(session).await;
    }
}

impl Shared {
    /// A leadership that nobody has renewed for a ttl is over. Its session may live on for others, so it is ended here.
    async fn resign_overdue(&self, session: &Arc<Session>) {
        let overdue = lock(&self.candidates).overdue(session, self.link.clock().boot());
        for one in overdue {
            if self.resign(session, &one.on, one.epoch, one.incarnation).await {
                lock(&self.candidates).released(&one.on, one.epoch, one.incarnation);
            }
        }
    }

    /// Tells the cluster again of candidates that have gone, where the first word of it was lost. Without an answer, the rest waits for the next
    /// time: one call of each round ends like that, however many have gone.
    async fn tell_all_gone(&self, session: &Arc<Session>) {
        let retiring = lock(&self.candidates).retiring(session.id);
        for gone in retiring {
            if session.is_over() || !self.tell_gone(session, gone).await {
                return;
            }
        }
    }

    /// Tells the cluster that a candidate has gone. Whether it has answered.
    pub(super) async fn tell_gone(&self, session: &Arc<Session>, gone: Gone) -> bool {
        let number = session.number().await;
        let Gone { on, incarnation, cancels } = gone.clone();
        match self.act(&number, Act::Retire { on, incarnation, cancels }).await {
            Ok(Answer::Refused(Refusal::NoSuchSession)) => self.ended(session),
            Ok(_) => lock(&self.candidates).retired(session.id, &gone),
            Err(error) => {
                tracing::debug!(election = %gone.on, %error, "the cluster does not know yet that a candidate has gone");
                return false;
            }
        }
        true
    }

    /// What the session leads by a claim whose answer nobody got, and nobody asked for again.
    async fn resign_unresolved(&self, session: &Arc<Session>, beat: &Beat) {
        let now = self.link.clock().boot();
        for led in beat.led() {
            let incarnations = lock(&self.candidates).unresolved(session, &led.on, now);
            for incarnation in incarnations {
                self.resign(session, &led.on, led.epoch, incarnation).await;
            }
        }
    }

    /// Whether the cluster has answered, whatever it said: the leadership is over then.
    async fn resign(
        &self,
        session: &Arc<Session>,
        on: &ElectionName,
        epoch: Epoch,
        incarnation: Incarnation,
    ) -> bool {
        let resign = Act::Resign { on: on.clone(), epoch, incarnation, reserve_for: None, cooldown: None };
        let number = session.number().await;
        let resigned = self.act(&number, resign).await;
        if let Err(error) = &resigned {
            tracing::debug!(election = %on, %error, "a leadership that nobody renews could not be ended yet");
        }
        resigned.is_ok()
    }
}
