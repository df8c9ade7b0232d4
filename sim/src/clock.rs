//! The clocks of one machine: its boot-time clock with an offset and a rate, its wall clock with any offset.
//!
//! The boot-time clock counts suspend, as the election assumes. The wall clock may be an hour off and may jump: nothing is
//! allowed to depend on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use bellwether_core::{Boot, Clock, Wall};

use crate::time::Nanos;

/// A rate of exactly one.
pub const PPM_TRUE: u64 = 1_000_000;

/// What a process on the machine reads; set by the world before the process runs.
#[derive(Debug, Default)]
pub struct ClockReading {
    boot: AtomicU64,
    wall: AtomicI64,
}

impl Clock for ClockReading {
    fn boot(&self) -> Boot {
        Boot::from_nanos(self.boot.load(Ordering::Relaxed))
    }

    fn wall(&self) -> Wall {
        Wall::from_unix_nanos(self.wall.load(Ordering::Relaxed))
    }
}

/// The works behind a [`ClockReading`].
#[derive(Debug)]
pub struct Machine {
    face: Arc<ClockReading>,
    offset: Nanos,
    ppm: u64,
    wall_offset: i64,
    /// The boot-time clock runs on while the machine is suspended. Elections rely on it; one that stands still is how a planted
    /// bug breaks them.
    counts_suspend: bool,
    /// How much of the boot-time clock was lost by standing still.
    lost: Nanos,
    standing_since: Option<Nanos>,
}

impl Machine {
    /// A machine that showed `offset` at the beginning of the world and runs at `ppm` millionths of true time.
    pub fn new(offset: Nanos, ppm: u64, wall_offset: i64) -> Machine {
        Machine {
            face: Arc::default(),
            offset,
            ppm,
            wall_offset,
            counts_suspend: true,
            lost: 0,
            standing_since: None,
        }
    }

    /// A machine that shows the same from now on.
    pub fn cloned(&self) -> Machine {
        Machine { face: Arc::default(), ..*self }
    }

    /// What processes of this machine read.
    pub fn face(&self) -> Arc<ClockReading> {
        Arc::clone(&self.face)
    }

    /// The boot-time clock at that instant of true time.
    pub fn boot(&self, now: Nanos) -> Boot {
        let now = self.standing_since.map_or(now, |since| since.min(now));
        Boot::from_nanos(self.raw(now) - self.lost)
    }

    /// The first instant of true time at which the boot-time clock shows at least `boot`.
    pub fn when(&self, boot: Boot) -> Nanos {
        let wanted = (boot.as_nanos().saturating_add(self.lost)).saturating_sub(self.offset);
        let scaled = (u128::from(wanted) * u128::from(PPM_TRUE)).div_ceil(u128::from(self.ppm));
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }

    /// Lets processes read the present.
    pub fn show(&self, now: Nanos) -> Boot {
        let boot = self.boot(now);
        self.face.boot.store(boot.as_nanos(), Ordering::Relaxed);
        self.face.wall.store(self.wall_offset.saturating_add(now as i64), Ordering::Relaxed);
        boot
    }

    /// Steps the wall clock.
    pub fn jump_wall(&mut self, by: i64) {
        self.wall_offset = self.wall_offset.saturating_add(by);
    }

    /// The machine is suspended.
    pub fn suspend(&mut self, now: Nanos) {
        if !self.counts_suspend {
            self.standing_since.get_or_insert(now);
        }
    }

    /// It runs again.
    pub fn resume(&mut self, now: Nanos) {
        if let Some(since) = self.standing_since.take() {
            self.lost += self.raw(now) - self.raw(since);
        }
    }

    fn raw(&self, now: Nanos) -> Nanos {
        self.offset + (u128::from(now) * u128::from(self.ppm) / u128::from(PPM_TRUE)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::SECOND;

    #[test]
    fn an_instant_of_the_clock_is_found_again_in_true_time() {
        for ppm in [960_000, 1_000_000, 1_040_123] {
            let machine = Machine::new(77, ppm, 0);
            for boot in [77, 78, 1_000_003, 5 * SECOND + 1] {
                let when = machine.when(Boot::from_nanos(boot));
                assert!(machine.boot(when) >= Boot::from_nanos(boot));
                assert!(when == 0 || machine.boot(when - 1) < Boot::from_nanos(boot));
            }
        }
    }

    #[test]
    fn a_clock_that_stood_still_is_behind_by_as_much() {
        let mut machine = Machine { counts_suspend: false, ..Machine::new(0, PPM_TRUE, 0) };
        machine.suspend(3 * SECOND);
        assert_eq!(machine.boot(9 * SECOND).as_nanos(), 3 * SECOND);
        machine.resume(10 * SECOND);
        assert_eq!(machine.boot(11 * SECOND).as_nanos(), 4 * SECOND);
        assert_eq!(machine.when(Boot::from_nanos(4 * SECOND)), 11 * SECOND);
    }
}
