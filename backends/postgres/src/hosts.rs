//! Which of the hosts in the URL is the primary.
//!
//! All are asked at once. Of several primaries the one with the highest timeline is taken: a promotion starts a new timeline, so
//! the others were left running after one. For the same reason a primary is refused whose timeline is below one that was
//! seen before, even if it is the only one that answers.

use bellwether_core::StoreError;
use futures_util::future::join_all;

use crate::Config;
use crate::connection::PgConnection;
use crate::errors::{misconfigured, unavailable};
use crate::transport::place;

/// A session of that role to the primary, and which host that is. `newest`: the highest timeline that was seen before.
pub(crate) async fn primary(
    config: &Config,
    role: &str,
    newest: i32,
) -> Result<(usize, PgConnection), StoreError> {
    let hosts = 0..config.server.get_hosts().len();
    let answers = join_all(hosts.map(|host| PgConnection::open(config, host, role, None))).await;
    let (mut found, mut failed): (Option<(usize, PgConnection)>, Option<StoreError>) = (None, None);
    for (host, answer) in answers.into_iter().enumerate() {
        match answer.and_then(|session| not_left_behind(config, host, session, newest)) {
            Ok(session) => {
                if found.as_ref().is_none_or(|(_, best)| best.timeline < session.timeline) {
                    found = Some((host, session));
                }
            }
            // A server that cannot be reached may come back as the primary: that counts for more than a standby.
            Err(error) if failed.as_ref().is_none_or(|failed| !failed.is_retryable()) => failed = Some(error),
            Err(_) => {}
        }
    }
    found.ok_or_else(|| failed.unwrap_or_else(|| misconfigured("no host is named")))
}

fn not_left_behind(
    config: &Config,
    host: usize,
    session: PgConnection,
    newest: i32,
) -> Result<PgConnection, StoreError> {
    if session.timeline >= newest {
        return Ok(session);
    }
    Err(unavailable(format!(
        "{} is a primary that a promotion left behind (its timeline is {}, and {newest} was seen): stop it, or start this program \
         again if the server was restored",
        place(config, host),
        session.timeline
    )))
}
