//! Pods and EndpointSlices, as far as peers are made of them. What else is in them is left unread.

use std::net::IpAddr;

use serde::Deserialize;

use super::{PeerPort, ResolveError};
use crate::names::NodeName;
use crate::peer::Peer;

#[derive(Debug, Deserialize)]
pub(super) struct List<T> {
    #[serde(default)]
    pub(super) metadata: ListMetadata,
    pub(super) items: Vec<T>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct ListMetadata {
    /// Where to go on; empty at the end.
    #[serde(default)]
    pub(super) r#continue: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct EndpointSlice {
    /// `null` where there is none.
    endpoints: Option<Vec<Endpoint>>,
    ports: Option<Vec<SlicePort>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Endpoint {
    #[serde(default)]
    addresses: Vec<String>,
    /// The pod's host name, where its subdomain is the Service.
    hostname: Option<String>,
    target_ref: Option<TargetRef>,
}

#[derive(Debug, Deserialize)]
struct TargetRef {
    kind: Option<String>,
    name: Option<String>,
}

#[derive(Debug, Deserialize)]
struct SlicePort {
    name: Option<String>,
    port: Option<u16>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Pod {
    metadata: PodMetadata,
    spec: PodSpec,
    #[serde(default)]
    status: PodStatus,
}

#[derive(Debug, Deserialize)]
struct PodMetadata {
    name: String,
}

#[derive(Debug, Deserialize)]
struct PodSpec {
    hostname: Option<String>,
    subdomain: Option<String>,
    #[serde(default)]
    containers: Vec<Container>,
}

#[derive(Debug, Deserialize)]
struct Container {
    #[serde(default)]
    ports: Vec<ContainerPort>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContainerPort {
    name: Option<String>,
    container_port: u16,
}

#[derive(Debug, Default, Deserialize)]
struct PodStatus {
    phase: Option<String>,
    #[serde(rename = "podIP")]
    pod_ip: Option<String>,
}

/// The peers of a Service: every pod of its slices, ready or not. What is not a pod has no name that would last.
pub(super) fn of_slices(
    slices: &[EndpointSlice],
    service: &str,
    namespace: &str,
    port: &PeerPort,
) -> Result<Vec<Peer>, ResolveError> {
    let mut peers: Vec<Peer> = Vec::new();
    for slice in slices {
        let endpoints = slice.endpoints.iter().flatten();
        let mut endpoints = endpoints.filter_map(|endpoint| Some((endpoint.pod()?, endpoint))).peekable();
        if endpoints.peek().is_none() {
            continue;
        }
        let number = slice.number(service, port)?;
        for (pod, endpoint) in endpoints {
            let address = match (&endpoint.hostname, endpoint.addresses.first()) {
                (Some(host), _) => format!("{host}.{service}.{namespace}.svc:{number}"),
                (None, Some(ip)) => at_ip(ip, number),
                (None, None) => continue,
            };
            // With two address families, a pod is in two slices: either address will do.
            if !peers.iter().any(|peer| peer.id.as_str() == pod) {
                peers.push(Peer::new(name(pod)?, address));
            }
        }
    }
    Ok(peers)
}

impl Endpoint {
    fn pod(&self) -> Option<&str> {
        let target = self.target_ref.as_ref().filter(|target| target.kind.as_deref() == Some("Pod"))?;
        target.name.as_deref()
    }
}

impl EndpointSlice {
    fn number(&self, service: &str, port: &PeerPort) -> Result<u16, ResolveError> {
        let wanted = match port {
            PeerPort::Number(number) => return Ok(*number),
            PeerPort::Name(name) => name,
        };
        let mut ports = self.ports.iter().flatten();
        let found = ports.find(|port| port.name.as_deref() == Some(wanted)).and_then(|port| port.port);
        found.ok_or_else(|| {
            ResolveError::permanent(format!(
                "the Service {service} has no port named {wanted}: name one of its ports, or give the number"
            ))
        })
    }
}

/// The peers among these pods. One that has run to its end is none; one that has neither a host name nor an address is none yet.
pub(super) fn of_pods(pods: &[Pod], namespace: &str, port: &PeerPort) -> Result<Vec<Peer>, ResolveError> {
    let mut peers = Vec::new();
    for pod in pods.iter().filter(|pod| !pod.has_ended()) {
        let number = pod.number(port)?;
        let address = match (&pod.spec.subdomain, &pod.status.pod_ip) {
            (Some(service), _) => format!("{}.{service}.{namespace}.svc:{number}", pod.host()),
            (None, Some(ip)) => at_ip(ip, number),
            (None, None) => continue,
        };
        peers.push(Peer::new(name(&pod.metadata.name)?, address));
    }
    Ok(peers)
}

impl Pod {
    fn has_ended(&self) -> bool {
        matches!(self.status.phase.as_deref(), Some("Succeeded" | "Failed"))
    }

    fn host(&self) -> &str {
        self.spec.hostname.as_deref().unwrap_or(&self.metadata.name)
    }

    fn number(&self, port: &PeerPort) -> Result<u16, ResolveError> {
        let wanted = match port {
            PeerPort::Number(number) => return Ok(*number),
            PeerPort::Name(name) => name,
        };
        let mut ports = self.spec.containers.iter().flat_map(|container| &container.ports);
        let found = ports.find(|port| port.name.as_deref() == Some(wanted));
        found.map(|port| port.container_port).ok_or_else(|| {
            let pod = &self.metadata.name;
            ResolveError::permanent(format!(
                "no container of the pod {pod} has a port named {wanted}: name one, or give the number"
            ))
        })
    }
}

fn name(pod: &str) -> Result<NodeName, ResolveError> {
    NodeName::new(pod).map_err(|error| ResolveError::permanent(error.to_string()))
}

fn at_ip(ip: &str, port: u16) -> String {
    match ip.parse() {
        Ok(IpAddr::V6(ip)) => format!("[{ip}]:{port}"),
        Ok(IpAddr::V4(_)) | Err(_) => format!("{ip}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn slices(items: Value) -> Vec<EndpointSlice> {
        serde_json::from_value(items).unwrap()
    }

    fn printed(peers: Result<Vec<Peer>, ResolveError>) -> Vec<String> {
        peers.unwrap().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_pod_in_two_address_families_is_one_peer() {
        let endpoint = |ip: &str| json!({ "addresses": [ip], "targetRef": { "kind": "Pod", "name": "a-0" } });
        let slices = slices(json!([
            { "endpoints": [endpoint("fd00::1")], "ports": [] },
            { "endpoints": [endpoint("10.0.0.1")], "ports": null },
            { "endpoints": null, "ports": null },
        ]));
        assert_eq!(printed(of_slices(&slices, "a", "n", &PeerPort::Number(7))), ["a-0=[fd00::1]:7"]);
    }

    #[test]
    fn what_is_no_pod_is_no_peer() {
        let slices = slices(json!([{ "endpoints": [
            { "addresses": ["10.0.0.1"] },
            { "addresses": ["10.0.0.2"], "targetRef": { "kind": "Node", "name": "b" } },
        ], "ports": [] }]));
        assert_eq!(printed(of_slices(&slices, "a", "n", &PeerPort::Name("raft".into()))), [""; 0]);
    }

    #[test]
    fn a_pod_that_ended_is_no_peer_and_one_without_address_is_none_yet() {
        let pods: Vec<Pod> = serde_json::from_value(json!([
            { "metadata": { "name": "a-0" }, "spec": {}, "status": { "phase": "Failed", "podIP": "10.0.0.1" } },
            { "metadata": { "name": "a-1" }, "spec": {}, "status": { "phase": "Pending" } },
            { "metadata": { "name": "a-2" }, "spec": {}, "status": { "phase": "Running", "podIP": "fd00::2" } },
            { "metadata": { "name": "a-3" }, "spec": { "hostname": "h", "subdomain": "s" } },
        ]))
        .unwrap();
        assert_eq!(
            printed(of_pods(&pods, "n", &PeerPort::Number(7))),
            ["a-2=[fd00::2]:7", "a-3=h.s.n.svc:7"]
        );
    }
}
