//! A namespace of a test's own on the shared server, with a `ConfigMap`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bellwether_core::{ElectionName, Epoch};
use bellwether_fence::kubernetes::{Config, FencedObject, Objects};
use bellwether_fence::{FenceError, Stamp};
use bellwether_support::servers::kubernetes::{ADMIN, Server};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

pub(crate) const NAME: &str = "routes";

pub(crate) struct Namespace {
    pub(crate) server: &'static Server,
    pub(crate) name: String,
}

pub(crate) fn election() -> ElectionName {
    ElectionName::new("reports №1").unwrap()
}

pub(crate) fn epoch(number: u64) -> Epoch {
    Epoch::new(number).unwrap()
}

pub(crate) fn stamp(number: u64) -> Option<Stamp> {
    Some(Stamp::new(election(), epoch(number)))
}

impl Namespace {
    pub(crate) async fn new() -> Namespace {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let server = Server::shared().await;
        let name = format!("fence-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        server.namespace(&name).await;
        Namespace { server, name }
    }

    pub(crate) fn objects(&self, kubeconfig: &Path, options: &str) -> Arc<Objects> {
        let url = format!("kubernetes://{}?kubeconfig={}{options}", self.name, kubeconfig.display());
        Arc::new(Objects::new(Config::from_url(&url).unwrap()))
    }

    /// The object, on a client of its own.
    pub(crate) fn object(&self) -> FencedObject<ConfigMap> {
        FencedObject::new(self.objects(&self.server.kubeconfig(ADMIN), ""), &self.name, NAME, election())
    }

    pub(crate) fn path(&self) -> String {
        format!("/api/v1/namespaces/{}/configmaps/{NAME}", self.name)
    }

    /// The object as the server has it.
    pub(crate) async fn found(&self) -> Value {
        self.server.api("GET", &self.path(), Value::Null).await
    }

    /// As another program would make one.
    pub(crate) async fn create(&self, annotations: Value) {
        let object = json!({ "metadata": { "name": NAME, "annotations": annotations }, "data": { "route": "by hand" } });
        let path = self.path();
        self.server.api("POST", path.strip_suffix("/routes").unwrap(), object).await;
    }

    /// Changes the object as `kubectl edit` does.
    pub(crate) async fn edit(&self, change: impl FnOnce(&mut Value)) {
        let mut object = self.found().await;
        change(&mut object);
        self.server.api("PUT", &self.path(), object).await;
    }
}

/// What was there, with this as its data.
pub(crate) fn routed(before: Option<ConfigMap>, route: &str) -> ConfigMap {
    let data = BTreeMap::from([("route".to_owned(), route.to_owned())]);
    ConfigMap { data: Some(data), ..before.unwrap_or_default() }
}

pub(crate) fn route(object: &ConfigMap) -> &str {
    object.data.as_ref().map_or("", |data| &data["route"])
}

/// The epochs of a refusal, mine and the latest.
pub(crate) fn refused<T: std::fmt::Debug>(written: Result<T, FenceError>) -> (u64, u64) {
    let fenced = written.unwrap_err().fenced().expect("fenced");
    (fenced.mine.get(), fenced.latest.get())
}

/// What happens while a write has looked and not yet written.
pub(crate) fn meanwhile<T>(what: impl Future<Output = T>) -> T {
    tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(what))
}
