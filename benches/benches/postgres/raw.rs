//! The same by the fewest statements, in sessions as the backend's own.

use std::time::Duration;

use bellwether::boot_now;
use bellwether_benches::RawHandover;
use bellwether_support::servers::postgres::Server;
use futures_util::future::poll_fn;
use tokio::sync::mpsc;
use tokio_postgres::{AsyncMessage, Client, NoTls, Statement};

/// Takes the lock and makes a transaction id durable: the least that an epoch costs.
const RAW: &str = "SELECT pg_try_advisory_lock(7, 7), pg_logical_emit_message(true, 'bench', 'raw')::text";

/// A session that takes the lock again and again.
pub(crate) struct RawClaims {
    session: Client,
    statement: Statement,
}

impl RawClaims {
    pub(crate) async fn start(server: &Server) -> RawClaims {
        let (session, _) = raw(server).await;
        let statement = session.prepare(RAW).await.expect("a statement");
        RawClaims { session, statement }
    }

    pub(crate) async fn claim(&self) -> Duration {
        let start = boot_now();
        self.session.query_one(&self.statement, &[]).await.expect("an answer");
        let took = boot_now().since(start);
        self.session.batch_execute("SELECT pg_advisory_unlock(7, 7)").await.expect("an answer");
        took
    }
}

/// A session as the backend's own, over TCP, with what it is notified of.
async fn raw(server: &Server) -> (Client, mpsc::UnboundedReceiver<()>) {
    let (client, mut connection) = tokio_postgres::connect(&server.url(), NoTls).await.expect("a session");
    let (told, notes) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if matches!(message, AsyncMessage::Notification(_)) {
                let _ = told.send(());
            }
        }
    });
    (client, notes)
}

/// Two sessions that hand a lock to each other by the fewest statements: let go with a notice; whoever hears it takes the lock and
/// makes an epoch of it.
pub(crate) struct RawPair {
    leader: (Client, mpsc::UnboundedReceiver<()>),
    follower: (Client, mpsc::UnboundedReceiver<()>),
}

impl RawPair {
    pub(crate) async fn start(server: &Server) -> RawPair {
        let (leader, follower) = (raw(server).await, raw(server).await);
        leader.0.query_one(RAW, &[]).await.expect("an answer");
        RawPair { leader, follower }
    }

    pub(crate) async fn handover(&mut self) -> RawHandover {
        const LET_GO: &str = "SELECT pg_advisory_unlock(7, 7), pg_notify('raw', '')";
        let (leader, (follower, notes)) = (&self.leader.0, &mut self.follower);
        let take = follower.prepare(RAW).await.expect("a statement");
        let let_go = leader.prepare(LET_GO).await.expect("a statement");
        leader.batch_execute("UNLISTEN raw").await.expect("an answer");
        follower.batch_execute("LISTEN raw").await.expect("an answer");
        let start = boot_now();
        let taken = async {
            notes.recv().await.expect("a notice");
            let noticed = boot_now();
            follower.query_one(&take, &[]).await.expect("an answer");
            RawHandover { release: noticed.since(start), claim: boot_now().since(noticed) }
        };
        let (released, handover) = tokio::join!(leader.query_one(&let_go, &[]), taken);
        released.expect("an answer");
        std::mem::swap(&mut self.leader, &mut self.follower);
        handover
    }
}
