//! `--health-cmd CMD`: only a healthy candidate stands, and an unhealthy leader steps down.
//!
//! A health command that fails is one line in the log, then one when it fails in another way, and one when it succeeds again.

use std::sync::{Arc, Mutex, PoisonError};

use bellwether::ElectionBuilder;

use super::shell::{self, Ended};
use crate::args::HealthFlags;

/// Lets the command decide. It has as long as the pause between two checks.
pub(super) fn check(builder: ElectionBuilder, command: &str, flags: &HealthFlags) -> ElectionBuilder {
    let (every, failures) = (flags.health_cmd_interval, flags.health_cmd_failures);
    let command = command.to_owned();
    let log = Arc::new(Mutex::new(Log::default()));
    builder.health(every, every, failures, move || {
        let (command, log) = (command.clone(), Arc::clone(&log));
        async move {
            let ended = shell::run(&command, None, every).await;
            let trouble = match &ended {
                Ended::Well => None,
                Ended::Badly(how) => Some(how.clone()),
                Ended::Late => Some(format!("did not end within {every:?} and was killed")),
            };
            log.lock().unwrap_or_else(PoisonError::into_inner).checked(trouble);
            ended == Ended::Well
        }
    })
}

/// What was last said, and how many checks have failed in a row.
#[derive(Default)]
struct Log {
    said: Option<String>,
    failures: u64,
}

impl Log {
    fn checked(&mut self, trouble: Option<String>) {
        match trouble {
            None => {
                let times = std::mem::take(&mut self.failures);
                if self.said.take().is_some() {
                    let times = if times == 1 { "once".to_owned() } else { format!("{times} times") };
                    tracing::info!("healthy again: the health command failed {times}");
                }
            }
            Some(how) => {
                self.failures += 1;
                if self.said.as_ref() == Some(&how) {
                    tracing::debug!("unhealthy: the health command {how}");
                } else {
                    tracing::warn!("unhealthy: the health command {how}");
                    self.said = Some(how);
                }
            }
        }
    }
}
