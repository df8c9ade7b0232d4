//! The suite that every backend passes.

use std::sync::Arc;

use bellwether_backend::conformance::{self, Harness};
use bellwether_backend::faults::{Faults, FaultyRegister};
use bellwether_backend::{Backend, Fut, Lease};
use bellwether_core::{Clock, ElectionName, StoreError};
use bellwether_kubernetes::{Config, KubernetesRegister, from_url};
use bellwether_support::clock;
use bellwether_support::servers::kubernetes::ADMIN;
use serde_json::Value;

use crate::stage::Namespace;

impl Namespace {
    /// The suite's ttls are short, and so is the time that a call has by default; on a busy machine the server may take longer.
    fn patient_url(&self) -> String {
        format!("{}&timeout=5s", self.url_of(ADMIN))
    }
}

impl Harness for Namespace {
    fn clock(&self) -> Arc<dyn Clock> {
        clock()
    }

    fn connect(&self, clock: Arc<dyn Clock>) -> Fut<'_, Result<Arc<dyn Backend>, StoreError>> {
        Box::pin(async move { Ok(Arc::new(from_url(&self.patient_url(), clock)?) as Arc<dyn Backend>) })
    }

    fn connect_faulty(
        &self,
        clock: Arc<dyn Clock>,
        faults: Faults,
    ) -> Fut<'_, Result<Arc<dyn Backend>, StoreError>> {
        Box::pin(async move {
            let config = Config::from_url(&self.patient_url())?;
            let register = KubernetesRegister::new(config, Arc::clone(&clock));
            Ok(Arc::new(Lease::new(FaultyRegister::new(register, faults), clock)) as Arc<dyn Backend>)
        })
    }

    /// As `kubectl delete` does.
    fn delete<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            Namespace::delete(self, on.as_str()).await;
            Ok(true)
        })
    }

    /// Every Lease with its version.
    fn fingerprint(&self) -> Fut<'_, Result<Option<String>, StoreError>> {
        Box::pin(async move {
            let list = self.server.api("GET", &self.path(""), Value::Null).await;
            let leases = list["items"].as_array().expect("a list").iter();
            let versions: Vec<String> = leases
                .map(|lease| {
                    format!("{} {}", lease["metadata"]["name"], lease["metadata"]["resourceVersion"])
                })
                .collect();
            Ok(Some(versions.join("\n")))
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_api_server_conforms() {
    let report = conformance::run(Arc::new(Namespace::new().await)).await;
    println!("{report}");
    report.assert_passed();
    for (case, why) in report.skipped() {
        let expected =
            why == "the death of a process cannot be proven" || why.contains("the store's own counter");
        assert!(expected, "{case}: {why}");
    }
}
