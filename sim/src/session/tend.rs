//! Looking after the two sessions: their ends are told, B is replaced, and what waits is looked at.

use std::sync::Arc;
use std::time::Duration;

use bellwether_core::{Bug, Proof, Seen, Signal};

use super::backend::{Inner, Lingering, Link, Slot, limit};
use super::wire::{Heard, Kind, Said, Statement};
use crate::port::lock;

/// From one look at what waits to the next.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// From one try to reach the server to the next: doubled up to the second.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));
/// How long nothing is looked at while nothing asks for it.
const AT_LEISURE: Duration = Duration::from_secs(3_600);

impl Inner {
    /// News and ends that have reached the process; and what lingered long enough.
    pub(super) fn hear(&self) {
        let (ended, heard) = {
            let mut desk = lock(&self.wire.desk);
            (std::mem::take(&mut desk.hung_up), std::mem::take(&mut desk.inbox))
        };
        for id in ended {
            let link = self.latest();
            let mine = link.iter().flat_map(|link| [Arc::clone(&link.a), link.b()]);
            let lingering = lock(&self.lingering);
            let all = mine.chain(lingering.iter().map(|old| Arc::clone(&old.b)));
            for connection in all.filter(|connection| connection.id == id) {
                connection.end();
            }
        }
        for news in heard {
            let proof = match news {
                Heard::Released => {
                    lock(&self.witness).take();
                    Proof::Released
                }
                Heard::Ended => Proof::Absent,
            };
            if lock(&self.wire.port).followed {
                self.tell(Signal::Changed(Seen { proof, ..Seen::nothing() }));
            }
        }
        let now = self.wire.now();
        for old in lock(&self.lingering).extract_if(.., |old| now >= old.until) {
            self.wire.throw_away(&old.b);
        }
    }

    pub(super) fn tell(&self, signal: Signal) {
        lock(&self.news).push_back(signal);
    }

    /// Session A ended: what it held is lost, but the work may still be stopping, and B says so to others.
    fn linger(&self, link: &Arc<Link>) {
        self.forget(link);
        let b = link.b();
        let Some(Slot::Held { who, ttl, .. }) = link.slot() else {
            self.wire.throw_away(&b);
            return;
        };
        let until = self.wire.now() + ttl;
        lock(&self.wire.desk).alarms.push(until);
        lock(&self.lingering).push(Lingering { b, who, ttl, until });
    }

    async fn replace_b(&self, link: &Link) -> bool {
        let from_asking = self.has(Bug::SessionAgeFromAsking);
        match self.wire.open(Kind::Presence, self.connect_limit, from_asking).await {
            Some(new) => {
                link.replace_b(new);
                true
            }
            None => false,
        }
    }

    /// Wakes whoever waits when the presence went, keeps A awake meanwhile, and lets go of what nobody came back for.
    async fn look_at_waiting(&self, link: &Arc<Link>, looks: u32) {
        let Some(Slot::Waiting(taken)) = link.slot() else { return };
        let ttl = taken.ttl();
        if self.wire.now() >= taken.until() + ttl {
            let _turn = link.turn().await;
            if matches!(link.slot(), Some(Slot::Waiting(same)) if same.until() == taken.until()) {
                let _ = self.let_go(link, ttl).await;
            }
            return;
        }
        let looked = self.wire.ask(&link.b(), limit(ttl), Statement::Peek).await;
        let free = matches!(looked, Ok(Said::Peeked { others: false, quiet }) if quiet >= ttl);
        if free && lock(&self.wire.port).followed {
            self.tell(Signal::Changed(Seen::nothing()));
        }
        let every = (ttl / 3).as_millis() / LOOK_EVERY.as_millis();
        if u128::from(looks) % every.max(1) == 0 {
            let _ = self.beat(link, ttl).await;
        }
    }
}

/// Runs for ever.
pub(super) async fn tend(inner: Arc<Inner>) {
    loop {
        let link = loop {
            if let Some(link) = inner.wire.wait(AT_LEISURE, || inner.latest()).await {
                break link;
            }
        };
        tend_link(&inner, &link).await;
        inner.tell(Signal::Gone);
        inner.linger(&link);
        let mut pause = BACK_OFF.0;
        loop {
            let followed = lock(&inner.wire.port).followed;
            if inner.current().is_some() || (followed && inner.link().await.is_ok()) {
                inner.tell(Signal::Restored);
                break;
            }
            retire(&inner).await;
            inner.wire.pause(pause).await;
            pause = (2 * pause).min(BACK_OFF.1);
        }
    }
}

async fn tend_link(inner: &Inner, link: &Arc<Link>) {
    let mut looks = 0;
    while !link.a.is_over() {
        retire(inner).await;
        if link.b().is_over() {
            inner.tell(Signal::Doubt);
            if inner.replace_b(link).await {
                inner.tell(Signal::Restored);
            } else {
                inner.wire.pause(BACK_OFF.0).await;
            }
            continue;
        }
        let b = link.b();
        let over = || link.a.is_over() || b.is_over();
        if matches!(link.slot(), Some(Slot::Waiting(_))) {
            inner.wire.wait(LOOK_EVERY, || over().then_some(())).await;
            looks += 1;
            inner.look_at_waiting(link, looks).await;
        } else {
            let wanted = || {
                let waits = matches!(link.slot(), Some(Slot::Waiting(_)));
                (over() || waits || !lock(&inner.retiring).is_empty()).then_some(())
            };
            inner.wire.wait(AT_LEISURE, wanted).await;
        }
    }
}

async fn retire(inner: &Inner) {
    let leaving = std::mem::take(&mut *lock(&inner.retiring));
    for who in leaving {
        inner.retire(&who).await;
    }
}
