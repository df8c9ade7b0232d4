//! `postgres init` and candidates run nothing that a stranger has put where the tables are to be.

use std::time::Duration;

use bellwether_core::{ErrorKind, Outcome};
use bellwether_postgres::{Config, Postgres, Schema, from_url, init};
use bellwether_support::servers::postgres::Server;
use bellwether_support::{Actor, clock};
use tokio_postgres::{Client, NoTls};

const TTL: Duration = Duration::from_secs(1);
const IS_SUPERUSER: &str = "SELECT rolsuper::int4::int8 FROM pg_roles WHERE rolname = 'stranger'";

/// What gives a stranger everything, if somebody who has it runs it.
const EVIL: &str = "CREATE FUNCTION {place}() RETURNS trigger LANGUAGE plpgsql AS \
     'BEGIN ALTER ROLE stranger SUPERUSER; RETURN NEW; END'";

async fn connect(server: &Server, role: &str) -> Client {
    let url = format!("postgres://{role}@127.0.0.1:{}/postgres", server.port);
    let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A server where a stranger may make schemas, as in many a database.
async fn with_stranger() -> (Server, Client) {
    let server = Server::start(Duration::ZERO).await;
    let admin = server.admin().await;
    admin.batch_execute("CREATE ROLE stranger LOGIN; CREATE ROLE owner LOGIN").await.unwrap();
    admin.batch_execute("GRANT CREATE ON DATABASE postgres TO stranger, owner").await.unwrap();
    let stranger = connect(&server, "stranger").await;
    (server, stranger)
}

async fn make(server: &Server, role: &str, schema: &str) -> Result<(), bellwether_core::StoreError> {
    let url = format!("postgres://{role}@127.0.0.1:{}/postgres", server.port);
    init(&Config::from_url(&url).unwrap(), &Schema::new(schema).unwrap(), &[]).await
}

/// As a superuser, and as somebody else: nothing is made, and nothing was run.
async fn refused(server: &Server, schema: &str, parts: &[&str]) {
    for role in ["postgres", "owner"] {
        let error = make(server, role, schema).await.expect_err("what others have a hand in is refused");
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
        let told = parts.iter().any(|part| error.to_string().contains(part));
        assert!(told, "{role}: {error}");
    }
    assert_eq!(server.number(IS_SUPERUSER).await, 0, "something of the stranger's was run");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schema_of_a_stranger_is_refused_and_nothing_in_it_is_run() {
    let (server, stranger) = with_stranger().await;
    // Empty, and with default rights of the stranger's own.
    stranger.batch_execute("CREATE SCHEMA empty; GRANT ALL ON SCHEMA empty TO PUBLIC").await.unwrap();
    let defaults = "ALTER DEFAULT PRIVILEGES IN SCHEMA empty GRANT ALL ON TABLES TO stranger";
    stranger.batch_execute(defaults).await.unwrap();
    refused(&server, "empty", &["belongs to role stranger"]).await;
    // With a trigger on a table that is written to.
    stranger.batch_execute("CREATE SCHEMA triggers; GRANT ALL ON SCHEMA triggers TO PUBLIC").await.unwrap();
    stranger.batch_execute(&EVIL.replace("{place}", "triggers.evil")).await.unwrap();
    let table = "CREATE TABLE triggers.version (version int4 PRIMARY KEY); GRANT ALL ON triggers.version TO PUBLIC; \
         CREATE TRIGGER evil BEFORE INSERT ON triggers.version FOR EACH ROW EXECUTE FUNCTION triggers.evil()";
    stranger.batch_execute(table).await.unwrap();
    refused(&server, "triggers", &["belongs to role stranger"]).await;
    // With a view in the place of a table that is read.
    let view = "CREATE SCHEMA views; GRANT ALL ON SCHEMA views TO PUBLIC; \
         CREATE FUNCTION views.evil() RETURNS int4 LANGUAGE plpgsql AS \
         'BEGIN ALTER ROLE stranger SUPERUSER; RETURN 1; END'; \
         CREATE VIEW views.version AS SELECT views.evil() AS version; GRANT ALL ON views.version TO PUBLIC";
    stranger.batch_execute(view).await.unwrap();
    refused(&server, "views", &["belongs to role stranger"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schema_of_one_s_own_with_somebody_else_s_hand_in_it_is_refused() {
    let (server, stranger) = with_stranger().await;
    let admin = server.admin().await;
    for role in ["postgres", "owner"] {
        admin.batch_execute(&format!("CREATE SCHEMA of_{role} AUTHORIZATION {role}")).await.unwrap();
        let error = async || make(&server, role, &format!("of_{role}")).await.unwrap_err().to_string();
        // Whoever may make objects there may make others later.
        admin.batch_execute(&format!("GRANT CREATE, USAGE ON SCHEMA of_{role} TO stranger")).await.unwrap();
        assert!(error().await.contains("role stranger may create"), "{}", error().await);
        // What was made before the right was taken away.
        let evil = EVIL.replace("{place}", &format!("of_{role}.fence"));
        stranger.batch_execute(&evil).await.unwrap();
        admin.batch_execute(&format!("REVOKE CREATE ON SCHEMA of_{role} FROM stranger")).await.unwrap();
        assert!(error().await.contains("fence, which belongs to role stranger"), "{}", error().await);
        admin.batch_execute(&format!("DROP FUNCTION of_{role}.fence()")).await.unwrap();
        make(&server, role, &format!("of_{role}")).await.unwrap();
        // A trigger needs no right but that to make triggers.
        stranger.batch_execute("CREATE SCHEMA IF NOT EXISTS elsewhere").await.unwrap();
        stranger.batch_execute(&EVIL.replace("{place}", &format!("elsewhere.{role}"))).await.unwrap();
        let trigger = format!(
            "GRANT TRIGGER ON of_{role}.version TO stranger; SET ROLE stranger; CREATE TRIGGER evil \
             BEFORE INSERT ON of_{role}.version FOR EACH ROW EXECUTE FUNCTION elsewhere.{role}()"
        );
        server.admin().await.batch_execute(&trigger).await.unwrap();
        assert!(error().await.contains("trigger evil"), "{}", error().await);
    }
    assert_eq!(server.number(IS_SUPERUSER).await, 0, "something of the stranger's was run");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ordinary_role_makes_the_tables_and_makes_them_anew_without_further_rights() {
    let (server, _stranger) = with_stranger().await;
    make(&server, "owner", "bellwether").await.unwrap();
    server.admin().await.batch_execute("REVOKE CREATE ON DATABASE postgres FROM owner").await.unwrap();
    make(&server, "owner", "bellwether").await.unwrap();
    // Not even by a superuser: the functions would be of two owners.
    let error = make(&server, "postgres", "bellwether").await.unwrap_err();
    assert!(error.to_string().contains("belongs to role owner"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_printed_calls_the_server_s_own_functions_whatever_the_search_path() {
    let (server, stranger) = with_stranger().await;
    server.admin().await.batch_execute("GRANT CREATE ON SCHEMA public TO stranger").await.unwrap();
    // Fits the call better than the server's own, which takes an int8.
    let planted = "CREATE FUNCTION public.hashtextextended(text, int4) RETURNS int8 LANGUAGE plpgsql AS \
         'BEGIN ALTER ROLE stranger SUPERUSER; RETURN 1; END'";
    stranger.batch_execute(planted).await.unwrap();
    let printed = Schema::new("bellwether").unwrap().sql(&[]).unwrap();
    server.admin().await.batch_execute(&printed).await.unwrap();
    assert_eq!(server.number(IS_SUPERUSER).await, 0, "something of the stranger's was run");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_candidate_reads_nothing_but_tables() {
    let (server, stranger) = with_stranger().await;
    let view = "CREATE SCHEMA views; GRANT ALL ON SCHEMA views TO PUBLIC; \
         CREATE FUNCTION views.evil() RETURNS int4 LANGUAGE plpgsql AS \
         'BEGIN ALTER ROLE stranger SUPERUSER; RETURN 1; END'; \
         CREATE VIEW views.version AS SELECT views.evil() AS version; GRANT ALL ON views.version TO PUBLIC";
    stranger.batch_execute(view).await.unwrap();
    let candidate: Actor<Postgres> =
        Actor::new(from_url(&format!("{}?schema=views", server.url()), clock()).unwrap(), "a", TTL);
    match candidate.claim().await {
        Outcome::Refused(error) => {
            assert_eq!(error.kind(), ErrorKind::Misconfigured, "{error}");
            assert!(error.to_string().contains("version is not a table"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(server.number(IS_SUPERUSER).await, 0, "something of the stranger's was run");
}
