//! What systemd is told (`sd_notify`): that this process is ready, how it stands, that it runs, and that it stops.
//!
//! It is told only where it asks for it, by `NOTIFY_SOCKET` and `WATCHDOG_USEC`. Nothing waits for it: a message that does not go through at
//! once is dropped, and said again later if it still matters.
//!
//! - **Ready** means what `/readyz` means: it takes part. It never means that it leads: a follower would never be ready, and whoever starts
//!   the unit would wait for the death of another host.
//! - **The start takes as long as it takes.** A store that is out of reach at boot must not make the unit fail, so until it is ready the
//!   time-out is put off again and again, as long as the process proves that it runs.
//! - **The watchdog hears of the work, not of a clock.** Each ping is sent after the task that renews (or the node's Raft engine) has answered.
//!   A runtime that is stuck, or a process that is stopped, sends none. An outage of the store stops no ping: another process in place of
//!   this one would not reach it either.
//!
//! What is started through us does not inherit the variables ([`VARIABLES`]): the command would tell systemd of itself in our name.

mod socket;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;

use self::socket::NotifySocket;

const SOCKET: &str = "NOTIFY_SOCKET";
const WATCHDOG_USEC: &str = "WATCHDOG_USEC";
const WATCHDOG_PID: &str = "WATCHDOG_PID";

/// What systemd tells a service by, and is for no other process.
pub(crate) const VARIABLES: [&str; 3] = [SOCKET, WATCHDOG_USEC, WATCHDOG_PID];

/// Each time the start is put off, it is by this much: longer than a starved process needs for the next [`START_BEAT`].
const START_EXTENSION: Duration = Duration::from_secs(60);

/// How often the start is put off. Sooner than the shortest start time-out that anybody sets.
const START_BEAT: Duration = Duration::from_secs(1);

/// The longest status. systemd reads at most 4 KiB of a message.
const STATUS_MAX_BYTES: usize = 512;

/// The service manager of this process, if it has one that wants to know.
#[derive(Clone)]
pub(crate) struct Systemd(Option<Arc<Told>>);

struct Told {
    socket: NotifySocket,
    watchdog: Option<Duration>,
    is_ready: AtomicBool,
    is_stopping: AtomicBool,
}

/// Pings until it is dropped.
pub(crate) struct Heartbeat(Option<JoinHandle<()>>);

impl Systemd {
    /// As the environment says.
    pub(crate) fn from_env() -> Systemd {
        let Some(address) = std::env::var_os(SOCKET).filter(|value| !value.is_empty()) else {
            return Systemd(None);
        };
        let socket = match NotifySocket::open(&address) {
            Ok(socket) => socket,
            Err(error) => {
                tracing::warn!(
                    "systemd is told nothing: {SOCKET} ({}) cannot be used: {error}",
                    address.display()
                );
                return Systemd(None);
            }
        };
        let (is_ready, is_stopping) = (AtomicBool::new(false), AtomicBool::new(false));
        Systemd(Some(Arc::new(Told { socket, watchdog: watchdog(), is_ready, is_stopping })))
    }

    /// Whether there is somebody to tell.
    pub(crate) fn is_there(&self) -> bool {
        self.0.is_some()
    }

    /// How it stands, in a sentence for people; and that it is ready, once it is. False if that has to be said again.
    pub(crate) fn stands(&self, sentence: &str, is_ready: bool) -> bool {
        let Some(told) = self.0.as_ref().filter(|told| !told.is_stopping.load(Ordering::Relaxed)) else {
            return true;
        };
        let mut message = format!("STATUS={}", one_line(sentence));
        let is_news = is_ready && !told.is_ready.load(Ordering::Relaxed);
        if is_news {
            message.push_str("\nREADY=1");
        }
        let was_sent = told.socket.send(&message);
        if is_news && was_sent {
            told.is_ready.store(true, Ordering::Relaxed);
        }
        was_sent
    }

    /// That it stops, and how. That is its last word, but for pings.
    pub(crate) fn stopping(&self, sentence: &str) {
        if let Some(told) = &self.0 {
            told.is_stopping.store(true, Ordering::Relaxed);
            told.socket.send(&format!("STOPPING=1\nSTATUS={}", one_line(sentence)));
        }
    }

    /// Pings the watchdog, and puts the start off until it is ready, each time after `answers` says that what renews has answered. In the
    /// runtime of what renews, so that it is stuck with it.
    pub(crate) fn heartbeat<F>(&self, answers: impl Fn() -> F + Send + 'static) -> Heartbeat
    where
        F: Future<Output = bool> + Send,
    {
        let Some(told) = self.0.clone() else { return Heartbeat(None) };
        Heartbeat(Some(tokio::spawn(async move {
            // Half of what it is given, as sd_watchdog_enabled(3) recommends.
            let between_pings = told.watchdog.map(|limit| limit / 2);
            loop {
                let is_ready = told.is_ready.load(Ordering::Relaxed);
                let pause = match (is_ready, between_pings) {
                    (true, None) => return,
                    (true, Some(between)) => between,
                    (false, between) => between.unwrap_or(START_BEAT).min(START_BEAT),
                };
                if answers().await {
                    told.beat(is_ready);
                }
                tokio::time::sleep(pause).await;
            }
        })))
    }
}

impl Told {
    fn beat(&self, is_ready: bool) {
        let mut message = Vec::new();
        if self.watchdog.is_some() {
            message.push("WATCHDOG=1".to_owned());
        }
        if !is_ready {
            message.push(format!("EXTEND_TIMEOUT_USEC={}", START_EXTENSION.as_micros()));
        }
        if !message.is_empty() {
            self.socket.send(&message.join("\n"));
        }
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
    }
}

/// How long the watchdog waits for a ping, if there is one and it is for this process.
fn watchdog() -> Option<Duration> {
    let said = std::env::var(WATCHDOG_USEC).ok()?;
    if let Ok(pid) = std::env::var(WATCHDOG_PID)
        && !crate::id::is_this_process(&pid)
    {
        return None;
    }
    match said.parse() {
        Ok(0) => None,
        Ok(micros) => Some(Duration::from_micros(micros)),
        Err(_) => {
            tracing::warn!("the watchdog of systemd is not served: {WATCHDOG_USEC} ({said}) is no number");
            None
        }
    }
}

/// A line break would begin another field.
fn one_line(sentence: &str) -> String {
    let end = sentence.char_indices().map(|(at, c)| at + c.len_utf8());
    let end = end.take_while(|end| *end <= STATUS_MAX_BYTES).last().unwrap_or(0);
    sentence[..end].chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_one_line_of_bounded_length() {
        assert_eq!(one_line("a\nREADY=1"), "a READY=1");
        let long = "é".repeat(STATUS_MAX_BYTES);
        assert_eq!(one_line(&long).len(), STATUS_MAX_BYTES);
        assert_eq!(one_line(&format!("x{long}")).len(), STATUS_MAX_BYTES - 1, "never half a character");
    }
}
