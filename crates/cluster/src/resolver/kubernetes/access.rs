//! The client for the API server: made by the first call, and again after one that failed.

use std::path::PathBuf;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::sync::Mutex;

use super::{ResolveError, chain};

/// For connecting to the server; a call has its own limit, which includes this.
const CONNECT_LIMIT: Duration = Duration::from_secs(3);

/// How to reach the API server, and as whom.
#[derive(Clone)]
pub enum KubernetesAccess {
    /// The kubeconfig of `$KUBECONFIG` or `~/.kube/config`, and without one the service account of this pod.
    Inferred,
    /// The current context of this kubeconfig.
    Kubeconfig(PathBuf),
    /// This client. Make it with `default_retry = false`: its own retries would outlast the limit of a call.
    Client(kube::Client),
}

impl std::fmt::Debug for KubernetesAccess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            KubernetesAccess::Inferred => f.write_str("Inferred"),
            KubernetesAccess::Kubeconfig(file) => f.debug_tuple("Kubeconfig").field(file).finish(),
            KubernetesAccess::Client(_) => f.write_str("Client"),
        }
    }
}

#[derive(Debug)]
pub(super) struct Access {
    how: KubernetesAccess,
    namespace: Option<String>,
    made: Mutex<Option<Made>>,
}

struct Made {
    client: kube::Client,
    namespace: String,
}

impl std::fmt::Debug for Made {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Made").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}

impl Access {
    pub(super) fn new(how: KubernetesAccess, namespace: Option<String>) -> Access {
        Access { how, namespace, made: Mutex::default() }
    }

    /// A client, and the namespace of the peers.
    pub(super) async fn client(&self) -> Result<(kube::Client, String), ResolveError> {
        let mut made = self.made.lock().await;
        let made = match &mut *made {
            Some(made) => made,
            none => none.insert(self.make().await?),
        };
        Ok((made.client.clone(), made.namespace.clone()))
    }

    /// The next call reads files and credentials anew.
    pub(super) async fn forget(&self) {
        *self.made.lock().await = None;
    }

    async fn make(&self) -> Result<Made, ResolveError> {
        let mut config = match &self.how {
            KubernetesAccess::Client(client) => {
                let own = client.default_namespace();
                let namespace = self.namespace.clone().unwrap_or_else(|| own.to_owned());
                return Ok(Made { client: client.clone(), namespace });
            }
            KubernetesAccess::Inferred => kube::Config::infer().await.map_err(|error| {
                ResolveError::permanent(format!(
                    "no Kubernetes cluster to ask: there is no kubeconfig that can be used, and this is not a pod with a service \
                     account: name a kubeconfig ({})",
                    chain(&error)
                ))
            })?,
            KubernetesAccess::Kubeconfig(file) => from_file(file).await?,
        };
        // The client's own retries sleep for minutes; whoever asks here asks again.
        config.default_retry = false;
        config.connect_timeout = Some(CONNECT_LIMIT);
        let namespace = self.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
        // A program for credentials may run for seconds, and must not hold up other tasks.
        let made = tokio::task::spawn_blocking(move || kube::Client::try_from(config)).await;
        let made = made.map_err(|_| ResolveError::passing("connecting to the API server was cut short"))?;
        let client = made.map_err(|error| {
            ResolveError::permanent(format!(
                "what the kubeconfig or the service account says cannot be used: {}",
                chain(&error)
            ))
        })?;
        Ok(Made { client, namespace })
    }
}

async fn from_file(file: &PathBuf) -> Result<kube::Config, ResolveError> {
    let unfit = |error: kube::config::KubeconfigError| {
        let (file, why) = (file.display(), chain(&error));
        ResolveError::permanent(format!("the kubeconfig {file} cannot be used: {why}"))
    };
    let read = Kubeconfig::read_from(file).map_err(unfit)?;
    kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await.map_err(unfit)
}
