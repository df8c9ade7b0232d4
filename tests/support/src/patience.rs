//! Waiting for what nobody announces: the files of another process, its end, what a server says when it is asked.
//!
//! Where something announces it, await that instead.

use std::fmt::Display;
use std::time::Duration;

use bellwether_deadman::boot_now;

/// How long anything may take on a slow machine before a test calls it hung.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Between two looks: short beside what is measured, long beside what a look costs.
const PAUSE: Duration = Duration::from_millis(2);

/// Looks again and again until it is so. Fails the test with what the last look said if that takes too long.
pub async fn until<T, E, Looked>(mut look: impl FnMut() -> Looked) -> T
where
    E: Display,
    Looked: Future<Output = Result<T, E>>,
{
    let by = boot_now() + PATIENCE;
    loop {
        match look().await {
            Ok(found) => return found,
            Err(still) => assert!(boot_now() < by, "{still}, after {PATIENCE:?}"),
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// As [`until`], where there is no runtime.
#[track_caller]
pub fn until_blocking<T, E: Display>(mut look: impl FnMut() -> Result<T, E>) -> T {
    let by = boot_now() + PATIENCE;
    loop {
        match look() {
            Ok(found) => return found,
            Err(still) => assert!(boot_now() < by, "{still}, after {PATIENCE:?}"),
        }
        std::thread::sleep(PAUSE);
    }
}
