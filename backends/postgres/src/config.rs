//! Where the server is, and which locks to use.

use std::collections::HashMap;
use std::time::Duration;

use bellwether_core::{ElectionName, Error, ErrorKind};
use tokio_postgres::config::SslMode;

use crate::errors::BACKEND;
use crate::{Keys, Schema};

/// How long opening a session may take, where the URL says nothing.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Where the server is, and which locks to use.
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) server: tokio_postgres::Config,
    keys: HashMap<ElectionName, Keys>,
    /// Explicit keys for whichever election comes first.
    only: Option<Keys>,
    schema: Option<Schema>,
}

impl Config {
    /// Reads `postgres://USER:PASSWORD@HOST:PORT/DATABASE?…`, or libpq's `host=… dbname=…`. Several hosts may be given; the
    /// primary among them is used. `key1` and `key2` set the election's lock instead of the hash of its name;
    /// `schema` names the tables that `bellwether postgres init` made, and without it there are none.
    ///
    /// # Errors
    /// When it cannot be read, and for `sslmode=require` and above, which this build cannot keep.
    pub fn from_url(url: &str) -> Result<Config, Error> {
        let (url, keys, schema) = take_own(url)?;
        refuse_tls(&url)?;
        let server = url.parse().map_err(|error: tokio_postgres::Error| {
            bad("the URL cannot be read; write postgres://USER@HOST:PORT/DATABASE".to_owned())
                .caused_by(error)
        })?;
        Config::checked(server, keys, schema)
    }

    /// Reads libpq's variables: `PGHOST`, `PGPORT`, `PGUSER`, `PGPASSWORD`, `PGDATABASE`, `PGSSLMODE`,
    /// `PGCONNECT_TIMEOUT`.
    ///
    /// # Errors
    /// As [`Config::from_url`].
    pub fn from_env() -> Result<Config, Error> {
        let mut text = String::new();
        for (variable, option) in [
            ("PGHOST", "host"),
            ("PGPORT", "port"),
            ("PGUSER", "user"),
            ("PGPASSWORD", "password"),
            ("PGDATABASE", "dbname"),
            ("PGSSLMODE", "sslmode"),
            ("PGCONNECT_TIMEOUT", "connect_timeout"),
        ] {
            if let Some(value) = std::env::var(variable).ok().filter(|value| !value.is_empty()) {
                let quoted = value.replace('\\', "\\\\").replace('\'', "\\'");
                text.push_str(&format!("{option}='{quoted}' "));
            }
        }
        if !text.contains("host=") {
            text.push_str("host=localhost");
        }
        Config::from_url(&text)
    }

    /// Uses this lock for that election, instead of the hash of its name.
    #[must_use]
    pub fn keys(mut self, on: ElectionName, keys: Keys) -> Config {
        self.keys.insert(on, keys);
        self
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

    pub(crate) fn connect_timeout(&self) -> Duration {
        self.server.get_connect_timeout().copied().unwrap_or(CONNECT_TIMEOUT)
    }

    fn checked(
        server: tokio_postgres::Config,
        only: Option<Keys>,
        schema: Option<Schema>,
    ) -> Result<Config, Error> {
        if server.get_ssl_mode() == SslMode::Require {
            return Err(no_tls("require"));
        }
        if server.get_hosts().is_empty() {
            return Err(bad("no host is named; write postgres://USER@HOST:PORT/DATABASE".to_owned()));
        }
        Ok(Config { server, keys: HashMap::new(), only, schema })
    }
}

/// The modes that the driver does not know by name would otherwise end as "invalid value".
fn refuse_tls(text: &str) -> Result<(), Error> {
    for mode in ["verify-ca", "verify-full"] {
        let spellings = [format!("sslmode={mode}"), format!("sslmode='{mode}'")];
        if spellings.iter().any(|spelling| text.contains(spelling)) {
            return Err(no_tls(mode));
        }
    }
    Ok(())
}

fn no_tls(mode: &str) -> Error {
    let sentence = format!(
        "sslmode={mode} is asked for, and this version cannot encrypt; use sslmode=disable on a network that you trust, or \
         a TLS tunnel"
    );
    Error::new(ErrorKind::Unsupported, BACKEND, sentence)
}

/// Takes `key1`, `key2` and `schema` out of a URL's query: the driver does not know them.
fn take_own(url: &str) -> Result<(String, Option<Keys>, Option<Schema>), Error> {
    let Some((base, query)) = url.split_once('?').filter(|_| url.contains("://")) else {
        return Ok((url.to_owned(), None, None));
    };
    let (mut one, mut two, mut schema, mut rest) = (None, None, None, Vec::new());
    for part in query.split('&').filter(|part| !part.is_empty()) {
        match part.split_once('=') {
            Some(("key1", value)) => one = Some(number("key1", value)?),
            Some(("key2", value)) => two = Some(number("key2", value)?),
            Some(("schema", value)) => schema = Some(Schema::new(value)?),
            _ => rest.push(part),
        }
    }
    let keys = match (one, two) {
        (Some(one), Some(two)) => Some(Keys(one, two)),
        (None, None) => None,
        _ => return Err(bad("key1 and key2 belong together; give both, or neither".to_owned())),
    };
    let url = if rest.is_empty() { base.to_owned() } else { format!("{base}?{}", rest.join("&")) };
    Ok((url, keys, schema))
}

fn number(name: &str, value: &str) -> Result<i32, Error> {
    let sentence =
        || bad(format!("{name} is a whole number from {} to {}, not {value:?}", i32::MIN, i32::MAX));
    value.parse().map_err(|_| sentence())
}

fn bad(sentence: String) -> Error {
    Error::new(ErrorKind::InvalidInput, BACKEND, sentence)
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
            ("postgres://u@db/app?sslmode=require", "cannot encrypt"),
            ("postgres://u@db/app?sslmode=verify-full", "cannot encrypt"),
            ("postgres://u@db:port/app", "cannot be read"),
        ] {
            let error = Config::from_url(url).unwrap_err();
            assert!(error.to_string().contains(part), "{url}: {error}");
        }
    }
}
