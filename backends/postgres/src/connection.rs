//! One connection of our own, never from a pool: pools recycle, and every recycling ends leaderships.
//!
//! A statement is never abandoned: either its answer is read, or the session is thrown away. A dropped future would leave
//! its lock behind, granted and forgotten.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bellwether_backend::{SessionFailure, lock};
use bellwether_core::{ErrorKind, StoreError};
use futures_util::future::{poll_fn, try_join_all};
use tokio::sync::watch;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Row, SimpleQueryMessage, SimpleQueryRow, Statement};

use crate::errors::{BACKEND, Cause, meaning, misconfigured, unavailable};
use crate::tls::{Connector, Encrypted};
use crate::transport::{Socket, SocketDuplicate, is_local, place, reach};
use crate::{Config, Schema, sql};

/// The first release whose server can end an idle session, which is what makes a lease of a lock.
const OLDEST_VERSION: i32 = 140_000;

/// Hears what is notified, and by which process of the server, in the order in which the server sent it, before the answer to
/// anything asked later is given.
pub(crate) type Hear = Arc<dyn Fn(i32, &str) + Send + Sync>;

/// The parameters of a statement.
pub(crate) type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// One connection.
pub(crate) struct PgConnection {
    client: Client,
    /// What was prepared on it, each under the text by which the code names it.
    statements: Mutex<Vec<(&'static str, Statement)>>,
    /// The schema that statements on tables mean.
    schema: Option<Schema>,
    pub(crate) identity: SessionIdentity,
    /// The timeline of the server, which each promotion raises.
    pub(crate) timeline: i32,
    /// Whether this role can see when a promotion was.
    pub(crate) may_date: bool,
    /// For how many locks the server made room, which is shared by everybody on it.
    pub(crate) lock_room: i64,
    /// The server sees the port of this end, so nothing in between has a connection of its own to it.
    pub(crate) is_direct: bool,
    ended: Ended,
    socket: Arc<Mutex<Option<SocketDuplicate>>>,
}

/// A session of the server, unmistakable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionIdentity {
    /// The server's process behind it.
    pub(crate) pid: i32,
    /// Which server, and which start of it: behind one name there may be several.
    server: String,
    /// When the server's process began, by its own clock: with its number it is unmistakable.
    pub(crate) started: String,
}

impl SessionIdentity {
    /// Whether both are of the same server, in the same start of it.
    pub(crate) fn shares_server_with(&self, other: &SessionIdentity) -> bool {
        self.server == other.server
    }
}

/// Whether the connection has ended. Dropping it closes the connection.
struct Ended(watch::Sender<bool>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.send_replace(true);
    }
}

impl PgConnection {
    /// Opens one to the server at this place of the list, called by this name. What is notified goes to `hear`.
    pub(crate) async fn open(
        config: &Config,
        host: usize,
        name: &str,
        hear: Option<Hear>,
    ) -> Result<PgConnection, StoreError> {
        let limit = config.connect_timeout();
        let opening = async {
            let LoggedIn { client, connection, port, duplicate } = log_in(config, host, name).await?;
            let (ended, socket) = (Ended(watch::channel(false).0), Arc::new(Mutex::new(duplicate)));
            tokio::spawn(read(connection, hear, ended.0.clone(), Arc::clone(&socket)));
            // Sets the session up and reads what the server is, in one round trip.
            let text = format!("{}; {}", sql::PREPARE_SESSION, sql::WHERE_AM_I);
            let answers = client.simple_query(&text).await.map_err(meaning)?;
            let row = last_row(&answers).ok_or_else(|| unavailable("the server answered with nothing"))?;
            let text = |column: &str| row.get(column).unwrap_or_default();
            let number = |column: &str| text(column).parse::<i64>().unwrap_or_default();
            let small = |column: &str| i32::try_from(number(column)).unwrap_or_default();
            if small("version") < OLDEST_VERSION {
                return Err(misconfigured(format!(
                    "the server is PostgreSQL {}, and only 14 and later can end a leader's silent session: upgrade it",
                    small("version") / 10_000
                )));
            }
            if text("standby") == "t" {
                return Err(misconfigured(format!(
                    "{} is a standby, where everybody is granted every lock: name the primary in the URL",
                    place(config, host)
                )));
            }
            let server = text("server_started").to_owned();
            Ok(PgConnection {
                identity: SessionIdentity { pid: small("pid"), server, started: text("started").to_owned() },
                timeline: small("timeline"),
                may_date: text("may_date") == "t",
                lock_room: number("lock_room"),
                is_direct: port.is_some_and(|port| i64::from(port) == number("client_port")),
                client,
                statements: Mutex::default(),
                schema: config.schema_used().cloned(),
                ended,
                socket,
            })
        };
        tokio::time::timeout(limit, opening).await.unwrap_or_else(|_| {
            let sentence = format!("no connection to {} within {limit:?}", place(config, host));
            Err(StoreError::new(ErrorKind::TimedOut, BACKEND, sentence))
        })
    }

    /// The server's process behind it.
    pub(crate) fn pid(&self) -> i32 {
        self.identity.pid
    }

    /// An error unless both reached the same server.
    pub(crate) fn same_server(&self, other: &PgConnection) -> Result<(), StoreError> {
        if self.identity.shares_server_with(&other.identity) {
            return Ok(());
        }
        Err(unavailable("two connections reached two servers: name one in the URL, not a balancer"))
    }

    /// Has these prepared, at once, before they are first used.
    pub(crate) async fn prepare(&self, texts: &[&'static str]) -> Result<(), StoreError> {
        try_join_all(texts.iter().map(|text| self.statement(text))).await.map(drop).map_err(meaning)
    }

    async fn statement(&self, text: &'static str) -> Result<Statement, tokio_postgres::Error> {
        let find = |all: &Vec<(&str, Statement)>| {
            all.iter().find(|(known, _)| *known == text).map(|(_, statement)| statement.clone())
        };
        if let Some(known) = find(&lock(&self.statements)) {
            return Ok(known);
        }
        let sent = self.schema.as_ref().map_or_else(|| text.to_owned(), |schema| schema.statement(text));
        let statement = self.client.prepare(&sent).await?;
        lock(&self.statements).push((text, statement.clone()));
        Ok(statement)
    }

    /// Runs a statement that returns one row. When no answer comes in time the session is thrown away.
    pub(crate) async fn row(
        &self,
        limit: Duration,
        text: &'static str,
        values: Values<'_>,
    ) -> Result<Row, SessionFailure> {
        let mut rows = self.rows(limit, text, values).await?;
        rows.pop().ok_or_else(|| SessionFailure::Said(unavailable("the server answered with nothing")))
    }

    /// As [`PgConnection::row`], for any number of rows.
    pub(crate) async fn rows(
        &self,
        limit: Duration,
        text: &'static str,
        values: Values<'_>,
    ) -> Result<Vec<Row>, SessionFailure> {
        let asked = async { self.client.query(&self.statement(text).await?, values).await };
        self.bounded(limit, asked).await
    }

    /// Runs statements without parameters and results.
    pub(crate) async fn execute(&self, limit: Duration, text: &str) -> Result<(), SessionFailure> {
        self.bounded(limit, self.client.batch_execute(text)).await
    }

    /// Runs one without preparing it, for what is rarely asked.
    pub(crate) async fn ask(&self, limit: Duration, text: &str) -> Result<Vec<Row>, SessionFailure> {
        self.bounded(limit, self.client.query(text, &[])).await
    }

    /// Runs statements without preparing them; the first value of the last row, as text.
    pub(crate) async fn said(&self, limit: Duration, text: &str) -> Result<Option<String>, SessionFailure> {
        let answers = self.bounded(limit, self.client.simple_query(text)).await?;
        Ok(last_row(&answers).and_then(|row| row.get(0)).map(str::to_owned))
    }

    async fn bounded<T>(
        &self,
        limit: Duration,
        call: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, SessionFailure> {
        match tokio::time::timeout(limit, call).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) if error.is_closed() || error.as_db_error().is_none() => {
                self.throw_away();
                Err(SessionFailure::Over(unavailable("the session ended").caused_by(Cause::of(&error))))
            }
            Ok(Err(error)) => {
                // What the server says with FATAL it says at the end of the session.
                let fatal = error.as_db_error().is_some_and(|said| said.severity() != "ERROR");
                if fatal {
                    self.throw_away();
                    return Err(SessionFailure::Over(meaning(error)));
                }
                Err(SessionFailure::Said(meaning(error)))
            }
            Err(_) => {
                self.throw_away();
                let sentence = format!("no answer within {limit:?}; the session is given up");
                Err(SessionFailure::Over(StoreError::new(ErrorKind::TimedOut, BACKEND, sentence)))
            }
        }
    }

    /// Closes the connection without waiting for anything.
    pub(crate) fn throw_away(&self) {
        self.ended.0.send_replace(true);
    }

    pub(crate) fn is_over(&self) -> bool {
        *self.ended.0.borrow()
    }

    /// Waits for the end of the connection, whoever ended it.
    pub(crate) async fn over(&self) {
        let _ = self.ended.0.subscribe().wait_for(|over| *over).await;
    }

    /// A duplicate of the socket, for a guard that is to close it last.
    #[cfg(unix)]
    pub(crate) fn duplicate(&self) -> Option<SocketDuplicate> {
        lock(&self.socket).as_ref().and_then(|socket| socket.try_clone().ok())
    }
}

fn last_row(answers: &[SimpleQueryMessage]) -> Option<&SimpleQueryRow> {
    answers.iter().rev().find_map(|answer| match answer {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    })
}

type DriverConnection = tokio_postgres::Connection<Socket, Encrypted>;

/// Reads what the server sends until either side ends the connection.
async fn read(
    mut connection: DriverConnection,
    hear: Option<Hear>,
    ended: watch::Sender<bool>,
    socket: Arc<Mutex<Option<SocketDuplicate>>>,
) {
    let mut thrown_away = ended.subscribe();
    loop {
        let message = tokio::select! {
            message = poll_fn(|context| connection.poll_message(context)) => message,
            _ = thrown_away.wait_for(|over| *over) => break,
        };
        match (message, &hear) {
            (Some(Ok(AsyncMessage::Notification(note))), Some(hear)) => {
                hear(note.process_id(), note.payload())
            }
            (Some(Ok(_)), _) => {}
            (Some(Err(_)) | None, _) => break,
        }
    }
    // A duplicate left open would keep the server from seeing the end.
    drop(lock(&socket).take());
    drop(connection);
    ended.send_replace(true);
}

/// A connection that the server has let in.
struct LoggedIn {
    client: Client,
    connection: DriverConnection,
    /// The port at this end, where it is a connection by TCP.
    port: Option<u16>,
    duplicate: Option<SocketDuplicate>,
}

/// Connects, encrypts and logs in.
async fn log_in(config: &Config, host: usize, name: &str) -> Result<LoggedIn, StoreError> {
    let mode = if is_local(config, host) { SslMode::Disable } else { config.server.get_ssl_mode() };
    let connector = config.tls.connector(config, host)?;
    match log_in_by(config, host, name, mode, &connector).await {
        // As libpq does: who would do without encryption does without one that fails.
        Err(_) if mode == SslMode::Prefer && connector.has_failed() => {
            log_in_by(config, host, name, SslMode::Disable, &connector).await
        }
        result => result,
    }
}

async fn log_in_by(
    config: &Config,
    host: usize,
    name: &str,
    mode: SslMode,
    connector: &Connector,
) -> Result<LoggedIn, StoreError> {
    let transport = reach(config, host).await?;
    let mut driver = config.driver(host, name);
    driver.ssl_mode(mode);
    let has_password = driver.get_password().is_some();
    let connected = driver.connect_raw(transport.stream, connector.driver()).await;
    let (client, connection) = connected.map_err(|error| match error.code() {
        // A database that takes no connections, and not what the same code means later.
        Some(&SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE) => {
            unavailable("the server accepts no connections at the moment").caused_by(Cause::of(&error))
        }
        Some(_) => meaning(error),
        None => connector.meaning(error, mode == SslMode::Require, has_password),
    })?;
    Ok(LoggedIn { client, connection, port: transport.port, duplicate: transport.duplicate })
}
