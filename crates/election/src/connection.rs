//! Whether the store answers, as one candidate sees it.

use bellwether_core::{ErrorKind, Input, Signal, StoreError};

use crate::event::What;

/// Whether the store answers this candidate.
///
/// It is for people and metrics. No leadership depends on it: a leader leads until its deadline, whatever the connection does.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), bellwether_election::Error> {
/// # let backend = bellwether_backend::MemoryStore::default().connect(std::sync::Arc::new(bellwether_deadman::SystemClock));
/// use bellwether_election::{Connection, Election};
///
/// let election = Election::builder("reports").backend(backend).id("host-1").start().await?;
/// election.wait_until(|status| status.connection == Connection::Connected).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Connection {
    /// The store has not answered since the candidate started.
    #[default]
    Unknown,
    /// The last that was heard of the store is an answer, or that its connection is back.
    Connected,
    /// The last that was heard is that the connection is silent or has ended, or that a call got no answer.
    Disconnected,
}

impl Connection {
    /// The word used in status and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Connection::Unknown => "unknown",
            Connection::Connected => "connected",
            Connection::Disconnected => "disconnected",
        }
    }

    /// What this input tells of it, if anything.
    pub(crate) fn told_by(input: &Input) -> Option<Connection> {
        match input {
            Input::Signal(Signal::Doubt | Signal::Gone) => Some(Connection::Disconnected),
            Input::Signal(Signal::Restored) => Some(Connection::Connected),
            _ => None,
        }
    }

    /// What this event tells of it, if anything. A store that refuses or is full has answered.
    pub(crate) fn told_by_event(what: &What) -> Option<Connection> {
        let silent =
            |error: &StoreError| matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::TimedOut);
        match what {
            What::Error(error) if silent(error) => Some(Connection::Disconnected),
            _ => None,
        }
    }
}
