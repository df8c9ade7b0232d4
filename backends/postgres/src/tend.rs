//! Looking after the two sessions: their ends are told, B is replaced, and what waits is looked at.

use std::sync::{Arc, Weak};
use std::time::Duration;

use bellwether_backend::Fut;
use bellwether_core::{Seen, Signal};
use tokio::sync::watch;

use crate::Keys;
use crate::link::{Beta, Link};
use crate::many::Appearance;
use crate::names::{self, millis};
use crate::postgres::{Inner, lock};
use crate::slots::Slot;

/// From one look at what waits to the next.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The ends of both sessions are seen so close to each other when one thing ended both.
const BOTH_WITHIN: Duration = Duration::from_millis(20);
/// From one try to reach the server to the next: doubled up to the second.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// Runs until session A or the backend ends; after A, until there is a new one.
pub(crate) fn tend(inner: Weak<Inner>, link: Arc<Link>, alive: watch::Receiver<()>) -> Fut<'static, ()> {
    // Boxed, since it opens the next link, which is tended in turn.
    Box::pin(tend_to_the_end(inner, link, alive))
}

async fn tend_to_the_end(inner: Weak<Inner>, link: Arc<Link>, mut alive: watch::Receiver<()>) {
    let mut looks = 0_u32;
    loop {
        let b = link.b();
        tokio::select! {
            biased;
            _ = alive.changed() => return,
            () = link.a.session.over() => break,
            () = b.session.over() => {
                // What cuts the one cuts the other, and then the old one is needed, to be ended when the work is over.
                if tokio::time::timeout(BOTH_WITHIN, link.a.session.over()).await.is_ok() {
                    break;
                }
                let Some(inner) = inner.upgrade() else { return };
                inner.news.all(Signal::Doubt);
                if inner.replace_b(&link).await {
                    inner.news.all(Signal::Restored);
                } else {
                    tokio::time::sleep(BACK_OFF.0).await;
                }
            }
            () = tokio::time::sleep(LOOK_EVERY), if is_waiting(&link) => {
                let Some(inner) = inner.upgrade() else { return };
                looks += 1;
                inner.look_at_waiting(&link, looks).await;
            }
            () = tokio::time::sleep(4 * LOOK_EVERY), if !is_waiting(&link) => {}
        }
    }
    let Some(strong) = inner.upgrade() else { return };
    strong.news.all(Signal::Gone);
    strong.linger(&link);
    drop((link, strong));
    let mut pause = BACK_OFF.0;
    loop {
        let Some(strong) = inner.upgrade() else { return };
        if strong.current().is_some() || (!lock(&strong.followed).is_empty() && strong.link().await.is_ok()) {
            strong.news.all(Signal::Restored);
            return;
        }
        drop(strong);
        tokio::select! {
            _ = alive.changed() => return,
            () = tokio::time::sleep(pause) => pause = (2 * pause).min(BACK_OFF.1),
        }
    }
}

fn is_waiting(link: &Link) -> bool {
    link.slots.every().iter().any(|(_, slot)| slot.until().is_some())
}

impl Inner {
    /// A new second session. It is present nowhere: only a renewal says that this process still leads, and the old one may
    /// have ended because nobody renewed.
    async fn replace_b(self: &Arc<Self>, link: &Arc<Link>) -> bool {
        let opened = self.clock.boot();
        let name = link.slots.name(names::PRESENCE);
        let opening = Beta::open(&self.config, link.host, opened, &name, self.ear());
        let Ok(mut new) = opening.await else { return false };
        new.session.opened = self.clock.boot();
        if link.a.session.same_server(&new.session).is_err() {
            return false;
        }
        if new.belong_to(&link.a.session, self.config.connect_timeout()).await.is_err() {
            return false;
        }
        link.replace_b(new);
        true
    }

    /// Wakes those whose wait is over early because the presence went, keeps A awake meanwhile, and lets go of what nobody
    /// came back for.
    async fn look_at_waiting(self: &Arc<Self>, link: &Arc<Link>, looks: u32) {
        let now = self.clock.boot();
        let (mut shortest, mut waiting) = (Duration::MAX, Vec::new());
        for (keys, slot) in link.slots.every() {
            let (Some(until), ttl) = (slot.until(), slot.ttl()) else { continue };
            shortest = shortest.min(ttl);
            if now >= until + ttl {
                let _turn = link.slots.turn(keys).await;
                if link.slots.of(keys).and_then(|slot| slot.until()) == Some(until) {
                    let _ = self.let_go(link, keys, ttl, None).await;
                }
                continue;
            }
            if let Slot::Waiting { .. } = slot {
                waiting.push((keys, ttl));
            }
        }
        if !waiting.is_empty() {
            self.wake_whose_wait_is_over(link, &waiting).await;
        }
        let every = (shortest / 3).as_millis() / LOOK_EVERY.as_millis().max(1);
        if u128::from(looks) % every.max(1) == 0 {
            let _ = self.beat(link).await;
        }
    }

    /// One look for all of them.
    async fn wake_whose_wait_is_over(&self, link: &Link, waiting: &[(Keys, Duration)]) {
        let look = |(keys, ttl): &(Keys, Duration)| {
            // Nothing is ever as quiet as that, so nothing is taken.
            Appearance { presence: keys.presence(), ttl: *ttl, need: i64::MAX, force: false }
        };
        let looks: Vec<Appearance> = waiting.iter().map(look).collect();
        let Ok(rows) = link.appear_all(&looks).await else { return };
        for ((keys, ttl), row) in waiting.iter().zip(rows) {
            let free = !row.get::<_, bool>("others") && row.get::<_, i64>("quiet_ms") >= millis(*ttl);
            if free && let Some(on) = lock(&self.followed).get(keys) {
                self.news.changed(on.clone(), Seen::nothing());
            }
        }
    }
}
