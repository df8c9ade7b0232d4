//! What fuzzing asks of pods and EndpointSlices, as [`crate::fuzz`] lists it.

use super::PeerPort;
use super::objects::{EndpointSlice, List, Pod, of_pods, of_slices};

/// A list of pods, or of EndpointSlices: every peer has a name and an address.
pub fn kubernetes_peers(bytes: &[u8]) {
    for port in [PeerPort::Number(7117), PeerPort::Name("raft".to_owned())] {
        let pods =
            serde_json::from_slice::<List<Pod>>(bytes).ok().map(|list| of_pods(&list.items, "prod", &port));
        let slices = serde_json::from_slice::<List<EndpointSlice>>(bytes).ok();
        let slices = slices.map(|list| of_slices(&list.items, "app", "prod", &port));
        for peer in pods.into_iter().chain(slices).flatten().flatten() {
            assert!(!peer.id.as_str().is_empty() && peer.address.contains(':'), "{peer}");
            assert!(peer.address.len() <= bytes.len() + 64);
        }
    }
}
