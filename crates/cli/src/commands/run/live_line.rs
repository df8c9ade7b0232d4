//! What somebody at a terminal sees: a line for what happened, and one live line for how it stands.

use std::time::Duration;

use bellwether::{Election, Event, Events, Reason, What, boot_now};
use tokio::task::JoinHandle;

use crate::logging::WIPE;
use crate::output::span;
use crate::stderr;

const REFRESH: Duration = Duration::from_millis(500);

/// Shows the election until it ends.
pub(super) fn show(election: Election, mut events: Events) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut refresh = tokio::time::interval(REFRESH);
        let mut shown = String::new();
        // While a command runs the terminal is its own.
        let mut command_runs = false;
        // Errors of the store since it last answered.
        let mut failures = 0_u64;
        loop {
            tokio::select! {
                event = events.next() => match event {
                    Some(event) => {
                        match &event.what {
                            What::Error(error) if error.is_retryable() => failures += 1,
                            What::Error(_) | What::StateChanged { .. } => {}
                            _ => failures = 0,
                        }
                        if let Some(line) = line(&event).filter(|_| failures < 2) {
                            stderr::write(format!("{WIPE}{line}\n"));
                            shown.clear();
                        }
                        match event.what {
                            What::ChildStarted { .. } => command_runs = true,
                            What::ChildExited { .. } => command_runs = false,
                            _ => {}
                        }
                        if matches!(event.what, What::Stopped) {
                            stderr::write(WIPE);
                            return;
                        }
                    }
                    None => return,
                },
                _ = refresh.tick() => {}
            }
            let now = live(&election, failures);
            if now != shown && !command_runs {
                stderr::write(format!("{WIPE}{now}"));
                shown = now;
            }
        }
    })
}

fn live(election: &Election, failures: u64) -> String {
    let status = election.status();
    let on = election.name();
    match (election.leadership(), status.leader) {
        (Some(leadership), _) => {
            let left = leadership.remaining().as_secs_f64();
            format!(
                "\x1b[32m●\x1b[0m leading {on} under epoch {}, certain for {left:.1}s",
                leadership.epoch()
            )
        }
        (None, _) if failures > 0 => {
            format!("\x1b[31m○\x1b[0m standing by for {on}: the store has not answered {failures} times")
        }
        (None, Some(leader)) => format!("\x1b[33m○\x1b[0m standing by for {on}: {leader} leads"),
        (None, None) => format!("\x1b[33m○\x1b[0m standing by for {on}: nobody leads"),
    }
}

fn line(event: &Event) -> Option<String> {
    let said = match &event.what {
        What::Acquired { epoch, .. } => format!("\x1b[32macquired\x1b[0m the lead, epoch {epoch}"),
        What::Resumed { epoch, .. } => format!("\x1b[32mresumed\x1b[0m the lead, epoch {epoch}"),
        What::Released { epoch, confirmed: true } => format!("released epoch {epoch}"),
        What::Released { epoch, confirmed: false } => {
            format!("released epoch {epoch}, but the store did not confirm it")
        }
        What::Lost { epoch, reason: Reason::Admin, released: true, .. } => {
            format!("handed over on request, epoch {epoch}")
        }
        What::Lost { epoch, reason: Reason::Preempted, released: true, .. } => {
            format!("handed over to a higher priority, epoch {epoch}")
        }
        What::Lost { epoch, reason, .. } => {
            format!("\x1b[31mlost\x1b[0m epoch {epoch}: {}", reason.meaning())
        }
        What::Suspended { epoch, reason, .. } => {
            format!("\x1b[31msuspended\x1b[0m epoch {epoch}: {}", reason.meaning())
        }
        What::LeaderChanged { leader: Some(id), .. } if *id != event.candidate.id => format!("{id} leads"),
        What::Danger { deadline, .. } => {
            let left = span(deadline.since(boot_now()));
            format!("\x1b[31mdanger\x1b[0m a renewal is overdue; the lead ends in {left}")
        }
        What::Error(error) => format!("\x1b[31merror\x1b[0m {error}"),
        What::ChildStarted { pid } => format!("started process {pid}"),
        What::ChildExited { code } => format!("the command ended with code {code}"),
        _ => return None,
    };
    let time = event.time.to_string();
    Some(format!("{} {said}", time.get(11..19).unwrap_or_default()))
}
