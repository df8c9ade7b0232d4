//! The client: elections on a cluster, for a process anywhere.
//!
//! ```text
//!  Backend ─ calls ──▶ session (number, keepalive) ──▶ link ──▶ any node ──▶ the leader
//!     ▲                    │ candidates: who leads, waits, claims
//!     └── notices ◀── watch ◀───────────────────────── link ◀── any node
//! ```
//!
//! What holds, and why:
//!
//! - **A grant counts from before its claim left**, and a renewed one from before the keepalive left that renewed it: the Raft leader
//!   counts from when either arrived, which is later.
//! - **A command is sent again under the number of its first try**, to any node, for as long as its call may take. After that its number is
//!   given up, and the command does nothing if it arrives later still.
//! - **Nothing but a renewal keeps a leadership alive.** A session is also kept alive while somebody waits in it; what it leads and
//!   nobody has renewed for a ttl is resigned then.
//! - **The end of a connection means nothing**, neither here nor in the cluster.
//!
//! All tasks end with the store. Its session then ends after its ttl: whether the work of its leaderships has ended, only the driver knows,
//! and it releases before.

mod backend;
mod calls;
mod candidates;
mod checkup;
mod link;
mod maintain;
mod reroute;
mod session;
mod watch;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwether_backend::{NoticeQueue, lock};
use bellwether_cluster::ClientConfig;
use bellwether_core::{Clock, ElectionName, ErrorKind, Signal, StoreError};
use tokio::sync::{Mutex as AsyncMutex, watch as channel};

pub use self::reroute::{places, through};

use self::candidates::Candidates;
use self::link::Link;
use self::session::Session;
use crate::answer::Answer;
use crate::command::Command;
use crate::errors::{BACKEND, refused, senseless};
use crate::protocol::{Question, Reply};

/// For a call that belongs to no session.
const CALL_LIMIT: Duration = Duration::from_secs(5);

/// Elections on a Raft cluster.
pub struct Raft(Arc<Shared>);

/// Elections on the cluster that a URL names: `raft://HOST:PORT[,HOST:PORT]…`, with `secret-file=FILE` or `tls-ca=FILE&tls-cert=FILE&tls-key=FILE`.
/// Connects with the first call.
///
/// # Errors
/// When the URL cannot be read, or a file that it names.
pub fn from_url(url: &str, clock: Arc<dyn Clock>) -> Result<Raft, StoreError> {
    Raft::new(config(url)?, clock)
}

fn config(url: &str) -> Result<ClientConfig, StoreError> {
    ClientConfig::from_url(url)
        .map_err(|error| StoreError::new(ErrorKind::InvalidInput, BACKEND, error.to_string()))
}

impl Raft {
    /// Elections on this cluster. Connects with the first call.
    ///
    /// # Errors
    /// When certificates cannot be read.
    pub fn new(config: ClientConfig, clock: Arc<dyn Clock>) -> Result<Raft, StoreError> {
        let shared = Shared {
            security: config.security.clone(),
            link: Link::new(config, clock)?,
            sessions: Mutex::default(),
            candidates: Mutex::default(),
            followed: channel::Sender::new(Interest::default()),
            watching: Mutex::default(),
            notices: Arc::default(),
            alive: channel::Sender::new(()),
        };
        Ok(Raft(Arc::new(shared)))
    }
}

struct Shared {
    link: Link,
    security: bellwether_cluster::transport::Security,
    /// By their ttl.
    sessions: Mutex<HashMap<Duration, Arc<Slot>>>,
    candidates: Mutex<Candidates>,
    followed: channel::Sender<Interest>,
    watching: Mutex<watch::State>,
    notices: Arc<NoticeQueue>,
    /// Ends with the store; tasks listen.
    alive: channel::Sender<()>,
}

/// The place of the session with one ttl. Locked while it is opened.
type Slot = AsyncMutex<Option<Arc<Session>>>;

/// What the watch asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Interest {
    /// How many follow each election.
    elections: BTreeMap<ElectionName, usize>,
    sessions: Vec<crate::command::SessionId>,
}

impl Shared {
    /// The open session with this ttl, opened if need be.
    async fn session(self: &Arc<Self>, ttl: Duration) -> Result<Arc<Session>, StoreError> {
        let slot = Arc::clone(lock(&self.sessions).entry(ttl).or_default());
        let mut slot = slot.lock().await;
        if let Some(open) = slot.as_ref().filter(|session| !session.is_over()) {
            return Ok(Arc::clone(open));
        }
        let label = format!("{}/{}", host_name(), std::process::id());
        let command = Command::OpenSession { nonce: bellwether_deadman::random_bits(), ttl, label };
        let session = match self.propose(&command, CALL_LIMIT).await? {
            Answer::Opened(id) => Arc::new(Session::new(id, ttl)),
            Answer::Refused(refusal) => return Err(refused(&refusal)),
            _ => return Err(senseless()),
        };
        *slot = Some(Arc::clone(&session));
        self.followed.send_modify(|interest| interest.sessions.push(session.id));
        maintain::begin(self, Arc::clone(&session));
        Ok(session)
    }

    /// The session with this ttl, if there is one. Does not wait.
    fn session_now(&self, ttl: Duration) -> Option<Arc<Session>> {
        let slot = lock(&self.sessions).get(&ttl).cloned()?;
        slot.try_lock().ok()?.clone()
    }

    /// The cluster says that this session has ended: so has everything in it.
    fn ended(&self, session: &Session) {
        if !session.end() {
            return;
        }
        self.followed.send_modify(|interest| interest.sessions.retain(|id| *id != session.id));
        let ended = lock(&self.candidates).ended(session.id);
        for on in ended.led {
            tracing::warn!(election = %on, "the session of a leadership has ended");
            self.notices.about(on, Signal::Gone);
        }
        for on in ended.waited {
            // Its place in the queue is lost: it claims again, and has another one.
            self.notices.about(on, Signal::Restored);
        }
    }

    /// Proposes a command, and returns the answer of the state machine.
    async fn propose(&self, command: &Command, limit: Duration) -> Result<Answer, StoreError> {
        match self.link.ask(&Question::Propose(command.encode()), limit).await?.1 {
            Reply::Applied(answer) => {
                Answer::decode(&answer).map_err(|why| StoreError::new(ErrorKind::Misconfigured, BACKEND, why))
            }
            Reply::Refused { why } => Err(StoreError::new(ErrorKind::InvalidInput, BACKEND, why)),
            _ => Err(senseless()),
        }
    }
}

fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "unknown host".to_owned() } else { name.to_owned() }
}
