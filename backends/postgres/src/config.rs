//! Where the server is, and which locks to use.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bellwether_core::{ElectionName, ErrorKind, StoreError};
use tokio_postgres::config::SslMode;

use crate::errors::{BACKEND, Cause};
use crate::options::ConnectionOptions;
use crate::passfile::{self, Login};
use crate::tls::Tls;
use crate::transport::{self, ConnectWith, Connecting};
use crate::{Environment, Keys, Schema, Transport};

/// How long opening a session may take, where the URL says nothing.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Where the server is, and which locks to use.
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) server: tokio_postgres::Config,
    /// Where passwords are, if the URL has none.
    passfile: Option<PathBuf>,
    pub(crate) tls: Tls,
    pub(crate) connect_with: Option<ConnectWith>,
    /// Whether a third session is parked while following.
    pub(crate) watches: bool,
    keys: HashMap<ElectionName, Keys>,
    /// Explicit keys for whichever election comes first.
    only: Option<Keys>,
    schema: Option<Schema>,
}

/// What is asked of the encryption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ssl {
    pub(crate) required: bool,
    pub(crate) verify: Verify,
    pub(crate) root: Option<Root>,
    /// The client's certificate and key.
    pub(crate) own: Option<(PathBuf, PathBuf)>,
}

/// What the server's certificate has to prove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verify {
    Nothing,
    /// That one of our authorities signed it.
    Authority,
    /// And that it names the server.
    Full,
}

/// The authorities that are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    System,
    File(PathBuf),
}

impl Config {
    /// Reads `postgres://USER:PASSWORD@HOST:PORT/DATABASE?…`, or libpq's `host=… dbname=…`, also as `postgres:host=… dbname=…`. Several hosts may be given; of the
    /// primaries among them the one with the highest timeline is used, so an old one that was left running after a promotion is
    /// not. `postgres:` and `postgres://` alone mean [`Config::from_env`]; any other URL is all that is read, see
    /// [`Config::from_url_in`].
    ///
    /// Besides libpq's own, as far as they are for connecting:
    ///
    /// - `key1` and `key2` set the election's lock instead of the hash of its name;
    /// - `schema` names the tables that `bellwether postgres init` made, and without it there are none;
    /// - `sslmode` is `disable`, `prefer` (the default: encrypted where the server can), `require`, `verify-ca` or `verify-full`;
    ///   `sslrootcert` a file of authorities or `system`; `sslcert` and `sslkey` the client's certificate;
    /// - `passfile` is a file of passwords, as libpq reads it;
    /// - `watch=off` does without the third session of a follower, which then hears of a leader's crash at its next retry.
    ///
    /// # Errors
    /// When it cannot be read, when a certificate cannot, and for what this build cannot keep.
    pub fn from_url(url: &str) -> Result<Config, StoreError> {
        if ["postgres:", "postgres://", "postgresql:", "postgresql://"].contains(&url) {
            return Config::from_env();
        }
        Config::from_options(ConnectionOptions::of(url)?)
    }

    /// As [`Config::from_url`], with what the URL leaves out taken from libpq's variables, service file and password file.
    ///
    /// # Errors
    /// As [`Config::from_url`], and when the service that is named is not in its file.
    pub fn from_url_in(url: &str, environment: &Environment) -> Result<Config, StoreError> {
        let mut options = ConnectionOptions::of(url)?;
        environment.fill(&mut options)?;
        Config::from_options(options)
    }

    /// Reads libpq's variables: `PGHOST`, `PGHOSTADDR`, `PGPORT`, `PGUSER`, `PGPASSWORD`, `PGPASSFILE`, `PGDATABASE`, `PGOPTIONS`,
    /// `PGSERVICE`, `PGSERVICEFILE`, `PGSYSCONFDIR`, `PGSSLMODE`, `PGSSLROOTCERT`, `PGSSLCERT`, `PGSSLKEY`, `PGCHANNELBINDING`,
    /// `PGCONNECT_TIMEOUT`. Without `PGHOST` it is the server on this machine.
    ///
    /// # Errors
    /// As [`Config::from_url_in`].
    pub fn from_env() -> Result<Config, StoreError> {
        Config::from_url_in("postgres:", &Environment::from_env())
    }

    /// Uses this lock for that election, instead of the hash of its name.
    #[must_use]
    pub fn keys(mut self, on: ElectionName, keys: Keys) -> Config {
        self.keys.insert(on, keys);
        self
    }

    /// Connects by this function instead of by a socket: it is given the host (or the directory of a socket) and the port,
    /// and yields a [`Transport`], on which nothing has been said yet. Encryption and logging in are done on it as on any
    /// other, by the URL.
    ///
    /// It is called for every session that is opened, and has to yield a new connection each time, to one and the same
    /// server: two sessions that reach one server process, or two servers, are refused, as a pooler's are. Within the
    /// connect time-out; an error of it counts as a server that cannot be reached.
    ///
    /// ```
    /// # fn main() -> Result<(), bellwether_core::StoreError> {
    /// use bellwether_postgres::{Config, Transport};
    ///
    /// let config = Config::from_url("postgres://app@db/app")?.connect_with(|_host, _port| async {
    ///     let through = tokio::net::TcpStream::connect("127.0.0.1:15432").await?;
    ///     Ok(Transport::from(through))
    /// });
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn connect_with<F, C>(self, connect: F) -> Config
    where
        F: Fn(String, u16) -> C + Send + Sync + 'static,
        C: Future<Output = std::io::Result<Transport>> + Send + 'static,
    {
        let connect = move |host, port| Box::pin(connect(host, port)) as Connecting;
        Config { connect_with: Some(ConnectWith(Arc::new(connect))), ..self }
    }

    /// Uses the tables in this schema.
    #[must_use]
    pub fn schema(mut self, schema: Schema) -> Config {
        self.schema = Some(schema);
        self
    }

    /// The schema of the tables, if any are used.
    pub fn schema_used(&self) -> Option<&Schema> {
        self.schema.as_ref()
    }

    pub(crate) fn keys_of(&self, on: &ElectionName) -> Keys {
        self.keys.get(on).copied().or(self.only).unwrap_or_else(|| Keys::of(on))
    }

    /// Whether one pair of keys stands for every name, so that only one election makes sense.
    pub(crate) fn has_one_lock(&self) -> bool {
        self.only.is_some()
    }

    /// The driver's settings for one connection to the host at this place of the list, by this name, with the password of the
    /// password file if there is no other.
    pub(crate) fn driver(&self, host: usize, name: &str) -> tokio_postgres::Config {
        let mut driver = self.server.clone();
        driver.application_name(name);
        let (None, Some(file)) = (driver.get_password(), &self.passfile) else { return driver };
        let system_user = || whoami::username().unwrap_or_default();
        let user = driver.get_user().map_or_else(system_user, str::to_owned);
        let database = driver.get_dbname().unwrap_or(&user);
        let place = transport::name(self, host);
        let login = Login { host: &place, port: transport::port(self, host), database, user: &user };
        if let Some(password) = passfile::password(file, &login) {
            driver.password(password);
        }
        driver
    }

    pub(crate) fn connect_timeout(&self) -> Duration {
        self.server.get_connect_timeout().copied().unwrap_or(CONNECT_TIMEOUT)
    }

    fn from_options(mut options: ConnectionOptions) -> Result<Config, StoreError> {
        let only = keys(&mut options)?;
        let watches = match options.take("watch").as_deref() {
            None | Some("on") => true,
            Some("off") => false,
            Some(other) => return Err(bad(format!("watch is on or off, not {other:?}"))),
        };
        let schema = options.take("schema").map(|name| Schema::new(&name)).transpose()?;
        let passfile = options.take("passfile").map(PathBuf::from);
        let (mode, ssl) = ssl(&mut options)?;
        let mut server: tokio_postgres::Config =
            options.for_driver().parse().map_err(|error: tokio_postgres::Error| {
                bad("the URL cannot be read; write postgres://USER@HOST:PORT/DATABASE".to_owned())
                    .caused_by(Cause::of(&error))
            })?;
        server.ssl_mode(mode);
        if server.get_hosts().is_empty() {
            return Err(bad("no host is named; write postgres://USER@HOST:PORT/DATABASE".to_owned()));
        }
        let tls = Tls::new(&ssl)?;
        Ok(Config { server, passfile, tls, connect_with: None, watches, keys: HashMap::new(), only, schema })
    }
}

pub(crate) fn keys(options: &mut ConnectionOptions) -> Result<Option<Keys>, StoreError> {
    let mut key = |name| options.take(name).map(|value| number(name, &value)).transpose();
    match (key("key1")?, key("key2")?) {
        (Some(one), Some(two)) => Ok(Some(Keys(one, two))),
        (None, None) => Ok(None),
        _ => Err(bad("key1 and key2 belong together; give both, or neither".to_owned())),
    }
}

/// As libpq reads them, except that `verify-full` without authorities means the system's.
pub(crate) fn ssl(options: &mut ConnectionOptions) -> Result<(SslMode, Ssl), StoreError> {
    let root = options.take("sslrootcert").map(|value| match value.as_str() {
        "system" => Root::System,
        file => Root::File(PathBuf::from(file)),
    });
    let mode = options.take("sslmode");
    let default = if root == Some(Root::System) { "verify-full" } else { "prefer" };
    let (driver, verify) = match mode.as_deref().unwrap_or(default) {
        "disable" => (SslMode::Disable, Verify::Nothing),
        "prefer" => (SslMode::Prefer, Verify::Nothing),
        // With authorities at hand it has always meant that they are asked.
        "require" if root.is_some() => (SslMode::Require, Verify::Authority),
        "require" => (SslMode::Require, Verify::Nothing),
        "verify-ca" => (SslMode::Require, Verify::Authority),
        "verify-full" => (SslMode::Require, Verify::Full),
        other => {
            let sentence = "sslmode is disable, prefer, require, verify-ca or verify-full, not";
            return Err(bad(format!("{sentence} {other:?}")));
        }
    };
    let root = match (verify, root) {
        (Verify::Full, None) => Some(Root::System),
        (Verify::Authority, None) => {
            return Err(bad(
                "sslmode=verify-ca needs an authority: name its file with sslrootcert".to_owned()
            ));
        }
        // Anybody can get a certificate from one of those, for some name.
        (Verify::Authority | Verify::Nothing, Some(Root::System)) => {
            return Err(bad("sslrootcert=system is only good with sslmode=verify-full".to_owned()));
        }
        (_, root) => root,
    };
    let own = match (options.take("sslcert"), options.take("sslkey")) {
        (Some(certificate), Some(key)) => Some((PathBuf::from(certificate), PathBuf::from(key))),
        (None, None) => None,
        _ => return Err(bad("sslcert and sslkey belong together; give both, or neither".to_owned())),
    };
    Ok((driver, Ssl { required: driver == SslMode::Require, verify, root, own }))
}

fn number(name: &str, value: &str) -> Result<i32, StoreError> {
    let sentence =
        || bad(format!("{name} is a whole number from {} to {}, not {value:?}", i32::MIN, i32::MAX));
    value.parse().map_err(|_| sentence())
}

pub(crate) fn bad(sentence: String) -> StoreError {
    StoreError::new(ErrorKind::InvalidInput, BACKEND, sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_from_the_url_and_the_rest_is_the_driver_s() {
        let on = ElectionName::new("reports").unwrap();
        let plain = Config::from_url("postgres://u@db/app").unwrap();
        assert_eq!(plain.keys_of(&on), Keys::of(&on));
        let url = "postgres://u@db/app?key1=-5&connect_timeout=3&key2=7";
        let explicit = Config::from_url(url).unwrap();
        assert_eq!(explicit.keys_of(&on), Keys(-5, 7));
        assert_eq!(explicit.connect_timeout(), Duration::from_secs(3));
        assert!(explicit.schema_used().is_none());
        let tables = Config::from_url("postgres://u@db/app?schema=team-7").unwrap();
        assert_eq!(tables.schema_used().map(Schema::name), Some("team-7"));
        assert_eq!(plain.keys(on.clone(), Keys(1, 2)).keys_of(&on), Keys(1, 2));
    }

    #[test]
    fn what_cannot_be_kept_is_refused_with_what_to_do() {
        for (url, part) in [
            ("postgres://u@db/app?key1=1", "belong together"),
            ("postgres://u@db/app?key1=1&key2=x", "whole number"),
            ("postgres://u@db/app?schema=a.b", "schema"),
            ("postgres://u@db/app?sslmode=allow", "prefer"),
            ("postgres://u@db/app?sslmode=verify-ca", "sslrootcert"),
            ("postgres://u@db/app?sslmode=require&sslrootcert=system", "verify-full"),
            ("host=db sslmode=require sslcert=/nowhere/a.crt", "belong together"),
            ("host=db sslmode=verify-full sslrootcert=/nowhere/a.crt", "/nowhere/a.crt"),
            ("postgres://u@db/app?watch=maybe", "on or off"),
            ("postgres://u@db:port/app", "cannot be read"),
        ] {
            let error = Config::from_url(url).unwrap_err();
            assert!(error.to_string().contains(part), "{url}: {error}");
        }
    }
}
