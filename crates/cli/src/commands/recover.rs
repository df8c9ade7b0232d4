//! `bellwether recover`: a node that is left of a cluster goes on alone, and others join it. Offline.

use std::path::Path;

use bellwether::cluster::formation::{Formed, Voter};
use bellwether::cluster::{
    BackendLedger, BootstrapLedger as _, ClusterError, ClusterId, ErrorKind, Recording, Survivor,
};
use bellwether::{Clock as _, SystemClock};
use serde_json::json;

use super::node::{data_directory, ledger};
use crate::args::{Format, Global, Recover};
use crate::exit::{Exit, Failure};
use crate::output;

/// Says what it would do, and with `--yes` does it.
pub(crate) async fn recover(global: &Global, flags: &Recover) -> Result<Exit, Failure> {
    let directory = data_directory(flags.data_dir.as_ref(), flags.name.as_ref())?;
    let ledger = ledger(&flags.ledger)?;
    let mut survivor = Survivor::open(&directory)?;
    let lost = survivor.from();
    if !flags.yes {
        output::lines(&plan(&survivor, &directory))?;
        let sentence = "nothing was changed: to do this, run it again with --yes";
        return Err(Failure::new(Exit::Usage, sentence));
    }
    let to = survivor.begin(drawn(), flags.advertise.clone())?;
    if let Some(ledger) = ledger
        && let Err(error) = record(ledger, lost, to, &survivor).await
    {
        if error.kind() == ErrorKind::Refused {
            survivor.abandon()?;
        }
        return Err(error.into());
    }
    let recovered = survivor.finish()?;
    let member = &recovered.member;
    match global.output {
        Format::Json => output::line(
            &json!({
                "name": member.name.as_str(),
                "node": member.node.to_string(),
                "address": member.address,
                "cluster": recovered.cluster.to_string(),
                "generation": recovered.generation,
                "lost": lost.to_string(),
            })
            .to_string(),
        )?,
        Format::Table => {
            let name = &member.name;
            output::lines(&[
                format!(
                    "{name} is now the only voter of cluster {} (recovery {})",
                    recovered.cluster, recovered.generation
                ),
                format!("what was there before is in {}", directory.join("archive").display()),
                format!("1. start {name} as before; it is ready at once"),
                "2. on every other node, move the data directory away and start it as before: it joins"
                    .to_owned(),
            ])?
        }
    };
    Ok(Exit::Clean)
}

fn drawn() -> ClusterId {
    ClusterId::from_random(bellwether_deadman::random_bits())
}

fn plan(survivor: &Survivor, directory: &Path) -> Vec<String> {
    let identity = survivor.identity();
    let voters: Vec<&str> = survivor.members().voters().map(|voter| voter.name.as_str()).collect();
    let mut lines = vec![
        format!("{} has node {} ({}) of cluster {}", directory.display(), identity.name, identity.node, survivor.from()),
        format!("its log ends with entry {}; what only other nodes had after that is lost", survivor.last_index()),
        format!("the voters were {}", voters.join(", ")),
        format!("{} becomes the only voter of a new cluster with this state; the others join it, with empty directories", identity.name),
        "do this on ONE node, the one whose log is longest, and only if a majority of the voters is lost for good".to_owned(),
    ];
    lines.extend(
        survivor.interrupted().map(|to| format!("a recovery to cluster {to} was begun and has not ended")),
    );
    lines
}

/// Whoever reads the ledger follows from the lost cluster to the new one. It also stops a second node from being recovered.
async fn record(
    ledger: BackendLedger,
    lost: ClusterId,
    to: ClusterId,
    survivor: &Survivor,
) -> Result<(), ClusterError> {
    let identity = survivor.identity();
    let formed = Formed {
        cluster: to,
        voters: vec![Voter { node: identity.node, name: identity.name.clone() }],
        time: SystemClock.wall().to_string(),
    };
    match ledger.after(lost).create(&formed).await {
        Recording::Recorded => Ok(()),
        // The record of this recovery, which was cut short.
        Recording::Exists(found) if found.cluster == to => Ok(()),
        Recording::Exists(found) => Err(ClusterError::new(
            ErrorKind::Refused,
            format!(
                "the ledger says that cluster {} took the place of cluster {lost} on {}: another node was recovered; move this directory \
                 away and let the node join that cluster",
                found.cluster, found.time
            ),
        )),
        Recording::Unknown(error) => Err(ClusterError::new(
            ErrorKind::SeedUnavailable,
            format!("{error}; the recovery has not ended: run it again"),
        )),
        Recording::Refused(error) => Err(error),
    }
}
