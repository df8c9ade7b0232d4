//! A network in memory that can cut, delay and lose.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bellwether_cluster::{Lane, Member, NodeId, PeerLink, RaftAdapter, Unreached};
use bellwether_deadman::random_bits;
use futures_util::future::BoxFuture;
use tokio::time::{sleep, timeout};

#[derive(Clone, Default)]
pub(crate) struct Network(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    nodes: BTreeMap<NodeId, Arc<dyn RaftAdapter>>,
    /// Nodes that hear nobody and that nobody hears.
    cut: BTreeSet<NodeId>,
    weather: Weather,
    /// The addresses that were dialled.
    dialled: BTreeSet<String>,
}

/// What happens to each message, and to each answer.
#[derive(Clone, Copy, Default)]
pub(crate) struct Weather {
    pub(crate) longest_delay_ms: u64,
    pub(crate) lost_percent: u64,
}

impl Network {
    pub(crate) fn link(&self, from: NodeId) -> Arc<dyn PeerLink> {
        Arc::new(Link { from, network: self.clone() })
    }

    pub(crate) fn join(&self, node: NodeId, adapter: Arc<dyn RaftAdapter>) {
        self.state().nodes.insert(node, adapter);
    }

    pub(crate) fn leave(&self, node: NodeId) {
        self.state().nodes.remove(&node);
    }

    pub(crate) fn cut(&self, node: NodeId) {
        self.state().cut.insert(node);
    }

    pub(crate) fn heal(&self) {
        self.state().cut.clear();
    }

    pub(crate) fn set_weather(&self, weather: Weather) {
        self.state().weather = weather;
    }

    pub(crate) fn was_dialled(&self, address: &str) -> bool {
        self.state().dialled.contains(address)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// One way. A message that is lost never arrives, and nobody says so.
    async fn cross(&self, from: NodeId, to: NodeId) {
        let (weather, is_cut) = {
            let state = self.state();
            (state.weather, state.cut.contains(&from) || state.cut.contains(&to))
        };
        if is_cut || below(100) < weather.lost_percent {
            std::future::pending::<()>().await;
        }
        if weather.longest_delay_ms > 0 {
            sleep(Duration::from_millis(below(weather.longest_delay_ms + 1))).await;
        }
    }
}

fn below(limit: u64) -> u64 {
    random_bits() as u64 % limit
}

struct Link {
    from: NodeId,
    network: Network,
}

impl PeerLink for Link {
    fn call(
        &self,
        to: &Member,
        _lane: Lane,
        message: Vec<u8>,
        limit: Duration,
    ) -> BoxFuture<'_, Result<Vec<u8>, Unreached>> {
        let (from, node) = (self.from, to.node);
        self.network.state().dialled.insert(to.address.clone());
        let exchange = async move {
            self.network.cross(from, node).await;
            let adapter = self.network.state().nodes.get(&node).cloned();
            let adapter = adapter.ok_or_else(|| Unreached("nobody is there".to_owned()))?;
            let answer = adapter.receive(message).await.map_err(|error| Unreached(error.to_string()))?;
            self.network.cross(node, from).await;
            Ok(answer)
        };
        Box::pin(async move {
            let answered = timeout(limit, exchange).await;
            answered.unwrap_or_else(|_| Err(Unreached("no answer in time".to_owned())))
        })
    }
}
