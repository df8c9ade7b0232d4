//! Which cluster, and which namespace.
//!
//! ```text
//! kubernetes://[NAMESPACE][?OPTION=VALUE&…]
//! ```
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `kubeconfig` | `$KUBECONFIG`, `~/.kube/config`, or the pod's service account | the file that names clusters and users |
//! | `context` | the current one | a context of that file |
//! | `events` | yes | whether new leaders are recorded as Events on the Lease |
//! | `timeout` | a sixth of the ttl, 500ms to 2s | how long one call may take |
//! | `watch` | 200s | how long one watch lasts before the next; less where something on the way drops quiet connections sooner |
//! | `label` | no | whether the leader's pod carries the label `leader.bellwether/ELECTION: "true"` |
//! | `pod` | `$POD_NAME` | the pod that is labelled |
//! | `service` | none | the Service without selector whose EndpointSlice has the leader's address |
//! | `port` | none | of that Service, as `PORT` or `NAME:PORT`; several are separated by commas |
//! | `address` | `$POD_IP` | the leader's address there |
//!
//! Without a namespace it is `$POD_NAMESPACE`, else that of the context or of the service account, else `default`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use bellwether_backend::url;
use bellwether_core::{StoreError, duration};
use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::errors::{BACKEND, invalid, misconfigured};
use crate::leader_address::{LeaderAddress, Port};
use crate::names;

const OPTIONS: &str = "kubeconfig, context, events, timeout, watch, label, pod, service, port, address";
/// Load balancers drop connections that are quiet for longer than four minutes.
const WATCH: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(200));

/// Which cluster and which namespace hold the elections: `kubernetes://[NAMESPACE][?OPTION=VALUE&…]`.
///
/// The options are `kubeconfig` (a file), `context` (of that file), `events` (yes; whether new leaders are recorded as Events),
/// `timeout` (for one call) and `watch` (200s; how long one watch lasts); `label` (no) with `pod`, see
/// [`label_pod`](Config::label_pod); and `service` with `port` and `address`, see [`publish_address`](Config::publish_address).
#[derive(Clone)]
pub struct Config {
    source: Source,
    namespace: Option<String>,
    pub(crate) events: bool,
    pub(crate) timeout: Option<Duration>,
    /// How long one watch lasts, at least.
    pub(crate) watch: Duration,
    label: bool,
    pod: Option<String>,
    service: Option<String>,
    ports: Vec<Port>,
    address: Option<IpAddr>,
}

/// Where the address of the API server and our credentials come from.
#[derive(Clone)]
enum Source {
    /// A kubeconfig file, or the service account of the pod, whichever is there.
    Inferred { file: Option<PathBuf>, context: Option<String> },
    /// The service account of the pod.
    InCluster,
    /// A client that the program has made.
    Client(kube::Client),
}

/// What a pod is told about itself by the downward API.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Environment {
    /// `$POD_NAMESPACE`.
    pub namespace: Option<String>,
    /// `$POD_NAME`: a good id for a candidate.
    pub pod: Option<String>,
    /// `$POD_IP`: where a leader can be reached.
    pub address: Option<String>,
}

impl Environment {
    /// That of this process.
    pub fn from_env() -> Environment {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        Environment {
            namespace: variable("POD_NAMESPACE"),
            pod: variable("POD_NAME"),
            address: variable("POD_IP"),
        }
    }
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

impl Config {
    /// Reads a URL. Connects to nothing, and reads neither files nor variables.
    ///
    /// # Errors
    /// When it cannot be read, with a sentence that says what to write.
    pub fn from_url(url: &str) -> Result<Config, StoreError> {
        let wrong =
            "that is not a URL of a Kubernetes cluster; write kubernetes://NAMESPACE or kubernetes://";
        let rest = url.strip_prefix("kubernetes:").ok_or_else(|| invalid(wrong))?;
        let rest = rest.strip_prefix("//").unwrap_or(rest);
        let (namespace, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (mut file, mut context) = (None, None);
        let mut config = Config::new(Source::InCluster);
        let namespace = namespace.trim_end_matches('/');
        if !namespace.is_empty() {
            config = config.namespace(namespace)?;
        }
        for option in url::options(BACKEND, query) {
            let (name, value) = option?;
            match name {
                "kubeconfig" => file = Some(PathBuf::from(value)),
                "context" => context = Some(value),
                "events" => config.events = url::yes_or_no(BACKEND, name, &value)?,
                "timeout" => config.timeout = Some(url::time(BACKEND, name, &value)?),
                "watch" => {
                    let lasts = duration::parse(&value).filter(|lasts| (WATCH.0..=WATCH.1).contains(lasts));
                    config.watch = lasts.ok_or_else(|| invalid("watch is a time from 1s to 200s"))?;
                }
                "label" => config.label = url::yes_or_no(BACKEND, name, &value)?,
                "pod" => config.pod = Some(value),
                "service" => config.service = Some(value),
                "port" => {
                    let ports: Option<Vec<Port>> = value.split(',').map(Port::parse).collect();
                    config.ports = ports
                        .ok_or_else(|| invalid("port is a number or NAME:NUMBER, or several with commas"))?;
                }
                "address" => config.address = Some(ip(&value, "address")?),
                _ => {
                    let sentence = format!(
                        "there is no option {name:?} in a URL of a Kubernetes cluster: there are {OPTIONS}"
                    );
                    return Err(invalid(sentence));
                }
            }
        }
        config.source = Source::Inferred { file, context };
        Ok(config)
    }

    /// The cluster that `$KUBECONFIG`, `~/.kube/config` or the service account of the pod names, and the namespace of `$POD_NAMESPACE`.
    ///
    /// # Errors
    /// When the variable holds no name of a namespace.
    pub fn from_env() -> Result<Config, StoreError> {
        Config::new(Source::Inferred { file: None, context: None }).in_environment(&Environment::from_env())
    }

    /// The cluster that this pod runs in, by its service account.
    pub fn in_cluster() -> Config {
        Config::new(Source::InCluster)
    }

    /// The cluster that this client talks to.
    ///
    /// Make it with `default_retry = false`: retries of its own would delay renewals past every bound.
    pub fn from_client(client: kube::Client) -> Config {
        Config::new(Source::Client(client))
    }

    /// These elections are in this namespace.
    ///
    /// # Errors
    /// When that is no name of a namespace.
    pub fn namespace(self, namespace: &str) -> Result<Config, StoreError> {
        if !names::is_label(namespace) {
            return Err(invalid(
                "a namespace is named with lower-case letters, digits and -, at most 63 of them",
            ));
        }
        Ok(Config { namespace: Some(namespace.to_owned()), ..self })
    }

    /// While this process leads, this pod of the namespace carries the label `leader.bellwether/ELECTION: "true"`: that of this
    /// process.
    ///
    /// A candidate removes the label of its own pod before its first claim, and that of its predecessor's when it is promoted. A leader that
    /// was paused may set it late, and takes it away when it finds out.
    ///
    /// # Errors
    /// When that is no name of a pod.
    pub fn label_pod(self, pod: &str) -> Result<Config, StoreError> {
        Config { label: true, pod: Some(pod.to_owned()), ..self }.checked()
    }

    /// While this process leads, the EndpointSlice of a Service without selector has its address.
    ///
    /// It is written by compare-and-set, with the epoch in an annotation: the API server refuses what an old leader writes late.
    #[must_use]
    pub fn publish_address(self, address: LeaderAddress) -> Config {
        let (service, ip, ports) = address.into_parts();
        Config { service: Some(service), address: Some(ip), ports, ..self }
    }

    /// Takes from the environment what is needed and not named: the namespace, the pod that is labelled, the leader's address.
    ///
    /// # Errors
    /// When a variable that is needed is missing or cannot be used.
    pub fn in_environment(mut self, environment: &Environment) -> Result<Config, StoreError> {
        if let Some(name) = environment.namespace.as_deref().filter(|_| self.namespace.is_none()) {
            self = self.namespace(name)?;
        }
        self.pod = self.pod.or_else(|| environment.pod.clone());
        if let Some(text) = environment.address.as_deref().filter(|_| self.service.is_some()) {
            let from_pod = ip(text, "POD_IP")?;
            self.address.get_or_insert(from_pod);
        }
        self.checked()
    }

    fn new(source: Source) -> Config {
        Config {
            source,
            namespace: None,
            events: true,
            timeout: None,
            watch: WATCH.1,
            label: false,
            pod: None,
            service: None,
            ports: Vec::new(),
            address: None,
        }
    }

    /// That everything is there which the label and the address need.
    fn checked(self) -> Result<Config, StoreError> {
        self.labelled()?;
        self.published()?;
        Ok(self)
    }

    fn labelled(&self) -> Result<Option<&str>, StoreError> {
        match &self.pod {
            _ if !self.label => Ok(None),
            Some(pod) if names::is_subdomain(pod) => Ok(Some(pod)),
            Some(pod) => Err(invalid(format!("{pod:?} is not the name of a pod: write label=yes&pod=NAME"))),
            None => Err(invalid(
                "label=yes needs the name of the pod: let the downward API set POD_NAME (metadata.name), or write pod=NAME",
            )),
        }
    }

    fn published(&self) -> Result<Option<LeaderAddress>, StoreError> {
        match (&self.service, self.address) {
            (None, _) if self.ports.is_empty() => Ok(None),
            (None, _) => Err(invalid("port is that of a Service: write service=NAME too")),
            (Some(_), _) if self.ports.is_empty() => {
                Err(invalid("service needs the port of the leader: write port=NUMBER, or port=NAME:NUMBER"))
            }
            (Some(service), Some(address)) => {
                let address = LeaderAddress::new(service, address)?;
                Ok(Some(
                    self.ports.iter().fold(address, |address, port| address.port(&port.name, port.number)),
                ))
            }
            (Some(_), None) => Err(invalid(
                "service needs the address of the pod: let the downward API set POD_IP (status.podIP), or write address=IP",
            )),
        }
    }

    /// The pod to label; a configuration that lacks its name is refused by [`connect`](Config::connect).
    pub(crate) fn labelled_pod(&self) -> Option<String> {
        self.labelled().ok().flatten().map(str::to_owned)
    }

    /// The address to publish; a configuration that lacks a part of it is refused by [`connect`](Config::connect).
    pub(crate) fn leader_address(&self) -> Option<LeaderAddress> {
        self.published().ok().flatten()
    }

    /// A client and the namespace, from what the files hold now. Runs the program that a kubeconfig names for credentials, if any.
    pub(crate) async fn connect(&self) -> Result<(kube::Client, String), StoreError> {
        self.labelled()?;
        self.published()?;
        let mut config = match &self.source {
            Source::Client(client) => {
                let namespace =
                    self.namespace.clone().unwrap_or_else(|| client.default_namespace().to_owned());
                return Ok((client.clone(), namespace));
            }
            Source::InCluster => in_cluster()?,
            Source::Inferred { file: None, context: None } => match from_default_file(None).await {
                Ok(config) => config,
                // No file at all is how it is in a pod.
                Err(no_file) => kube::Config::incluster().map_err(|_| no_file)?,
            },
            Source::Inferred { file: None, context } => from_default_file(context.clone()).await?,
            Source::Inferred { file: Some(file), context } => from_file(file, context.clone()).await?,
        };
        // The client's own retries sleep for minutes; every call here has its own bound, and the core retries.
        config.default_retry = false;
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        let namespace = self.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        // A program for credentials may run for seconds, and must not hold up other tasks.
        let made = tokio::task::spawn_blocking(move || kube::Client::try_from(config)).await;
        let cut_short = |error| crate::errors::unavailable("connecting was cut short").caused_by(error);
        let unfit = |error| {
            misconfigured("what the kubeconfig or the service account says cannot be used").caused_by(error)
        };
        Ok((made.map_err(cut_short)?.map_err(unfit)?, namespace))
    }

    /// Whether [`connect`](Config::connect) can be asked for a new client at any time.
    pub(crate) fn can_reconnect(&self) -> bool {
        !matches!(self.source, Source::Client(_))
    }
}

fn ip(text: &str, name: &str) -> Result<IpAddr, StoreError> {
    text.parse().map_err(|_| {
        invalid(format!("{name} is an IP address, such as 10.1.2.3 or fd00::7, and not {text:?}"))
    })
}

/// For connecting to the server. Calls have their own limits, which include this.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

fn in_cluster() -> Result<kube::Config, StoreError> {
    kube::Config::incluster().map_err(|error| {
        misconfigured("this process does not run in a pod with a service account; name a kubeconfig instead")
            .caused_by(error)
    })
}

async fn from_default_file(context: Option<String>) -> Result<kube::Config, StoreError> {
    let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    kube::Config::from_kubeconfig(&options).await.map_err(|error| {
        let sentence = "no cluster: this is not a pod with a service account, and the kubeconfig ($KUBECONFIG, or ~/.kube/config) \
                        cannot be used; name another with kubernetes://NAMESPACE?kubeconfig=FILE";
        misconfigured(sentence).caused_by(error)
    })
}

async fn from_file(file: &PathBuf, context: Option<String>) -> Result<kube::Config, StoreError> {
    let unfit =
        |error| misconfigured(format!("the kubeconfig {} cannot be used", file.display())).caused_by(error);
    let read = Kubeconfig::read_from(file).map_err(unfit)?;
    let options = KubeConfigOptions { context, ..KubeConfigOptions::default() };
    kube::Config::from_custom_kubeconfig(read, &options).await.map_err(unfit)
}

#[cfg(test)]
mod tests;
