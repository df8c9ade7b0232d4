//! The leader's address, as an EndpointSlice of a Service without selector: clients of the Service reach the leader, and nobody else.
//!
//! Every write names the version that it replaces, and the annotation `bellwether/epoch` says under which leadership it was made. So the
//! API server refuses what an old leader sends late, and a leader that reads a later epoch there writes nothing. An EndpointSlice that
//! was not made here for the same election is never changed.

use std::net::IpAddr;

use bellwether_core::{CandidateId, ElectionName, Epoch, StoreError};
use http::Method;
use serde_json::{Value, json};

use crate::api::Api;
use crate::errors::{CallFailure, invalid, misconfigured, unavailable};
use crate::lease_object::{ELECTION, EPOCH};
use crate::{announce, names};

const NOT_FOUND: u16 = 404;
const CONFLICT: u16 = 409;
/// How often a write that others overtook is tried again.
const TRIES: usize = 4;
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const SERVICE: &str = "kubernetes.io/service-name";
const LEADER: &str = "bellwether/leader";
const OURS: &str = "bellwether";

/// Where clients reach this process while it leads: published as an EndpointSlice that has the name of its Service.
///
/// The Service has no selector, and its ports have the names given here.
///
/// ```
/// use bellwether_kubernetes::LeaderAddress;
///
/// let address = LeaderAddress::new("reports", "10.1.2.3".parse().unwrap())?.port("http", 8080);
/// # let _ = address;
/// # Ok::<(), bellwether_core::StoreError>(())
/// ```
#[derive(Clone, Debug)]
pub struct LeaderAddress {
    service: String,
    address: IpAddr,
    ports: Vec<Port>,
}

/// A port of the Service: its name, which may be empty where there is only one, and where the leader listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Port {
    pub(crate) name: String,
    pub(crate) number: u16,
}

impl Port {
    /// `8080` or `http:8080`.
    pub(crate) fn parse(text: &str) -> Option<Port> {
        let (name, number) = text.split_once(':').unwrap_or(("", text));
        let number = number.parse().ok().filter(|number| *number > 0)?;
        (name.is_empty() || names::is_label(name)).then(|| Port { name: name.to_owned(), number })
    }
}

impl LeaderAddress {
    /// This address, for clients of this Service.
    ///
    /// # Errors
    /// When that is no name of a Service, or when no client elsewhere could reach the address.
    pub fn new(service: &str, address: IpAddr) -> Result<LeaderAddress, StoreError> {
        if !names::is_label(service) {
            return Err(invalid(
                "a Service is named with lower-case letters, digits and -, at most 63 of them",
            ));
        }
        if address.is_loopback() || address.is_unspecified() || address.is_multicast() {
            return Err(invalid(format!(
                "no client could reach {address}: give the address of the pod, as the downward API has it in status.podIP"
            )));
        }
        Ok(LeaderAddress { service: service.to_owned(), address, ports: Vec::new() })
    }

    /// With this port of the Service, by its name there; the name may be empty where there is only one.
    #[must_use]
    pub fn port(mut self, name: &str, number: u16) -> LeaderAddress {
        self.ports.push(Port { name: name.to_owned(), number });
        self
    }

    pub(crate) fn into_parts(self) -> (String, IpAddr, Vec<Port>) {
        (self.service, self.address, self.ports)
    }

    pub(crate) fn service(&self) -> &str {
        &self.service
    }

    /// Writes that this candidate leads under this epoch, unless a later one does.
    pub(crate) async fn publish(
        &self,
        api: &Api,
        on: &ElectionName,
        epoch: Epoch,
        leader: &CandidateId,
    ) -> Result<(), StoreError> {
        self.replace(api, on, epoch, |slice| {
            let conditions = json!({ "ready": true, "serving": true, "terminating": false });
            slice["endpoints"] = json!([{ "addresses": [self.address], "conditions": conditions }]);
            let port = |port: &Port| json!({ "name": port.name, "port": port.number, "protocol": "TCP" });
            slice["ports"] = self.ports.iter().map(port).collect();
            slice["metadata"]["annotations"][EPOCH] = epoch.to_string().into();
            slice["metadata"]["annotations"][LEADER] = leader.as_str().into();
            true
        })
        .await
    }

    /// Takes back what was published under this epoch.
    pub(crate) async fn withdraw(
        &self,
        api: &Api,
        on: &ElectionName,
        epoch: Epoch,
    ) -> Result<(), StoreError> {
        self.replace(api, on, epoch, |slice| {
            let is_published = published(slice) == Some(epoch);
            slice["endpoints"] = json!([]);
            is_published
        })
        .await
    }

    /// Changes the EndpointSlice by compare-and-set; `change` says whether there is anything to write.
    async fn replace(
        &self,
        api: &Api,
        on: &ElectionName,
        epoch: Epoch,
        change: impl Fn(&mut Value) -> bool,
    ) -> Result<(), StoreError> {
        let slices =
            format!("/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices", api.namespace().await?);
        let slice_path = format!("{slices}/{}", self.service);
        let failed = |verb: &str, failure: CallFailure| {
            failure.error(&format!("{verb} the EndpointSlice {}", self.service))
        };
        for _ in 0..TRIES {
            let found = match api
                .call_beside::<Value>(Method::GET, &slice_path, None::<&()>, announce::LIMIT)
                .await
            {
                Err(failure) if failure.is(NOT_FOUND) => None,
                answer => Some(answer.map_err(|failure| failed("get", failure))?),
            };
            let (method, path, verb) = match found {
                Some(_) => (Method::PUT, &slice_path, "update"),
                None => (Method::POST, &slices, "create"),
            };
            let mut slice = match found {
                Some(slice) => self.checked(on, slice)?,
                None => self.new_slice(on),
            };
            if published(&slice) > Some(epoch) || !change(&mut slice) {
                return Ok(());
            }
            match api.call_beside::<Value>(method, path, Some(&slice), announce::LIMIT).await {
                Err(failure) if failure.is(CONFLICT) => {}
                answer => return answer.map(|_| ()).map_err(|failure| failed(verb, failure)),
            }
        }
        Err(unavailable(format!("the EndpointSlice {} was changed by others every time", self.service)))
    }

    fn new_slice(&self, on: &ElectionName) -> Value {
        json!({
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": self.service,
                "labels": { SERVICE: self.service, MANAGED_BY: OURS },
                "annotations": { ELECTION: on.as_str() },
            },
            "addressType": self.family(),
            "endpoints": [],
        })
    }

    /// That the EndpointSlice is ours to change.
    fn checked(&self, on: &ElectionName, slice: Value) -> Result<Value, StoreError> {
        let metadata = &slice["metadata"];
        let problem = if metadata["labels"][MANAGED_BY] != OURS {
            "Bellwether did not make it".to_owned()
        } else if metadata["annotations"][ELECTION] != on.as_str() {
            format!("it has the address of the leader of {}", metadata["annotations"][ELECTION])
        } else if slice["addressType"] != self.family() {
            format!("it is for {} addresses, and {} is none", slice["addressType"], self.address)
        } else {
            return Ok(slice);
        };
        Err(misconfigured(format!(
            "the EndpointSlice {} is left as it is, because {problem}: delete it, or name another Service",
            self.service
        )))
    }

    fn family(&self) -> &'static str {
        if self.address.is_ipv4() { "IPv4" } else { "IPv6" }
    }
}

fn published(slice: &Value) -> Option<Epoch> {
    Epoch::new(slice["metadata"]["annotations"][EPOCH].as_str()?.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(name: &str) -> ElectionName {
        ElectionName::new(name).unwrap()
    }

    fn address() -> LeaderAddress {
        LeaderAddress::new("reports", IpAddr::from([10, 1, 2, 3])).unwrap().port("", 80)
    }

    #[test]
    fn what_others_made_is_left_as_it_is() {
        let address = address();
        let ours = address.new_slice(&on("reports"));
        assert!(address.checked(&on("reports"), ours.clone()).is_ok());
        let said = |change: fn(&mut Value)| {
            let mut slice = ours.clone();
            change(&mut slice);
            address.checked(&on("reports"), slice).unwrap_err().to_string()
        };
        assert!(said(|slice| slice["metadata"]["labels"] = Value::Null).contains("did not make it"));
        assert!(
            said(|slice| slice["metadata"]["annotations"][ELECTION] = "x".into())
                .contains("the leader of \"x\"")
        );
        assert!(said(|slice| slice["addressType"] = "IPv6".into()).contains("10.1.2.3 is none"));
    }

    #[test]
    fn an_address_or_a_service_that_cannot_work_is_refused() {
        for (service, address, part) in [
            ("Reports", "10.1.2.3", "lower-case"),
            ("reports", "127.0.0.1", "status.podIP"),
            ("reports", "::1", "status.podIP"),
            ("reports", "0.0.0.0", "status.podIP"),
        ] {
            let said = LeaderAddress::new(service, address.parse().unwrap()).unwrap_err().to_string();
            assert!(said.contains(part), "{said}");
        }
    }

    #[test]
    fn ports_have_a_number_and_perhaps_a_name() {
        let port = |name: &str, number| Some(Port { name: name.into(), number });
        assert_eq!(Port::parse("8080"), port("", 8080));
        assert_eq!(Port::parse("http:8080"), port("http", 8080));
        for bad in ["", "0", "70000", "http", "http:", "Http:1", ":", "a:b"] {
            assert_eq!(Port::parse(bad), None, "{bad}");
        }
    }
}
