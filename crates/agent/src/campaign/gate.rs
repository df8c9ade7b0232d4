//! Whether a candidate whose clients do the work may compete: while there is one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;

/// Open while a client campaigns. Its [`checked`](ClientGate::checked) is a health check, which keeps the candidate from competing.
///
/// The gate closes only when the candidate does not lead: a client that leaves ends its leadership by stepping down, which nobody
/// should read as ill health.
#[derive(Clone, Debug, Default)]
pub struct ClientGate(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    open: watch::Sender<bool>,
    /// What the last check said.
    said: AtomicBool,
}

impl ClientGate {
    /// How soon after a check the next one begins. A check lasts until there is something new to say.
    pub const INTERVAL: Duration = Duration::from_millis(10);
    /// The longest that a check takes.
    const NOTHING_NEW: Duration = Duration::from_secs(5);

    /// A gate that is closed.
    pub fn new() -> ClientGate {
        ClientGate::default()
    }

    /// A check: waits until the gate opens or closes, or says after a while that nothing has changed.
    pub async fn checked(&self) -> bool {
        let said = self.0.said.load(Ordering::Relaxed);
        let mut open = self.0.open.subscribe();
        let _ = tokio::time::timeout(ClientGate::NOTHING_NEW, open.wait_for(|open| *open != said)).await;
        let open = *self.0.open.borrow();
        self.0.said.store(open, Ordering::Relaxed);
        open
    }

    pub(super) fn set(&self, open: bool) {
        self.0.open.send_if_modified(|now| std::mem::replace(now, open) != open);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_check_says_at_once_that_a_client_has_come_and_gone() {
        let gate = ClientGate::new();
        gate.set(true);
        assert!(gate.checked().await);
        let next = tokio::spawn({
            let gate = gate.clone();
            async move { gate.checked().await }
        });
        gate.set(false);
        assert!(!tokio::time::timeout(ClientGate::NOTHING_NEW / 2, next).await.expect("at once").unwrap());
    }
}
