//! Candidates made of kubert's `LeaseManager`, as it is published: a lease of 30 s that is renewed 1 s before it expires.

use std::process::ExitCode;

use candidate::{Candidate, Error, Flags, Library};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube_client::api::{Api, PostParams};
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Client, Config};
use kubert::lease::{ClaimParams, LeaseManager};

#[derive(Clone, Copy)]
struct Kubert;

impl Library for Kubert {
    const NAME: &str = "kubert 0.25.0";
    type Connection = Api<Lease>;

    /// Makes the Lease, which has to be there.
    async fn prepare(flags: Flags, election: String) -> Result<(), Error> {
        let mut lease = Lease { spec: Some(LeaseSpec::default()), ..Lease::default() };
        lease.metadata.name = Some(election);
        Kubert::connect(flags).await?.create(&PostParams::default(), &lease).await?;
        Ok(())
    }

    async fn connect(flags: Flags) -> Result<Self::Connection, Error> {
        let (file, namespace) = flags.cluster()?;
        let config = Kubeconfig::read_from(file)?;
        let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
        let client = Client::try_from(config)?;
        client.apiserver_version().await?;
        Ok(Api::namespaced(client, &namespace))
    }

    async fn campaign(api: Self::Connection, flags: Flags, mut candidate: Candidate) -> Result<(), Error> {
        let defaults = ClaimParams::default();
        let lease_duration = flags.time("ttl", defaults.lease_duration);
        // It renews so long before the end; the flag says how long after the last time.
        let renewed_after = flags.time("renew", lease_duration - defaults.renew_grace_period);
        let params = ClaimParams { lease_duration, renew_grace_period: lease_duration - renewed_after };
        let manager = LeaseManager::init(api, &candidate.election).await?;
        let (mut claims, task) = manager.spawn(&candidate.id, params).await?;
        loop {
            let leads = claims.borrow_and_update().is_current_for(&candidate.id);
            candidate.leads(leads);
            tokio::select! {
                changed = claims.changed() => changed?,
                _ = candidate.stop.wait_for(|stop| *stop) => break,
            }
        }
        // Then it gives the lease back.
        drop(claims);
        task.await??;
        candidate.leads(false);
        Ok(())
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    candidate::run::<Kubert>().await
}
