//! What several tests of this crate need.

pub(crate) mod diary;
pub(crate) mod proxy;

use std::path::Path;
use std::time::Duration;

use bellwether_core::Boot;
use bellwether_postgres::{Postgres, from_url};
use bellwether_support::servers::postgres::Server;
use bellwether_support::{Actor, clock, until};

/// A candidate in the election `reports`, with connections of its own.
pub(crate) fn actor(url: &str, id: &str, ttl: Duration) -> Actor<Postgres> {
    Actor::new(from_url(url, clock()).unwrap(), id, ttl)
}

/// How many sessions are parked on a leader's end.
pub(crate) const PARKED: &str = "SELECT count(*) FROM pg_stat_activity \
     WHERE application_name LIKE 'bellwether% watch' AND wait_event_type = 'Lock'";

/// With this setting [`questions`] can be counted.
pub(crate) const LOG_QUESTIONS: &str = "log_statement=all";

/// How many statements candidates have made. Tests make theirs without preparing them.
pub(crate) fn questions(server: &Server) -> usize {
    let log = std::fs::read_to_string(server.dir().join("log")).unwrap();
    log.matches("LOG:  execute ").count()
}

/// In a child: leads, renews, and writes down from when each renewal counts. `role`: the URL and, on a line of its own, where.
pub(crate) async fn renew_for_ever(role: &str, ttl: Duration) {
    let (url, note) = role.split_once('\n').unwrap();
    let a = actor(url, "a", ttl);
    let (mut grant, _) = a.lead_within(2 * ttl).await;
    println!("leading");
    loop {
        grant = a.keep(&grant).await;
        let fresh = format!("{note}.new");
        std::fs::write(&fresh, grant.counted_from.as_nanos().to_string()).unwrap();
        std::fs::rename(&fresh, note).unwrap();
        tokio::time::sleep(ttl / 10).await;
    }
}

/// Until [`renew_for_ever`] has written its first.
pub(crate) async fn renewed(note: &Path) {
    until(|| async { note.exists().then_some(()).ok_or("the leader does not renew") }).await;
}

/// What [`renew_for_ever`] wrote down last.
pub(crate) fn noted(note: &Path) -> Boot {
    Boot::from_nanos(std::fs::read_to_string(note).unwrap().parse().unwrap())
}
