//! One set of tests for both timers: what is promised must not depend on the system.

use super::*;
use crate::boot_now;
use std::time::Duration;
use tokio::time::timeout;

/// Long enough for a busy machine; it passes only when a test is about to fail.
const LONG: Duration = Duration::from_secs(20);
/// Long enough to notice a timer that fires when it must not.
const SHORT: Duration = Duration::from_millis(30);

macro_rules! promises {
    ($name:ident, $timer:path) => {
        mod $name {
            use super::*;
            use $timer as SystemTimer;

            #[tokio::test]
            async fn fires_and_never_early() {
                let mut timer = SystemTimer::new().unwrap();
                for millis in [1, 3, 10, 2] {
                    let deadline = boot_now() + Duration::from_millis(millis);
                    timeout(LONG, timer.until(deadline)).await.expect("fires");
                    assert!(boot_now() >= deadline);
                }
            }

            #[tokio::test]
            async fn an_instant_in_the_past_fires_at_once() {
                let mut timer = SystemTimer::new().unwrap();
                for past in [Boot::from_nanos(0), Boot::from_nanos(1), boot_now()] {
                    timeout(Duration::ZERO, timer.until(past)).await.expect("fires at once");
                }
            }

            #[tokio::test]
            async fn forever_never_fires_even_after_something_sooner_was_set() {
                let mut timer = SystemTimer::new().unwrap();
                let soon = boot_now() + Duration::from_millis(5);
                // Begun and dropped; on a busy machine it may have fired already.
                let _ = timeout(Duration::ZERO, timer.until(soon)).await;
                assert!(timeout(SHORT, timer.until(Boot::FOREVER)).await.is_err());
                assert!(timeout(SHORT, timer.until(Boot::from_nanos(u64::MAX - 1))).await.is_err());
            }

            #[tokio::test]
            async fn a_dropped_wait_does_not_end_a_later_one_early() {
                let mut timer = SystemTimer::new().unwrap();
                let soon = boot_now() + Duration::from_millis(2);
                // Begun and dropped; on a busy machine it may have fired already.
                let _ = timeout(Duration::ZERO, timer.until(soon)).await;
                // The first instant passes with nobody waiting, which leaves an expiry behind.
                tokio::time::sleep(Duration::from_millis(10)).await;
                let later = boot_now() + Duration::from_millis(20);
                timeout(LONG, timer.until(later)).await.expect("fires");
                assert!(boot_now() >= later);
            }

            #[tokio::test]
            async fn a_dropped_wait_can_be_taken_up_again() {
                let mut timer = SystemTimer::new().unwrap();
                let deadline = boot_now() + Duration::from_millis(20);
                for _ in 0..10 {
                    let _ = timeout(Duration::from_millis(1), timer.until(deadline)).await;
                }
                timeout(LONG, timer.until(deadline)).await.expect("fires");
                assert!(boot_now() >= deadline);
            }

            #[tokio::test]
            async fn an_earlier_instant_replaces_a_later_one() {
                let mut timer = SystemTimer::new().unwrap();
                let far = boot_now() + Duration::from_secs(3_600);
                assert!(timeout(Duration::ZERO, timer.until(far)).await.is_err());
                let soon = boot_now() + Duration::from_millis(5);
                timeout(LONG, timer.until(soon)).await.expect("fires");
            }
        }
    };
}

promises!(of_this_system, crate::BootTimer);
promises!(by_polling, crate::timer::polling::SystemTimer);

/// A timer set by one task and moved to another wakes the task that waits, not the one that set it.
#[tokio::test]
async fn a_timer_moves_between_tasks() {
    let mut timer = BootTimer::new().unwrap();
    let deadline = boot_now() + Duration::from_millis(10);
    let _ = timeout(Duration::ZERO, timer.until(deadline)).await;
    let waiting = tokio::spawn(async move {
        timer.until(deadline).await;
        boot_now()
    });
    let woken = timeout(LONG, waiting).await.expect("fires").expect("does not panic");
    assert!(woken >= deadline);
}

/// What a process with a limit on open files needs: leaderships wait for their deadlines by the thousand.
#[test]
#[cfg(target_os = "linux")]
fn all_timers_of_a_process_share_one_descriptor_also_over_runtimes_that_end() {
    for _ in 0..2 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let soon = boot_now() + Duration::from_millis(20);
            let mut waits: Vec<_> = (0..1_000)
                .map(|n| {
                    let mut timer = BootTimer::new().unwrap();
                    tokio::spawn(async move {
                        timer.until(soon + Duration::from_micros(n)).await;
                        boot_now() >= soon + Duration::from_micros(n)
                    })
                })
                .collect();
            assert_eq!(descriptors_of_timers(), 1);
            for wait in waits.drain(..) {
                assert!(timeout(LONG, wait).await.expect("fires").unwrap(), "early");
            }
        });
    }
}

#[cfg(target_os = "linux")]
fn descriptors_of_timers() -> usize {
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    let targets = open.filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok());
    targets.filter(|target| target.as_os_str() == "anon_inode:[timerfd]").count()
}
