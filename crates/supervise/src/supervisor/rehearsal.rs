//! One start without a command: guard, init and the process that would become COMMAND are made, and end again.
//!
//! It needs the same processes, timers, descriptors and rights as a start, on both sides of the channel, so what is missing is known
//! before there is a leadership to waste on it.

use super::guard_process::GuardProcess;
use crate::guard_protocol::{CommandOrder, CommandReport, StartOrder};
use crate::{CommandSpec, Containment, StartError};
use bellwether_deadman::{BootTimer, ReadableFd, boot_now};
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

/// How long it may take; a guard that needs longer is of no use.
const REHEARSAL_MAX: Duration = Duration::from_secs(20);
/// No leadership has this number.
const NO_EPOCH: u64 = 0;

pub(super) async fn rehearse(guard: &GuardProcess, spec: &CommandSpec) -> Result<Containment, StartError> {
    let order = StartOrder {
        env: Vec::new(),
        deadline: (boot_now() + REHEARSAL_MAX).as_nanos(),
        grace: 0,
        namespace: spec.namespace,
        rehearsal: true,
        ignored: 0,
        listens: false,
        address: spec.address.clone(),
    };
    if let Err(error) = guard.send(NO_EPOCH, CommandOrder::Start(order), &[io::stdin().as_fd()]) {
        return Err(StartError::Guard(guard.last_word(error).await));
    }
    // What a start needs here.
    let _timer = BootTimer::new().map_err(StartError::Guard)?;
    match tokio::time::timeout(REHEARSAL_MAX, outcome(guard)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(failed(&format!("it does not answer within {REHEARSAL_MAX:?}"))),
    }
}

async fn outcome(guard: &GuardProcess) -> Result<Containment, StartError> {
    let mut contained = None;
    loop {
        let (_, report, descriptor) = guard.receive().await.map_err(StartError::Guard)?;
        match report {
            CommandReport::Contained { namespace, .. } => {
                let _init = descriptor.map(ReadableFd::new).transpose().map_err(StartError::Guard)?;
                contained = Some(if namespace { Containment::Namespace } else { Containment::Sweep });
            }
            CommandReport::Ended { status, .. } => {
                let early = || failed("the rehearsal of a start ended early");
                return contained.filter(|_| status == 0).ok_or_else(early);
            }
            CommandReport::Failed { errno: Some(errno), .. } => {
                return Err(StartError::Guard(io::Error::from_raw_os_error(errno)));
            }
            CommandReport::Failed { errno: None, sentence, .. } => return Err(failed(&sentence)),
            CommandReport::NoAddress { sentence } => return Err(StartError::Address(sentence)),
            CommandReport::Started { .. }
            | CommandReport::Unkillable { .. }
            | CommandReport::Address { .. } => {}
        }
    }
}

fn failed(sentence: &str) -> StartError {
    StartError::Guard(io::Error::other(sentence.to_owned()))
}
