//! One connection of our own, never from a pool: pools recycle, and every recycling ends leaderships.
//!
//! A statement is never abandoned: either its answer is read, or the session is thrown away. A dropped future would leave
//! its lock behind, granted and forgotten.

use std::sync::Arc;
#[cfg(unix)]
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bellwether_backend::SessionFailure;
use bellwether_core::{Boot, ErrorKind, StoreError};
use futures_util::future::poll_fn;
use tokio::sync::watch;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Row, SimpleQueryMessage, SimpleQueryRow, Statement};

use crate::errors::{BACKEND, Cause, meaning, misconfigured, unavailable};
use crate::tls::{Connector, Encrypted};
use crate::transport::{Socket, is_local, place, reach};
use crate::{Config, sql};

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
    /// The server's process behind it.
    pub(crate) pid: i32,
    /// Which server, and which start of it: behind one name there may be several.
    server: String,
    /// When the server's process began, by its own clock: with its number it is unmistakable.
    started: String,
    /// The timeline of the server, which each promotion raises.
    pub(crate) timeline: i32,
    /// Whether this role can see when a promotion was.
    pub(crate) may_date: bool,
    /// For how many locks the server made room, which is shared by everybody on it.
    pub(crate) lock_room: i64,
    /// The port at this end, where it is a connection by TCP.
    port: Option<u16>,
    /// The server sees that very port, so nothing in between has a connection of its own to it.
    pub(crate) is_direct: bool,
    /// When it was there, on our clock, read after it was opened: a server that restarts ends it, so it proves that there was
    /// no restart since.
    pub(crate) opened: Boot,
    ended: watch::Sender<bool>,
    /// A duplicate of the socket, for a guard that is to close it last.
    #[cfg(unix)]
    socket: Duplicate,
}

/// A session of the server, unmistakable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionIdentity {
    pub(crate) pid: i32,
    server: String,
    pub(crate) started: String,
}

#[cfg(unix)]
type Duplicate = Arc<Mutex<Option<std::os::fd::OwnedFd>>>;

impl PgConnection {
    /// Opens one to the server at this place of the list, called by this name. What is notified goes to `notes`.
    pub(crate) async fn open(
        config: &Config,
        host: usize,
        opened: Boot,
        name: &str,
        notes: Option<Hear>,
    ) -> Result<PgConnection, StoreError> {
        let limit = config.connect_timeout();
        let opening = PgConnection::open_in_time(config, host, opened, name, notes);
        match tokio::time::timeout(limit, opening).await {
            Ok(result) => result,
            Err(_) => Err(StoreError::new(
                ErrorKind::TimedOut,
                BACKEND,
                format!("no connection to {} within {limit:?}", place(config, host)),
            )),
        }
    }

    async fn open_in_time(
        config: &Config,
        host: usize,
        opened: Boot,
        name: &str,
        notes: Option<Hear>,
    ) -> Result<PgConnection, StoreError> {
        let mode = if is_local(config, host) { SslMode::Disable } else { config.server.get_ssl_mode() };
        let connector = config.tls.connector(config, host)?;
        let (client, mut connection, port, duplicate) =
            match log_in(config, host, name, mode, &connector).await {
                // As libpq does: who would do without encryption does without one that fails.
                Err(_) if mode == SslMode::Prefer && connector.has_failed() => {
                    log_in(config, host, name, SslMode::Disable, &connector).await?
                }
                result => result?,
            };
        #[cfg(unix)]
        let (duplicate, closed) = {
            let duplicate: Duplicate = Arc::new(Mutex::new(duplicate));
            (Arc::clone(&duplicate), duplicate)
        };
        #[cfg(not(unix))]
        let () = duplicate;
        let (ended, mut thrown_away) = watch::channel(false);
        let mark = ended.clone();
        tokio::spawn(async move {
            loop {
                let message = tokio::select! {
                    message = poll_fn(|context| connection.poll_message(context)) => message,
                    _ = thrown_away.wait_for(|over| *over) => break,
                };
                match message {
                    Some(Ok(AsyncMessage::Notification(note))) => {
                        if let Some(notes) = &notes {
                            notes(note.process_id(), note.payload());
                        }
                    }
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => break,
                }
            }
            // A duplicate left open would keep the server from seeing the end.
            #[cfg(unix)]
            drop(closed.lock().unwrap_or_else(PoisonError::into_inner).take());
            drop(connection);
            mark.send_replace(true);
        });
        let mut session = PgConnection {
            client,
            pid: 0,
            server: String::new(),
            started: String::new(),
            timeline: 0,
            may_date: false,
            lock_room: 0,
            port,
            is_direct: false,
            opened,
            ended,
            #[cfg(unix)]
            socket: duplicate,
        };
        let (standby, version) = session.prepare_itself().await?;
        if version < OLDEST_VERSION {
            return Err(misconfigured(format!(
                "the server is PostgreSQL {}, and only 14 and later can end a leader's silent session: upgrade it",
                version / 10_000
            )));
        }
        if standby {
            return Err(misconfigured(format!(
                "{} is a standby, where everybody is granted every lock: name the primary in the URL",
                place(config, host)
            )));
        }
        Ok(session)
    }

    /// Sets the session up and reads what the server is, in one round trip; whether it is a standby, and its version.
    async fn prepare_itself(&mut self) -> Result<(bool, i32), StoreError> {
        let text = format!("{}; {}", sql::PREPARE_SESSION, sql::WHERE_AM_I);
        let answers = self.client.simple_query(&text).await.map_err(meaning)?;
        let row = last_row(&answers).ok_or_else(|| unavailable("the server answered with nothing"))?;
        let text = |column: &str| row.get(column).unwrap_or_default();
        let number = |column: &str| text(column).parse::<i64>().unwrap_or_default();
        let small = |column: &str| i32::try_from(number(column)).unwrap_or_default();
        self.pid = small("pid");
        self.server = text("server_started").to_owned();
        self.started = text("started").to_owned();
        self.timeline = small("timeline");
        self.may_date = text("may_date") == "t";
        self.lock_room = number("lock_room");
        self.is_direct = self.port.is_some_and(|port| i64::from(port) == number("client_port"));
        Ok((text("standby") == "t", small("version")))
    }

    /// What is left to know of it when it is over.
    pub(crate) fn identity(&self) -> SessionIdentity {
        SessionIdentity { pid: self.pid, server: self.server.clone(), started: self.started.clone() }
    }

    /// Whether that was a session of the same server, in the same start of it.
    pub(crate) fn shares_server_with(&self, other: &SessionIdentity) -> bool {
        self.server == other.server
    }

    /// An error unless both reached the same server.
    pub(crate) fn same_server(&self, other: &PgConnection) -> Result<(), StoreError> {
        if self.server == other.server {
            return Ok(());
        }
        Err(unavailable("two connections reached two servers: name one in the URL, not a balancer"))
    }

    pub(crate) async fn prepare(&self, text: &str) -> Result<Statement, StoreError> {
        self.client.prepare(text).await.map_err(meaning)
    }

    /// Runs a statement that returns one row. When no answer comes in time the session is thrown away.
    pub(crate) async fn row(
        &self,
        limit: Duration,
        statement: &Statement,
        values: Values<'_>,
    ) -> Result<Row, SessionFailure> {
        self.rows(limit, statement, values).await.and_then(only)
    }

    /// As [`PgConnection::row`], for any number of rows.
    pub(crate) async fn rows(
        &self,
        limit: Duration,
        statement: &Statement,
        values: Values<'_>,
    ) -> Result<Vec<Row>, SessionFailure> {
        self.bounded(limit, self.client.query(statement, values)).await
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
        self.ended.send_replace(true);
    }

    pub(crate) fn is_over(&self) -> bool {
        *self.ended.borrow()
    }

    /// Waits for the end of the connection, whoever ended it.
    pub(crate) async fn over(&self) {
        let mut ended = self.ended.subscribe();
        let _ = ended.wait_for(|over| *over).await;
    }

    #[cfg(unix)]
    pub(crate) fn duplicate(&self) -> Option<std::os::fd::OwnedFd> {
        self.socket
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
            .and_then(|socket| socket.try_clone().ok())
    }
}

fn last_row(answers: &[SimpleQueryMessage]) -> Option<&SimpleQueryRow> {
    answers.iter().rev().find_map(|answer| match answer {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    })
}

/// The one row of an answer.
pub(crate) fn only(mut rows: Vec<Row>) -> Result<Row, SessionFailure> {
    rows.pop().ok_or_else(|| SessionFailure::Said(unavailable("the server answered with nothing")))
}

impl Drop for PgConnection {
    fn drop(&mut self) {
        self.throw_away();
    }
}

#[cfg(unix)]
type KeptSocket = Option<std::os::fd::OwnedFd>;
#[cfg(not(unix))]
type KeptSocket = ();

/// Connects, encrypts and logs in; also returns the port at this end and a duplicate of the socket.
async fn log_in(
    config: &Config,
    host: usize,
    name: &str,
    mode: SslMode,
    connector: &Connector,
) -> Result<(Client, tokio_postgres::Connection<Socket, Encrypted>, Option<u16>, KeptSocket), StoreError> {
    let transport = reach(config, host).await?;
    let mut driver = config.driver(host, name);
    driver.ssl_mode(mode);
    let has_password = driver.get_password().is_some();
    let connected = driver.connect_raw(transport.stream, connector.driver()).await;
    let (client, connection) = connected.map_err(|error| match error.code() {
        // A database that takes no connections, and not what the same code means later.
        Some(code) if *code == SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE => {
            unavailable("the server accepts no connections at the moment").caused_by(Cause::of(&error))
        }
        Some(_) => meaning(error),
        None => connector.meaning(error, mode == SslMode::Require, has_password),
    })?;
    #[cfg(unix)]
    return Ok((client, connection, transport.port, transport.duplicate));
    #[cfg(not(unix))]
    Ok((client, connection, transport.port, ()))
}
