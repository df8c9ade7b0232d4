//! What libpq knows besides the connection string: its variables, the service file and where the password file is.
//!
//! Only [`Environment::from_env`] looks at variables. What it found fills the gaps that a URL leaves, in libpq's order: the URL
//! first, then the service, then the variables.

use std::fmt;
use std::path::{Path, PathBuf};

use bellwether_core::StoreError;

use crate::config::bad;
use crate::options::ConnectionOptions;

/// The variables that name an option of a connection.
const VARIABLES: [(&str, &str); 14] = [
    ("PGHOST", "host"),
    ("PGHOSTADDR", "hostaddr"),
    ("PGPORT", "port"),
    ("PGUSER", "user"),
    ("PGPASSWORD", "password"),
    ("PGDATABASE", "dbname"),
    ("PGOPTIONS", "options"),
    ("PGSSLMODE", "sslmode"),
    ("PGSSLROOTCERT", "sslrootcert"),
    ("PGSSLCERT", "sslcert"),
    ("PGSSLKEY", "sslkey"),
    ("PGCHANNELBINDING", "channel_binding"),
    ("PGCONNECT_TIMEOUT", "connect_timeout"),
    ("PGPASSFILE", "passfile"),
];

/// What libpq reads besides the connection string; see [`Config::from_url_in`](crate::Config::from_url_in).
#[derive(Clone, Default)]
pub struct Environment {
    options: Vec<(&'static str, String)>,
    service: Option<String>,
    /// In the order in which they are searched.
    service_files: Vec<PathBuf>,
}

impl Environment {
    /// Reads libpq's variables. `PGPASSFILE` is `~/.pgpass` by default, `PGSERVICEFILE` is `~/.pg_service.conf`.
    pub fn from_env() -> Environment {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let named = |(name, option): &(&str, &'static str)| variable(name).map(|value| (*option, value));
        let mut options: Vec<_> = VARIABLES.iter().filter_map(named).collect();
        let home = variable("HOME").map(PathBuf::from);
        if let Some(home) = &home {
            options.push(("passfile", home.join(".pgpass").display().to_string()));
        }
        let own = variable("PGSERVICEFILE").map(PathBuf::from);
        let own = own.or_else(|| home.map(|home| home.join(".pg_service.conf")));
        let shared = variable("PGSYSCONFDIR").map(|dir| Path::new(&dir).join("pg_service.conf"));
        let service_files = own.into_iter().chain(shared).collect();
        Environment { options, service: variable("PGSERVICE"), service_files }
    }

    /// Fills the gaps of these options.
    pub(crate) fn fill(&self, options: &mut ConnectionOptions) -> Result<(), StoreError> {
        if let Some(service) = options.take("service").or_else(|| self.service.clone()) {
            for (name, value) in self.service(&service)? {
                options.fill(&name, &value);
            }
        }
        let own_hosts = options.has("host");
        for (name, value) in &self.options {
            // The addresses of other hosts than these.
            if *name != "hostaddr" || !own_hosts {
                options.fill(name, value);
            }
        }
        // As everywhere else: the server on this machine.
        options.fill("host", "localhost");
        Ok(())
    }

    fn service(&self, name: &str) -> Result<Vec<(String, String)>, StoreError> {
        for file in &self.service_files {
            let text = match std::fs::read_to_string(file) {
                Ok(text) => text,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => {
                    let sentence = format!("the service file {} cannot be read", file.display());
                    return Err(bad(sentence).caused_by(error));
                }
            };
            if let Some(options) = section(&text, name) {
                return Ok(options);
            }
        }
        let searched: Vec<String> =
            self.service_files.iter().map(|file| file.display().to_string()).collect();
        Err(bad(format!(
            "there is no service {name:?} in {}: name its file in PGSERVICEFILE",
            searched.join(" or ")
        )))
    }
}

/// Neither passwords nor anything else that was read.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.options.iter().map(|(name, _)| name).collect();
        f.debug_struct("Environment").field("options", &names).finish_non_exhaustive()
    }
}

/// The lines `name=value` below `[service]`, or `None` where there is no such section.
pub(crate) fn section(text: &str, service: &str) -> Option<Vec<(String, String)>> {
    let heading = |line: &&str| line.starts_with('[');
    let mut lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    lines.find(|line| line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) == Some(service))?;
    let options = lines.take_while(|line| !heading(line)).filter_map(|line| line.split_once('='));
    Some(options.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_the_lines_below_its_name() {
        let text =
            "# [app]\n[other]\nhost=a\n[app]\n # a comment\nhost = db1,db2\n\ndbname=app\n[last]\nuser=me\n";
        let pairs = |all: &[(&str, &str)]| -> Vec<(String, String)> {
            all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        assert_eq!(section(text, "app"), Some(pairs(&[("host", "db1,db2"), ("dbname", "app")])));
        assert_eq!(section(text, "last"), Some(pairs(&[("user", "me")])));
        assert_eq!(section(text, "none"), None);
    }

    #[test]
    fn the_url_comes_before_the_variables_and_no_password_is_shown() {
        let options = vec![
            ("host", "a,b".to_owned()),
            ("password", "sesame".to_owned()),
            ("hostaddr", "::1".to_owned()),
        ];
        let environment = Environment { options, ..Environment::default() };
        assert!(!format!("{environment:?}").contains("sesame"));
        let mut named = ConnectionOptions::of("postgres://me@db/app").unwrap();
        environment.fill(&mut named).unwrap();
        assert_eq!(named.for_driver(), "dbname='app' host='db' password='sesame' user='me' ");
        let mut unnamed = ConnectionOptions::of("postgres:///app").unwrap();
        environment.fill(&mut unnamed).unwrap();
        assert_eq!(unnamed.take("host").as_deref(), Some("a,b"));
        let unknown =
            environment.fill(&mut ConnectionOptions::of("postgres:///?service=x").unwrap()).unwrap_err();
        assert!(unknown.to_string().contains("no service \"x\""), "{unknown}");
    }
}
