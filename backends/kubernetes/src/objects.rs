//! Objects that belong to the program and not to an election: read from etcd's majority, written at the version and the uid read.
//!
//! Owns no object. The client, the bound on every call and what answers mean are those of elections, retries included: there are none.

use std::time::Duration;

use bellwether_backend::Write;
use bellwether_core::StoreError;
use http::Method;
use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::api::Api;
use crate::config::Config;
use crate::errors::CallFailure;

/// Longer than etcd takes to find a new leader, and short enough for a caller that has a lease to mind.
const LIMIT: Duration = Duration::from_secs(5);
const NOT_FOUND: u16 = 404;
const CONFLICT: u16 = 409;

/// Any objects of one cluster.
pub struct Objects {
    api: Api,
    limit: Duration,
}

impl Objects {
    /// Those that this configuration reaches. Connects with the first call.
    pub fn new(config: Config) -> Objects {
        let limit = config.timeout.unwrap_or(LIMIT);
        Objects { api: Api::new(config), limit }
    }

    /// The namespace of the configuration.
    ///
    /// # Errors
    /// When the configuration cannot be used.
    pub async fn namespace(&self) -> Result<String, StoreError> {
        self.api.namespace().await
    }

    /// The object as it is now; `None` where there is none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn get<K: Resource + DeserializeOwned>(
        &self,
        kind: &K::DynamicType,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<K>, StoreError> {
        let path = path::<K>(kind, namespace, name)?;
        match self.api.call_beside::<K>(Method::GET, &path, None::<&()>, self.limit).await {
            Ok(object) => Ok(Some(object)),
            Err(failure) if failure.is(NOT_FOUND) => Ok(None),
            Err(failure) => Err(failure.error(&doing::<K>("get", kind, name))),
        }
    }

    /// Makes the object. Where there is one of that name already, it is a conflict.
    pub async fn create<K: Resource + Serialize + DeserializeOwned + Sync>(
        &self,
        kind: &K::DynamicType,
        namespace: Option<&str>,
        name: &str,
        object: &K,
    ) -> Write<K> {
        let path = K::url_path(kind, namespace);
        let made = self.api.call_beside::<K>(Method::POST, &path, Some(object), self.limit).await;
        judged(made, &doing::<K>("create", kind, name))
    }

    /// Replaces the object at the resource version and the uid that it has in it.
    pub async fn replace<K: Resource + Serialize + DeserializeOwned + Sync>(
        &self,
        kind: &K::DynamicType,
        namespace: Option<&str>,
        name: &str,
        object: &K,
    ) -> Write<K> {
        let path = match path::<K>(kind, namespace, name) {
            Ok(path) => path,
            Err(error) => return Write::Refused(error),
        };
        let put = self.api.call_beside::<K>(Method::PUT, &path, Some(object), self.limit).await;
        match put {
            // Deleted since it was read.
            Err(failure) if failure.is(NOT_FOUND) => Write::Conflict,
            put => judged(put, &doing::<K>("update", kind, name)),
        }
    }
}

fn judged<K>(written: Result<K, CallFailure>, doing: &str) -> Write<K> {
    match written {
        Ok(object) => Write::Done(object),
        Err(failure) if failure.is(CONFLICT) => Write::Conflict,
        Err(failure) => Write::failed(failure.error(doing)),
    }
}

fn path<K: Resource>(
    kind: &K::DynamicType,
    namespace: Option<&str>,
    name: &str,
) -> Result<String, StoreError> {
    // What some kind of object may be called, and nothing that would be another path.
    let fits = |letter: char| letter.is_ascii_graphic() && !"/%?#".contains(letter);
    if name.is_empty() || name == "." || name == ".." || !name.chars().all(fits) {
        return Err(crate::errors::invalid(format!("{name:?} cannot be the name of an object")));
    }
    Ok(format!("{}/{name}", K::url_path(kind, namespace)))
}

fn doing<K: Resource>(verb: &str, kind: &K::DynamicType, name: &str) -> String {
    format!("{verb} the {} {name}", K::kind(kind))
}
