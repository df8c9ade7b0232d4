//! Children that this process did not start: background processes of health checks and hooks, and those of a shell that became
//! this program (`exec`).

use std::time::Duration;

use bellwether_supervise::Orphans;
use tokio::signal::unix::{SignalKind, signal};

/// Whoever started a child has waited for it by then.
const WAITED_WITHIN: Duration = Duration::from_secs(1);

/// Reaps them, for as long as it is polled.
pub(super) async fn reap_orphans() {
    // Without it, they stay until this process ends.
    let Ok(mut ended) = signal(SignalKind::child()) else { return };
    let mut orphans = Orphans::default();
    loop {
        orphans.reap();
        if orphans.is_empty() {
            ended.recv().await;
        }
        tokio::time::sleep(WAITED_WITHIN).await;
    }
}
