//! By when somebody has to lead again, once faults have stopped, from what each candidate knows at that moment.
//!
//! The bound that `explain` prints holds whatever went before: the store is as slow as a call may be, and every candidate has
//! earned its longest pause. Held against that alone, an election that takes three times as long as it should
//! would pass. Here the cause counts: a candidate that knows that the record is free claims it at once, one that knows
//! of a leader waits for the rest of the ttl, and one that missed the last news looks when what it saw has run out, and then waits for
//! a ttl. After lost races, each of these waits may be a moment longer. A pause is allowed only to a candidate whose last call failed
//! and that has heard nothing since.

use std::time::Duration;

use bellwether_core::StateName;

use crate::clock::PPM_TRUE;
use crate::connection::{leadership_of, lock};
use crate::key::{ElectionKey, Seat};
use crate::time::{Nanos, nanos};
use crate::world::World;

impl World {
    /// How long it may take from now on until somebody leads that election; `None` if nobody takes part in it just now.
    pub(crate) fn expected(&self, key: ElectionKey) -> Option<Nanos> {
        let shortest = self.taking_part(key).into_iter().filter_map(|seat| self.expected_of(seat)).min()?;
        let settle = self.options.settings().map(|settings| settings.options().settle).max();
        let settle = settle.unwrap_or_default();
        Some(shortest + self.slowest(nanos(settle)) + self.round_trips())
    }

    /// In true time, what a candidate on the slowest clock takes for that long.
    fn slowest(&self, span: Nanos) -> Nanos {
        (u128::from(span) * u128::from(PPM_TRUE) / u128::from(self.options.ppm.0)) as u64
    }

    /// Enough for everything that an attempt asks of the store, and for one that meets another and is made again.
    pub(crate) fn round_trips(&self) -> Nanos {
        8 * self.options.latency.1
    }

    fn expected_of(&self, seat: Seat) -> Option<Nanos> {
        let (node, me) = (&self.nodes[seat.node], self.candidate(seat));
        let core = Some(&me.core).filter(|core| core.state() != StateName::Stopped)?;
        let (options, boot) = (core.settings().options(), node.machine.boot(self.now));
        let pause = options
            .strategy
            .longest()
            .max(options.breaker.map_or(Duration::ZERO, |breaker| breaker.open_for));
        let pause = if me.troubled { self.slowest(nanos(pause)) } else { 0 };
        let away = core.in_cooldown(boot).map_or(0, |until| self.slowest(nanos(until.since(boot))));
        let ttl = self.slowest(self.options.longest_ttl());
        let before = pause.max(away);
        if self.sessions.is_some() {
            // The server ends silent sessions after a ttl, and whoever gets the lock may have to wait for another.
            return Some(before + 2 * ttl);
        }
        let stagger = self.slowest(nanos(core.settings().timing().stagger_max()));
        let mut connection = lock(&node.connection);
        let seen = connection.of(me.key);
        let found = self.store.record(me.key).as_ref().map(|found| &found.0);
        let held = found.and_then(leadership_of);
        let others = found.is_some_and(|record| record.is_held())
            && (held.is_none_or(|held| held.who != me.who.incarnation)
                || found.is_some_and(|record| !node.has_written(me.key, record.beat)));
        let knows = seen.since_beat(found);
        // Its own as well: what it saw vanish may be a leadership that it began itself.
        let haunted = seen.known.leaderships.iter().any(|leadership| Some(*leadership) != held);
        let kept = found
            .and_then(|record| record.reserved.as_ref())
            .map_or(0, |kept| self.slowest(nanos(kept.span)));
        Some(match knows {
            Some(since) if others => before.max((since + ttl).saturating_sub(self.now)),
            Some(_) => before.max(kept),
            None => before.max(ttl) + stagger + if others { ttl } else { kept },
        })
        .map(|expected| stagger + if haunted { expected.max(before + ttl) } else { expected })
    }
}
