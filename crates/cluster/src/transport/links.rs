//! One connection for each member and lane, made when it is needed and again when it is lost.
//!
//! ```text
//!            call                  done
//!   Idle ───────────▶ Dialling ───────────▶ Up
//!    ▲                 ▲     │ failed       │ closed without an answer
//!    │   call, later   │     ▼              ▼
//!    │                 └──── BackingOff ◀───┘
//!    └────────────────────── closed ────────┘
//! ```
//!
//! A call to a member that backs off fails at once: an engine has its own retries, and must not wait for a member that is down.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bellwether_core::Boot;
use bellwether_deadman::boot_now;
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::connection::Connection;
use super::dialler::Dialler;
use super::error::CallError;
use super::hello::{Hello, Intended, Purpose};
use super::limits::{BACKOFF_FIRST, BACKOFF_MAX};
use crate::adapter::{Lane, PeerLink, Unreached};
use crate::member::Member;
use crate::names::{ClusterId, NodeId, NodeName};

/// Finds the address of a member.
type Address = dyn Fn(&Member) -> String + Send + Sync;

/// The connections of one node to the others. Dropped, they close.
pub struct Links {
    dialler: Dialler,
    cluster: ClusterId,
    from: (NodeId, NodeName),
    address: Box<Address>,
    links: Mutex<HashMap<(NodeId, Lane), Arc<Link>>>,
    /// The dials that run. Dropped with the links, which ends them.
    dials: Mutex<JoinSet<()>>,
}

impl Links {
    /// Links of this node in this cluster. `address` is asked at every dial.
    pub fn new(
        dialler: Dialler,
        cluster: ClusterId,
        from: (NodeId, NodeName),
        address: impl Fn(&Member) -> String + Send + Sync + 'static,
    ) -> Links {
        Links {
            dialler,
            cluster,
            from,
            address: Box::new(address),
            links: Mutex::default(),
            dials: Mutex::default(),
        }
    }

    /// Takes a message to a member, and brings back the answer.
    ///
    /// # Errors
    /// See [`CallError`]. While a member could not be reached a moment ago, the error is the one from then.
    pub async fn request(
        &self,
        to: &Member,
        lane: Lane,
        message: Vec<u8>,
        limit: Duration,
    ) -> Result<Vec<u8>, CallError> {
        let begun = boot_now();
        let connection = match timeout(limit, self.connection(to, lane)).await {
            Ok(connection) => connection?,
            Err(_) => return Err(CallError::NotSent(format!("{to} was not reached within {limit:?}"))),
        };
        connection.call(message, limit.saturating_sub(boot_now().since(begun))).await
    }

    /// Closes the connections to members that are not kept.
    pub fn retain(&self, mut keeps: impl FnMut(NodeId) -> bool) {
        locked(&self.links).retain(|(node, _), _| keeps(*node));
    }

    async fn connection(&self, to: &Member, lane: Lane) -> Result<Connection, CallError> {
        let link = Arc::clone(locked(&self.links).entry((to.node, lane)).or_default());
        let mut state = link.state.subscribe();
        if link.begin(boot_now()) {
            self.dial(Arc::clone(&link), to, lane);
        }
        // The link is held here, so the sender is too.
        let settled = state.wait_for(|state| !matches!(state.stage, Stage::Dialling)).await;
        match &settled.expect("the link lives").stage {
            Stage::Up(connection) => Ok(connection.clone()),
            Stage::BackingOff { why, .. } => Err(why.clone()),
            Stage::Idle | Stage::Dialling => Err(CallError::NotSent("the connection closed".to_owned())),
        }
    }

    fn dial(&self, link: Arc<Link>, to: &Member, lane: Lane) {
        let hello = Hello {
            purpose: Purpose::Raft(lane),
            cluster: Some(self.cluster),
            from: Some(self.from.clone()),
            intended: Intended::Node(to.node, to.name.clone()),
        };
        let (dialler, address) = (self.dialler.clone(), (self.address)(to));
        let mut dials = locked(&self.dials);
        while dials.try_join_next().is_some() {}
        dials.spawn(async move {
            let dialled = dialler.connect(&address, &hello).await;
            link.state.send_modify(|state| match dialled {
                Ok(connection) => state.stage = Stage::Up(connection),
                Err(error) => state.back_off(boot_now(), error.into()),
            });
        });
    }
}

impl PeerLink for Links {
    fn call(
        &self,
        to: &Member,
        lane: Lane,
        message: Vec<u8>,
        limit: Duration,
    ) -> BoxFuture<'_, Result<Vec<u8>, Unreached>> {
        let to = to.clone();
        Box::pin(async move {
            let answered = self.request(&to, lane, message, limit).await;
            answered.map_err(|error| Unreached(format!("{to}: {error}")))
        })
    }
}

/// The way to one member, for one lane.
#[derive(Default)]
struct Link {
    state: watch::Sender<State>,
}

#[derive(Default)]
struct State {
    stage: Stage,
    /// The next pause, once there was one.
    pause: Option<Duration>,
}

#[derive(Default)]
enum Stage {
    #[default]
    Idle,
    Dialling,
    Up(Connection),
    BackingOff {
        until: Boot,
        why: CallError,
    },
}

impl Link {
    /// Whether the caller has to dial.
    fn begin(&self, now: Boot) -> bool {
        self.state.send_if_modified(|state| {
            if let Stage::Up(connection) = &state.stage
                && !connection.is_open()
            {
                // A listener that takes connections and closes them is as good as down.
                if connection.has_answered() {
                    state.pause = None;
                } else {
                    state.back_off(now, CallError::NotSent("the member closed the connection".to_owned()));
                    return false;
                }
            }
            let is_due = match &state.stage {
                Stage::Idle => true,
                Stage::Dialling => false,
                Stage::Up(connection) => !connection.is_open(),
                Stage::BackingOff { until, .. } => *until <= now,
            };
            if is_due {
                state.stage = Stage::Dialling;
            }
            is_due
        })
    }
}

impl State {
    fn back_off(&mut self, now: Boot, why: CallError) {
        let pause = self.pause.unwrap_or(BACKOFF_FIRST);
        self.pause = Some((pause * 2).min(BACKOFF_MAX));
        self.stage = Stage::BackingOff { until: now + pause, why };
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
