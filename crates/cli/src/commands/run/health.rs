//! `--health-cmd CMD`: only a healthy candidate stands, and an unhealthy leader steps down.
//!
//! A health command that fails is one line in the log, then one when it fails in another way, and one when it succeeds again.

use std::sync::Arc;

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
    /// How it last failed, since it last succeeded: "ended with code 1".
    how: Option<String>,
}

/// Lets the command decide. It has as long as the pause between two checks.
pub(super) fn check(
    builder: ElectionBuilder,
    command: &str,
    flags: &HealthFlags,
) -> (ElectionBuilder, HealthCommand) {
    let (every, failures_max) = (flags.health_cmd_interval, flags.health_cmd_failures);
    let begin =
        Checked { command: command.to_owned(), failures_max, failures: 0, may_lead: false, how: None };
    let (checked, health) = watch::channel(begin);
    let (command, checked) = (command.to_owned(), Arc::new(checked));
    let builder = builder.health(HealthCheck::every(every).failures(failures_max), move || {
        let (command, checked) = (command.clone(), Arc::clone(&checked));
        async move {
            let ended = shell::run(&command, None, every).await;
            let is_well = ended == ShellEnd::Well;
            checked.send_modify(|checked| match ended {
                ShellEnd::Well => checked.succeeded(),
                ShellEnd::Badly(how) => checked.failed(how),
                ShellEnd::Late => checked.failed(format!("did not end within {every:?} and was killed")),
            });
            is_well
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
    fn succeeded(&mut self) {
        if self.how.take().is_some() {
            let times =
                if self.failures == 1 { "once".to_owned() } else { format!("{} times", self.failures) };
            tracing::info!("healthy again: the health command failed {times}");
        }
        (self.failures, self.may_lead) = (0, true);
    }

    fn failed(&mut self, how: String) {
        self.failures = self.failures.saturating_add(1);
        self.may_lead &= self.failures < self.failures_max;
        if self.how.as_ref() == Some(&how) {
            tracing::debug!("unhealthy: the health command {how}");
        } else {
            tracing::warn!("unhealthy: the health command {how}");
            self.how = Some(how);
        }
    }

    fn sentence(&self) -> String {
        format!("unhealthy: `{}` {}", self.command, self.how.as_deref().unwrap_or("has not ended yet"))
    }
}
