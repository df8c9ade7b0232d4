//! Linux: one `timerfd` on `CLOCK_BOOTTIME` for the whole process, set to the earliest instant that anybody waits for, and one
//! thread that waits for it and wakes whoever is due.
//!
//! One for all, because ten thousand leaderships that each wait for their own deadline must not use up the descriptors that their work
//! needs. A thread and not a task, because a runtime can be shut down while others wait in another one.
//!
//! Absolute, because a span worked out from a clock reading would be late by however long the process was
//! stopped between the reading and the setting.

use crate::boot_now;
use crate::timerfd::TimerFd;
use bellwether_core::Boot;
use std::collections::BTreeMap;
use std::future::{self, poll_fn};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

/// How often the clock is looked at should the kernel not answer for its timer, as when a stranger closed the descriptor.
const LOOK_EVERY: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub(super) struct SystemTimer {
    alarm: Arc<Alarm>,
    /// Tells timers apart that wait for the same instant.
    number: u64,
}

impl SystemTimer {
    pub(super) fn new() -> io::Result<SystemTimer> {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Ok(SystemTimer { alarm: Alarm::of_this_process()?, number: LAST.fetch_add(1, Ordering::Relaxed) })
    }

    pub(super) async fn until(&mut self, deadline: Boot) {
        if deadline == Boot::FOREVER {
            return future::pending().await;
        }
        let place = Place { alarm: &self.alarm, key: (deadline, self.number) };
        poll_fn(|context| {
            if boot_now() >= deadline {
                return Poll::Ready(());
            }
            place.alarm.wait(place.key, context.waker());
            Poll::Pending
        })
        .await;
    }
}

/// Among those who wait, for as long as it is not dropped.
struct Place<'a> {
    alarm: &'a Alarm,
    key: Key,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        // The kernel is not told: it may wake the thread for nobody once, which costs less than telling it every time.
        drop(self.alarm.waiting().wakers.remove(&self.key));
    }
}

type Key = (Boot, u64);

#[derive(Debug)]
struct Alarm {
    timer: TimerFd,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    wakers: BTreeMap<Key, Waker>,
    /// What the kernel was last told and has not been heard to reach.
    set_to: Option<Boot>,
}

impl Alarm {
    fn of_this_process() -> io::Result<Arc<Alarm>> {
        static ALARM: Mutex<Option<Arc<Alarm>>> = Mutex::new(None);
        let mut known = ALARM.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(alarm) = &*known {
            return Ok(Arc::clone(alarm));
        }
        let alarm = Arc::new(Alarm { timer: TimerFd::blocking()?, waiting: Mutex::default() });
        let rings = Arc::clone(&alarm);
        let thread = std::thread::Builder::new().name("bellwether-timer".to_owned());
        thread.spawn(move || rings.ring())?;
        *known = Some(Arc::clone(&alarm));
        Ok(alarm)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        // Nothing below panics half-way through a change, so what a poisoned lock guards is whole.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, key: Key, waker: &Waker) {
        let mut waiting = self.waiting();
        match waiting.wakers.get_mut(&key) {
            Some(known) => known.clone_from(waker),
            None => drop(waiting.wakers.insert(key, waker.clone())),
        }
        if waiting.set_to.is_none_or(|set_to| key.0 < set_to) {
            self.set(&mut waiting, key.0);
        }
    }

    fn set(&self, waiting: &mut Waiting, instant: Boot) {
        // Where the setting is too early for lack of bits, the thread finds nobody due and sets it again.
        self.timer.set(Some(instant));
        waiting.set_to = Some(instant);
    }

    /// For ever: wakes whoever is due, and sets the timer for whoever is next.
    fn ring(&self) -> ! {
        loop {
            self.expired();
            for waker in self.due() {
                waker.wake();
            }
        }
    }

    /// Waits until the kernel says that the instant has come. It may have been moved meanwhile.
    fn expired(&self) {
        let mut count = [0_u8; 8];
        let fd = self.timer.as_fd().as_raw_fd();
        // SAFETY: the kernel writes at most `len` bytes to a buffer valid and exclusive for that many.
        while unsafe { libc::read(fd, count.as_mut_ptr().cast(), count.len()) } < 0 {
            if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                // Late by as much is better than never.
                return std::thread::sleep(LOOK_EVERY);
            }
        }
    }

    fn due(&self) -> Vec<Waker> {
        let mut waiting = self.waiting();
        let now = boot_now();
        // All with this very instant, whatever their number.
        let later = waiting.wakers.split_off(&(now, u64::MAX));
        let due = std::mem::replace(&mut waiting.wakers, later);
        waiting.set_to = None;
        if let Some(next) = waiting.wakers.keys().next().map(|(instant, _)| *instant) {
            self.set(&mut waiting, next);
        }
        due.into_values().collect()
    }
}
