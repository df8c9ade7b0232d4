//! An object of Kubernetes, replaced only if no later epoch has written.
//!
//! The stamp stands in two annotations (`fence.bellwether/epoch`, `fence.bellwether/election`). Check and write are one by the object's
//! `resourceVersion` and `uid`: the object is read from etcd's majority, and the API server takes the PUT only over the very version that was
//! read. A call without an answer within its bound is unknown, and nothing is sent twice.
//!
//! Works with every kind, typed ([`FencedObject::new`]) or not ([`FencedObject::of_kind`]); a `ConfigMap` is the usual one. Needs the verbs
//! `get` and `update`, and `create` where the object may be missing.
//!
//! # What ends the fence
//!
//! - **A deletion**: the annotations go with the object, so there is no fenced one. Whoever writes next creates it, whatever the epoch. Let a
//!   finalizer or the lack of the verb `delete` prevent it.
//! - **A replacement that drops the annotations** (`kubectl replace`): the next fenced write fails with
//!   [`Failure::Unstamped`] until a person adopts the object. `kubectl edit`, `apply` and `patch` keep
//!   annotations that they do not name.
//! - **The status** and other subresources are written past the object, and are not fenced.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_backend::Write;
use bellwether_core::{ElectionName, Epoch, ErrorKind, StoreError};
pub use bellwether_kubernetes::{Config, Objects, kube};
use kube::Resource;
use kube::core::{ApiResource, DynamicObject, NamespaceResourceScope};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::compare_and_set::{Place, Rule, replace};
use crate::fields;
use crate::rule::{admit, admit_adopting};
use crate::{Failure, FenceError, Found, Stamp, Value};

/// The annotation with the epoch.
pub const EPOCH_ANNOTATION: &str = "fence.bellwether/epoch";
/// The annotation with the name of the election.
pub const ELECTION_ANNOTATION: &str = "fence.bellwether/election";

/// An object that only the latest epoch of one election replaces.
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use bellwether_core::{ElectionName, Epoch};
/// use bellwether_fence::kubernetes::kube::core::{ApiResource, DynamicObject, GroupVersionKind};
/// use bellwether_fence::kubernetes::{Config, FencedObject, Objects};
///
/// let objects = Arc::new(Objects::new(Config::from_url("kubernetes://jobs")?));
/// let config_map = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
/// let namespace = Some("jobs".to_owned());
/// let routes = FencedObject::of_kind(objects, config_map.clone(), namespace, "routes", ElectionName::new("router")?);
/// let epoch = Epoch::new(7).unwrap(); // leadership.epoch()
/// routes
///     .update(epoch, |before| {
///         let mut object = before.unwrap_or_else(|| DynamicObject::new("routes", &config_map));
///         object.data["data"] = serde_json::json!({ "default": "via a" });
///         object
///     })
///     .await?;
/// # Ok(())
/// # }
/// ```
pub struct FencedObject<K: Resource> {
    objects: Arc<Objects>,
    kind: K::DynamicType,
    namespace: Option<String>,
    name: String,
    election: ElectionName,
}

impl<K> FencedObject<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Serialize
        + DeserializeOwned
        + Send
        + Sync,
{
    /// The object of this type and name in that namespace, for the leaders of this election. Connects to nothing yet.
    pub fn new(
        objects: Arc<Objects>,
        namespace: impl Into<String>,
        name: impl Into<String>,
        election: impl Into<ElectionName>,
    ) -> FencedObject<K> {
        let (name, election) = (name.into(), election.into());
        FencedObject { objects, kind: (), namespace: Some(namespace.into()), name, election }
    }
}

impl FencedObject<DynamicObject> {
    /// The same for an object whose kind is known only at run time; `None` where it belongs to no namespace.
    pub fn of_kind(
        objects: Arc<Objects>,
        kind: ApiResource,
        namespace: Option<String>,
        name: impl Into<String>,
        election: impl Into<ElectionName>,
    ) -> FencedObject<DynamicObject> {
        FencedObject { objects, kind, namespace, name: name.into(), election: election.into() }
    }
}

impl<K> FencedObject<K>
where
    K: Resource + Clone + Serialize + DeserializeOwned + Send + Sync,
{
    /// The object, and who wrote it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn read(&self) -> Result<Value<K>, FenceError> {
        match self.look().await.map_err(Failure::Store)? {
            (Found::Unreadable(what), ..) => Err(Failure::Unreadable(what).into()),
            (Found::By(stamp), content, _) => Ok(Value { stamp: Some(stamp), content }),
            (Found::Nothing | Found::Unstamped, content, _) => Ok(Value { stamp: None, content }),
        }
    }

    /// Replaces the object by what `change` makes of it, or creates it, and returns it as it is now. `change` is called again when
    /// somebody else was faster.
    ///
    /// Begin with what `change` is given: a PUT drops everything that is not in it, labels and annotations of others included. The
    /// metadata that identifies object and version is set here.
    ///
    /// # Errors
    /// As [`FenceError`] says: fenced, unknown or failed.
    pub async fn update(
        &self,
        epoch: Epoch,
        mut change: impl FnMut(Option<K>) -> K,
    ) -> Result<K, FenceError> {
        let written = self.replace(epoch, admit, |before| Some(change(before))).await?;
        Ok(written.expect("what was changed is an object"))
    }

    /// Writes the object again as it is, under this epoch, and returns it: from now on no earlier epoch writes.
    ///
    /// # Errors
    /// As [`FenceError`] says: fenced, unknown or failed. Where there is no object, nothing can hold the epoch, and it fails.
    pub async fn raise(&self, epoch: Epoch) -> Result<K, FenceError> {
        let written = self.replace(epoch, admit, |before| before).await?;
        Ok(written.expect("only an object is written"))
    }

    /// As [`raise`](FencedObject::raise), also where the object has no epoch. Nothing tells whether a later epoch's leader
    /// removed it, so do this by hand, or once, before any leader writes.
    ///
    /// # Errors
    /// As [`raise`](FencedObject::raise).
    pub async fn adopt(&self, epoch: Epoch) -> Result<K, FenceError> {
        let written = self.replace(epoch, admit_adopting, |before| before).await?;
        Ok(written.expect("only an object is written"))
    }

    async fn replace(
        &self,
        epoch: Epoch,
        rule: Rule,
        next: impl FnMut(Option<K>) -> Option<K>,
    ) -> Result<Option<K>, FenceError> {
        replace(self, &Stamp::new(&self.election, epoch), rule, next).await
    }
}

/// Which version of which object.
pub(crate) struct Version {
    resource_version: Option<String>,
    uid: Option<String>,
}

impl<K> Place for FencedObject<K>
where
    K: Resource + Clone + Serialize + DeserializeOwned + Send + Sync,
{
    type Value = K;
    type Version = Option<Version>;

    const BACKEND: &'static str = "kubernetes";

    async fn look(&self) -> Result<(Found, Option<K>, Option<Version>), StoreError> {
        let object: Option<K> = self.objects.get(&self.kind, self.namespace.as_deref(), &self.name).await?;
        let Some(object) = object else { return Ok((Found::Nothing, None, None)) };
        let metadata = object.meta();
        let annotated = |name: &str| {
            let annotations: Option<&BTreeMap<String, String>> = metadata.annotations.as_ref();
            annotations.and_then(|all| all.get(name)).map(String::as_str)
        };
        let found =
            fields::read(annotated(EPOCH_ANNOTATION).into_iter(), annotated(ELECTION_ANNOTATION).into_iter());
        let version =
            Version { resource_version: metadata.resource_version.clone(), uid: metadata.uid.clone() };
        Ok((found, Some(object), Some(version)))
    }

    async fn write(&self, at: &Option<Version>, stamp: &Stamp, object: Option<K>) -> Write<Option<K>> {
        let Some(mut object) = object else {
            let sentence =
                format!("there is no object {} that could hold the epoch: create it first", self.name);
            return Write::Refused(StoreError::new(ErrorKind::Unsupported, Self::BACKEND, sentence));
        };
        let metadata = object.meta_mut();
        let (epoch, election) = fields::write(stamp);
        let annotations = metadata.annotations.get_or_insert_default();
        annotations.insert(EPOCH_ANNOTATION.to_owned(), epoch);
        annotations.insert(ELECTION_ANNOTATION.to_owned(), election);
        metadata.name = Some(self.name.clone());
        metadata.namespace.clone_from(&self.namespace);
        let version = at.as_ref();
        metadata.resource_version = version.and_then(|version| version.resource_version.clone());
        metadata.uid = version.and_then(|version| version.uid.clone());
        let namespace = self.namespace.as_deref();
        let written = match version {
            Some(_) => self.objects.replace(&self.kind, namespace, &self.name, &object).await,
            None => self.objects.create(&self.kind, namespace, &self.name, &object).await,
        };
        written.map(Some)
    }
}
