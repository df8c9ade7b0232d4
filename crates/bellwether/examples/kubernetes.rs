//! In a pod: leading on a Lease under the pod's name, fencing each write with the epoch, and handing over when the kubelet says so.
//!
//! `deploy/kubernetes/rbac.yaml` has the rights, and `deploy/kubernetes/deployment.yaml` the variables. Outside of a cluster, with your
//! kubeconfig: `POD_NAME=me cargo run -p bellwether --features kubernetes --example kubernetes`, in several terminals.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bellwether::kubernetes::{self, Environment};
use bellwether::{Election, Epoch, Error, Leadership, SystemClock};
use tokio::signal::unix::{SignalKind, signal};

/// Stands for whatever the work writes to. It is sent the epoch, and refuses one below the highest that it has seen.
async fn write(epoch: Epoch, report: u32) {
    println!("report {report} under epoch {epoch}");
}

/// Runs in the leader's pod, and is dropped the moment that pod leads no more.
async fn make_reports(leadership: Leadership) -> Infallible {
    for report in 1.. {
        write(leadership.epoch(), report).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    unreachable!("there is always another report")
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pod = Environment::from_env().pod.ok_or("POD_NAME is not set; let the downward API set it")?;
    let mut terminated = signal(SignalKind::terminate())?;
    let election = Election::builder("reports")
        .backend(kubernetes::from_env(Arc::new(SystemClock))?)
        .id(pod)
        .ttl(Duration::from_secs(15))
        // Stops the work, then releases the lease: another pod leads within milliseconds.
        .stop_when(async move {
            terminated.recv().await;
        })
        .start()
        .await?;
    // Again for every leadership, until the election is stopped.
    match election.lead(make_reports).await {
        Err(Error::NotStarted) => println!("stopped"),
        Err(error) => return Err(error.into()),
    }
    Ok(())
}
