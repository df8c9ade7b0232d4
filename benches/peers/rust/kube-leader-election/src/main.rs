//! Candidates made of kube-leader-election, as it is published. It has one call, which claims or renews; the loop around it is that of its
//! README: a lease of 15 s, asked for every 5 s.

use std::process::ExitCode;
use std::time::Duration;

use candidate::{Candidate, Error, Flags, Library};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube_leader_election::{LeaseLock, LeaseLockParams, LeaseLockResult};

const TTL: Duration = Duration::from_secs(15);
const EVERY: Duration = Duration::from_secs(5);

#[derive(Clone, Copy)]
struct KubeLeaderElection;

impl Library for KubeLeaderElection {
    const NAME: &str = "kube-leader-election 0.44.0";
    type Connection = (kube::Client, String);

    async fn prepare(_: Flags, _: String) -> Result<(), Error> {
        Ok(())
    }

    async fn connect(flags: Flags) -> Result<Self::Connection, Error> {
        let (file, namespace) = flags.cluster()?;
        let config = Kubeconfig::read_from(file)?;
        let config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
        let client = kube::Client::try_from(config)?;
        client.apiserver_version().await?;
        Ok((client, namespace))
    }

    async fn campaign(
        (client, namespace): Self::Connection,
        flags: Flags,
        mut candidate: Candidate,
    ) -> Result<(), Error> {
        let params = LeaseLockParams {
            lease_name: candidate.election.clone(),
            holder_id: candidate.id.clone(),
            lease_ttl: flags.time("ttl", TTL),
        };
        let lock = LeaseLock::new(client, &namespace, params);
        let mut leads = false;
        loop {
            // Whoever loses a race is told so by an error.
            leads = match lock.try_acquire_or_renew().await {
                Ok(result) => matches!(result, LeaseLockResult::Acquired(_)),
                Err(_) => leads,
            };
            candidate.leads(leads);
            if candidate.stops_within(flags.time("renew", EVERY)).await {
                break;
            }
        }
        if leads {
            lock.step_down().await?;
        }
        candidate.leads(false);
        Ok(())
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    candidate::run::<KubeLeaderElection>().await
}
