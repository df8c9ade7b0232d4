//! How a candidate stands, in a sentence for `systemctl status`.

use std::time::Duration;

use bellwether::{Connection, Election, StateName, Status};
use tokio::task::JoinHandle;

use crate::systemd::Systemd;

/// From one sentence to the next: systemd keeps only the last, and a candidate that changes faster must not keep it busy.
const PAUSE: Duration = Duration::from_millis(250);

/// Tells systemd how the candidate stands, and that it is ready, whenever that changes. It holds the election: abort it, and wait for it.
pub(super) fn tell(systemd: Systemd, election: Election) -> JoinHandle<()> {
    tokio::spawn(async move {
        loop {
            let status = election.status();
            let (told, was_ready) = (sentence(&status), status.is_ready());
            let was_told = systemd.stands(&told, was_ready);
            tokio::time::sleep(PAUSE).await;
            if was_told {
                let is_news = |now: &Status| sentence(now) != told || now.is_ready() != was_ready;
                let _ = election.wait_until(is_news).await;
            }
        }
    })
}

/// It says nothing that is wrong a second later: until when a leadership is certain moves with each renewal, and nobody asks us again.
fn sentence(status: &Status) -> String {
    let on = &status.election;
    let silence = || match &status.last_error {
        Some(error) => format!("the store does not answer: {error}"),
        None => "the store has not answered yet".to_owned(),
    };
    let is_silent = status.connection == Connection::Disconnected || status.last_success.is_none();
    match (status.state, status.epoch, &status.leader) {
        (StateName::Stopped, ..) => format!("stays out of {on}"),
        (StateName::Leader, Some(epoch), _) if is_silent => {
            format!("leads {on} under epoch {epoch} until its deadline; {}", silence())
        }
        (StateName::Leader, Some(epoch), _) => format!("leads {on} under epoch {epoch}"),
        _ if is_silent => format!("stands by for {on}; {}", silence()),
        (_, _, Some(leader)) if *leader != status.id => format!("stands by for {on}: {leader} leads"),
        _ => format!("stands by for {on}"),
    }
}
