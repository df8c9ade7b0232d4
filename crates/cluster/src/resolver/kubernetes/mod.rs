//! Peers from the API of Kubernetes: the pods that a selector matches, or the EndpointSlices of a Service.
//!
//! A peer's name is that of its pod. Its address is `HOSTNAME.SERVICE.NAMESPACE.svc:PORT` where the pod has a host name in the Service's
//! subdomain, as in a StatefulSet, and the pod's IP address elsewhere. Whether a pod is ready does not matter: nodes are ready only after they
//! have found each other. For the same reason the Service needs `publishNotReadyAddresses: true`, or those names lead nowhere.
//!
//! Each call lists once, in bounded time. The client is kept between calls and made anew after one that failed, so that replaced
//! credentials are found. The user needs the verb `list` on what is listed, and nothing else.

mod access;
#[cfg(feature = "fuzz")]
pub(crate) mod fuzz;
mod objects;

use std::time::Duration;

use futures_util::future::BoxFuture;
use http::Request;
use serde::de::DeserializeOwned;

use super::{ResolveError, Resolver, complete};
use crate::error::ClusterError;
use crate::peer::Peer;
use access::Access;
pub use access::KubernetesAccess;
use objects::{EndpointSlice, List, Pod};

/// How long a call may take, connecting included.
const LIMIT: Duration = Duration::from_secs(5);

/// Objects that are listed. A cluster has a handful of nodes; more match only by mistake.
const OBJECTS_MAX: usize = 100;

/// Which pods are the peers.
#[derive(Clone, Debug)]
pub struct KubernetesConfig {
    /// How to reach the API server, and as whom.
    pub access: KubernetesAccess,
    /// The namespace; `None`: that of the pod, or of the kubeconfig's context.
    pub namespace: Option<String>,
    /// Where the peers are listed.
    pub peers: PeerSource,
    /// The port that peers are reached at.
    pub port: PeerPort,
    /// How many peers there will be. While there are fewer, [`Resolver::resolve`] returns an error that says so.
    pub expected: usize,
}

/// Where peers are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerSource {
    /// The EndpointSlices of this Service.
    Service(String),
    /// The pods that this label selector matches, such as `app=db,tier!=test`.
    Pods(String),
}

/// A port of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerPort {
    /// This number.
    Number(u16),
    /// The number that the Service or the pod's container gives to this name.
    Name(String),
}

/// Finds peers in a Kubernetes cluster.
#[derive(Debug)]
pub struct KubernetesResolver {
    access: Access,
    peers: PeerSource,
    port: PeerPort,
    expected: usize,
}

impl KubernetesResolver {
    /// Checks the settings; connects to nothing yet.
    ///
    /// # Errors
    /// When a name is empty or not one that Kubernetes takes, the port is 0, or no peer is expected.
    pub fn new(config: KubernetesConfig) -> Result<KubernetesResolver, ClusterError> {
        let KubernetesConfig { access, namespace, peers, port, expected } = config;
        let invalid = |sentence: String| Err(ClusterError::invalid(sentence));
        if let Some(name) = namespace.as_deref().filter(|name| !is_label(name)) {
            return invalid(format!("{name:?} is not the name of a namespace: {LABEL}"));
        }
        match &peers {
            PeerSource::Service(name) if !is_label(name) => {
                return invalid(format!("{name:?} is not the name of a Service: {LABEL}"));
            }
            // An empty one matches every pod.
            PeerSource::Pods(selector) if selector.trim().is_empty() => {
                return invalid("the label selector is empty: write one such as app=NAME".to_owned());
            }
            PeerSource::Service(_) | PeerSource::Pods(_) => {}
        }
        match &port {
            PeerPort::Number(0) => return invalid("0 is not a port: write 1 to 65535".to_owned()),
            PeerPort::Name(name) if !is_label(name) => {
                return invalid(format!("{name:?} is not the name of a port: {LABEL}"));
            }
            PeerPort::Number(_) | PeerPort::Name(_) => {}
        }
        if expected == 0 {
            return invalid("no peer is expected: expect at least 1".to_owned());
        }
        Ok(KubernetesResolver { access: Access::new(access, namespace), peers, port, expected })
    }

    /// Those who are listed, and where.
    async fn list(&self) -> Result<(Vec<Peer>, String), ResolveError> {
        let (client, namespace) = self.access.client().await?;
        let (resource, path, selector) = match &self.peers {
            PeerSource::Service(name) => {
                ("endpointslices", "/apis/discovery.k8s.io/v1", format!("kubernetes.io/service-name={name}"))
            }
            PeerSource::Pods(selector) => ("pods", "/api/v1", selector.clone()),
        };
        let query = format!("labelSelector={}&limit={OBJECTS_MAX}", encoded(&selector));
        let path = format!("{path}/namespaces/{namespace}/{resource}?{query}");
        let doing = format!("list {resource} in namespace {namespace}");
        Ok(match &self.peers {
            PeerSource::Service(name) => {
                let slices: List<EndpointSlice> = self.get(client, &path, &doing).await?;
                let place = format!("the Service {name} in namespace {namespace}");
                (objects::of_slices(&slices.items, name, &namespace, &self.port)?, place)
            }
            PeerSource::Pods(selector) => {
                let pods: List<Pod> = self.get(client, &path, &doing).await?;
                let place = format!("the selector {selector} in namespace {namespace}");
                (objects::of_pods(&pods.items, &namespace, &self.port)?, place)
            }
        })
    }

    async fn get<T: DeserializeOwned>(
        &self,
        client: kube::Client,
        path: &str,
        doing: &str,
    ) -> Result<List<T>, ResolveError> {
        let request = Request::get(path).body(Vec::new());
        let request = request.map_err(|error| ResolveError::permanent(format!("cannot {doing}: {error}")))?;
        let list: List<T> = client.request(request).await.map_err(|error| failed(error, doing))?;
        if !list.metadata.r#continue.is_empty() {
            return Err(ResolveError::permanent(format!(
                "cannot {doing}: more than {OBJECTS_MAX} match, which is no cluster: use a narrower selector"
            )));
        }
        Ok(list)
    }
}

impl Resolver for KubernetesResolver {
    fn resolve(&self) -> BoxFuture<'_, Result<Vec<Peer>, ResolveError>> {
        Box::pin(async {
            let listed = tokio::time::timeout(LIMIT, self.list()).await.unwrap_or_else(|_| {
                let seconds = LIMIT.as_secs();
                Err(ResolveError::passing(format!("the API server did not answer within {seconds} s")))
            });
            if listed.is_err() {
                self.access.forget().await;
            }
            let (peers, place) = listed?;
            complete(peers, self.expected, &place)
        })
    }
}

/// What the API server says, by meaning. Told apart by HTTP status, never by text.
fn failed(error: kube::Error, doing: &str) -> ResolveError {
    let status = match error {
        kube::Error::Api(status) => status,
        error => return ResolveError::passing(format!("cannot {doing} at the moment: {}", chain(&error))),
    };
    let advice = match status.code {
        401 => "the API server does not accept who we are: check the token or certificate",
        403 => "grant that verb on that resource in a Role, and bind it to this user or service account",
        400 | 404 | 405 | 406 | 422 => "the API server does not take the request: check the label selector",
        _ => {
            let said = &status.message;
            return ResolveError::passing(format!(
                "cannot {doing} at the moment (the server says {said:?}, {})",
                status.code
            ));
        }
    };
    let said = &status.message;
    ResolveError::permanent(format!("cannot {doing}: {advice} (the server says {said:?}, {})", status.code))
}

/// An error with what caused it: the client's own sentences alone say little.
fn chain(error: &dyn std::error::Error) -> String {
    let deeper = std::iter::successors(error.source(), |error| (*error).source());
    let mut said = vec![error.to_string()];
    // Many repeat what is below them.
    for sentence in deeper.map(ToString::to_string) {
        if said.iter().all(|before| !before.contains(&sentence)) {
            said.push(sentence);
        }
    }
    said.join(": ")
}

const LABEL: &str = "use up to 63 lower-case letters, digits and `-`";

/// Whether this may be the name of a namespace, a Service or a port.
fn is_label(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let fits = !name.is_empty() && name.len() <= 63 && name.bytes().all(is_part);
    fits && !name.starts_with('-') && !name.ends_with('-')
}

/// Percent-encoded, as a value in a query.
fn encoded(text: &str) -> String {
    let letter = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(peers: PeerSource, port: PeerPort) -> KubernetesConfig {
        KubernetesConfig { access: KubernetesAccess::Inferred, namespace: None, peers, port, expected: 3 }
    }

    #[test]
    fn settings_that_kubernetes_would_not_take_are_refused() {
        let service = |name: &str| PeerSource::Service(name.to_owned());
        assert!(KubernetesResolver::new(config(service("app"), PeerPort::Number(7000))).is_ok());
        for (config, part) in [
            (config(service(""), PeerPort::Number(1)), "name of a Service"),
            (config(service("a.b"), PeerPort::Number(1)), "name of a Service"),
            (config(PeerSource::Pods(" ".into()), PeerPort::Number(1)), "selector is empty"),
            (config(service("a"), PeerPort::Number(0)), "not a port"),
            (config(service("a"), PeerPort::Name("A".into())), "name of a port"),
            (
                KubernetesConfig {
                    namespace: Some("a/b".into()),
                    ..config(service("a"), PeerPort::Number(1))
                },
                "name of a namespace",
            ),
            (
                KubernetesConfig { expected: 0, ..config(service("a"), PeerPort::Number(1)) },
                "expect at least 1",
            ),
        ] {
            let error = KubernetesResolver::new(config).unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
        }
    }

    #[test]
    fn what_may_pass_is_told_from_what_somebody_has_to_mend() {
        let failed = |code| {
            let status = kube::core::Status::failure("no", "Because").with_code(code);
            failed(kube::Error::Api(Box::new(status)), "list pods in namespace a")
        };
        for code in [400, 401, 403, 404] {
            assert!(failed(code).is_permanent(), "{code}");
        }
        for code in [429, 500, 503, 504] {
            assert!(!failed(code).is_permanent(), "{code}");
        }
        assert!(failed(403).to_string().contains("cannot list pods in namespace a: grant that verb"));
    }

    #[test]
    fn selectors_are_encoded() {
        assert_eq!(encoded("app in (a,b),x!=1"), "app%20in%20%28a%2Cb%29%2Cx%21%3D1");
    }
}
