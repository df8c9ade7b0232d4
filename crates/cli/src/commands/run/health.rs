//! `--health-cmd CMD`: only a healthy candidate stands, and an unhealthy leader steps down.
//!
//! A health command that fails is one line in the log, then one when it fails in another way, and one when it succeeds again.

use std::sync::{Arc, Mutex, PoisonError};

use bellwether::{ElectionBuilder, HealthCheck};
use tokio::sync::watch;

use super::shell::{self, ShellEnd};
use crate::args::HealthFlags;

/// What the health command has said so far.
pub(super) struct HealthCommand(watch::Receiver<Checked>);

struct Checked {
    command: String,
    /// So many failures in a row make a candidate unhealthy.
    failures_max: u32,
    failures: u32,
    may_lead: bool,
    /// How it last failed: "ended with code 1".
    how: String,
}

/// Lets the command decide. It has as long as the pause between two checks.
pub(super) fn check(
    builder: ElectionBuilder,
    command: &str,
    flags: &HealthFlags,
) -> (ElectionBuilder, HealthCommand) {
    let (every, failures_max) = (flags.health_cmd_interval, flags.health_cmd_failures);
    let how = "has not ended yet".to_owned();
    let begin = Checked { command: command.to_owned(), failures_max, failures: 0, may_lead: false, how };
    let (checked, health) = watch::channel(begin);
    let (command, checked) = (command.to_owned(), Arc::new(checked));
    let log = Arc::new(Mutex::new(HealthLog::default()));
    let builder = builder.health(HealthCheck::every(every).failures(failures_max), move || {
        let (command, log, checked) = (command.clone(), Arc::clone(&log), Arc::clone(&checked));
        async move {
            let ended = shell::run(&command, None, every).await;
            let trouble = match &ended {
                ShellEnd::Well => None,
                ShellEnd::Badly(how) => Some(how.clone()),
                ShellEnd::Late => Some(format!("did not end within {every:?} and was killed")),
            };
            checked.send_modify(|checked| checked.take_in(trouble.as_deref()));
            log.lock().unwrap_or_else(PoisonError::into_inner).checked(trouble);
            ended == ShellEnd::Well
        }
    });
    (builder, HealthCommand(health))
}

impl HealthCommand {
    /// Why this candidate does not compete, if that is why.
    pub(super) fn keeps_out(&self) -> Option<String> {
        let checked = self.0.borrow();
        (!checked.may_lead).then(|| checked.sentence())
    }

    /// Waits until the command has failed often enough.
    pub(super) async fn fails(&self) {
        let fails = |checked: &Checked| !checked.may_lead && checked.failures >= checked.failures_max;
        if self.0.clone().wait_for(fails).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Checked {
    fn take_in(&mut self, trouble: Option<&str>) {
        let Some(how) = trouble else {
            (self.failures, self.may_lead) = (0, true);
            return;
        };
        self.failures = self.failures.saturating_add(1);
        self.may_lead &= self.failures < self.failures_max;
        self.how = how.to_owned();
    }

    fn sentence(&self) -> String {
        format!("unhealthy: `{}` {}", self.command, self.how)
    }
}

/// What was last said, and how many checks have failed in a row.
#[derive(Default)]
struct HealthLog {
    said: Option<String>,
    failures: u64,
}

impl HealthLog {
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
