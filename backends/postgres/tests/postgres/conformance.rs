//! The suite that every backend passes, on a server of its own.

use std::sync::Arc;
use std::time::Duration;

use bellwether_backend::conformance::{self, Harness};
use bellwether_backend::{Backend, Fut};
use bellwether_core::{Candidate, Clock, ElectionName, StoreError};
use bellwether_postgres::{Config, DEFAULT_SCHEMA, Keys, Schema, from_url, init};
use bellwether_support::servers::postgres::Server;
use bellwether_support::{clock, crash, lead_until_killed, role};

const TTL: Duration = Duration::from_secs(2);

struct Database {
    server: Server,
    /// The test that another process is to run.
    test: &'static str,
    url: String,
}

impl Harness for Database {
    fn clock(&self) -> Arc<dyn Clock> {
        clock()
    }

    fn connect(&self, clock: Arc<dyn Clock>) -> Fut<'_, Result<Arc<dyn Backend>, StoreError>> {
        Box::pin(async move {
            let backend = from_url(&self.url, clock)?;
            backend.connect().await?;
            Ok(Arc::new(backend) as Arc<dyn Backend>)
        })
    }

    /// Twice what other stores take: of a machine that is busy with other tests a leader of eight may not hear for a second.
    fn ttl(&self) -> Duration {
        TTL
    }

    /// The longest case waits for the server to get old enough; more at once would not end sooner.
    fn cases_at_once(&self) -> usize {
        8
    }

    /// The next transaction id, which every write takes.
    fn fingerprint(&self) -> Fut<'_, Result<Option<String>, StoreError>> {
        Box::pin(async move {
            let sql = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::int8";
            Ok(Some(self.server.number(sql).await.to_string()))
        })
    }

    fn crash<'a>(
        &'a self,
        on: &'a ElectionName,
        who: &'a Candidate,
        ttl: Duration,
    ) -> Fut<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            crash(self.test, &self.url, on, who, ttl).await;
            // Killed with another ttl than that of the candidate to come, which would be refused while this one is there.
            let Keys(one, two) = Keys::of(on);
            let held = format!(
                "SELECT count(*) FROM pg_locks WHERE classid::int8 = {} AND objid::int8 = {}",
                one as u32, two as u32
            );
            self.server.until(&held, |number| number == 0).await;
            Ok(true)
        })
    }
}

async fn conforms(test: &'static str, schema: Option<Schema>) {
    if let Some(role) = role() {
        return lead_until_killed(&role, |url| from_url(url, clock()).unwrap()).await;
    }
    // What the server itself writes meanwhile is not what a look wrote.
    let server = Server::start_with(TTL + TTL / 10, None, &["autovacuum=off"]).await;
    // The suite assumes a machine that is not busy with another one.
    static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let _turn = ONE_AT_A_TIME.lock().await;
    let mut url = server.url();
    if let Some(schema) = &schema {
        init(&Config::from_url(&url).unwrap(), schema, &[]).await.unwrap();
        url = format!("{url}?schema={}", schema.name());
    }
    let harness = Database { server, test, url };
    let report = conformance::run(Arc::new(harness)).await;
    println!("{report}");
    report.assert_passed();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_conforms() {
    conforms("conformance::a_server_conforms", None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_with_tables_conforms() {
    let schema = Schema::new(DEFAULT_SCHEMA).unwrap();
    conforms("conformance::a_server_with_tables_conforms", Some(schema)).await;
}
