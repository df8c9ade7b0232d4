//! The PostgreSQL-specific flags of every command, and the flags of the PostgreSQL-specific commands.

use bellwether::{BadName, ElectionName, Scheme};
use clap::Args as ClapArgs;
#[cfg(feature = "postgres")]
use clap::Subcommand;

/// Names that users of PostgreSQL's advisory locks know.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "PostgreSQL")]
pub(crate) struct PostgresFlags {
    /// The server, as a URL or as "host=… dbname=…"; replaces --backend. Default: $PG_DSN, if no backend is named.
    #[arg(long, value_name = "DSN", global = true)]
    dsn: Option<String>,

    /// The first key of the advisory lock, instead of a hash of the election's name; requires --key2.
    #[arg(long, value_name = "N", global = true, allow_negative_numbers = true)]
    key1: Option<i32>,

    /// The second key of the advisory lock; requires --key1.
    #[arg(long, value_name = "N", global = true, allow_negative_numbers = true)]
    key2: Option<i32>,
}

impl PostgresFlags {
    /// The server that `--dsn` names.
    pub(crate) fn server(&self) -> Option<&str> {
        self.dsn.as_deref()
    }

    /// The server that the environment names, for when nothing else names a backend.
    pub(crate) fn server_of_environment() -> Option<String> {
        std::env::var("PG_DSN").ok().filter(|dsn| !dsn.is_empty())
    }

    /// A DSN, which may be written without a scheme, as a URL.
    pub(crate) fn url(dsn: &str) -> String {
        if is_postgres(dsn) { dsn.to_owned() } else { format!("postgres:{dsn}") }
    }

    /// The URL, with the lock's two numbers in it where they are given.
    pub(crate) fn with_keys(&self, url: String) -> Result<String, String> {
        let (Some(one), Some(two)) = (self.key1, self.key2) else { return Ok(url) };
        if !is_postgres(&url) {
            let sentence = "--key1 and --key2 are numbers of a lock of PostgreSQL";
            let scheme = url.split(':').next().unwrap_or_default();
            return Err(format!(
                "{sentence}, and the backend is {scheme}: leave them out, or name a server with --dsn"
            ));
        }
        // Not whether there is a `://` anywhere: a password may have one, and would swallow the keys.
        let is_pairs = url.split_once(':').is_some_and(|(_, rest)| !rest.starts_with("//"));
        Ok(match (is_pairs, url.contains('?')) {
            (true, _) => format!("{url} key1={one} key2={two}"),
            (false, false) => format!("{url}?key1={one}&key2={two}"),
            (false, true) => format!("{url}&key1={one}&key2={two}"),
        })
    }

    /// N:M, which stands for the election on the lock of `--key1 N --key2 M`.
    pub(crate) fn election(&self) -> Result<Option<ElectionName>, BadName> {
        self.key1.zip(self.key2).map(|(one, two)| ElectionName::new(format!("{one}:{two}"))).transpose()
    }

    /// Whether only one of the two numbers is given.
    pub(crate) fn has_half_a_lock(&self) -> bool {
        self.key1.is_some() != self.key2.is_some()
    }
}

fn is_postgres(url: &str) -> bool {
    Scheme::of(url).is_some_and(|scheme| scheme.names.contains(&"postgres"))
}

#[cfg(feature = "postgres")]
#[derive(Debug, Subcommand)]
pub(crate) enum PostgresCommand {
    Init(PostgresInit),
}

/// Make the tables for epochs that a transaction can check, for history, metadata and cooldowns.
///
/// Elections on PostgreSQL need no tables. With them (postgres://…?schema=NAME) your own transaction can call
/// NAME.fence(ELECTION, EPOCH), which fails once that epoch leads no more. May be run any number of times, which upgrades the tables
/// of an earlier version. The role needs CREATE on the database the first time, and no superuser's rights; a schema of another role is
/// refused.
#[cfg(feature = "postgres")]
#[derive(Debug, ClapArgs)]
pub(crate) struct PostgresInit {
    /// The schema to put them in. Default: that of the URL, or bellwether.
    #[arg(long, value_name = "NAME")]
    pub(crate) schema: Option<String>,

    /// Let this role stand in elections; may be given several times.
    #[arg(long, value_name = "ROLE")]
    pub(crate) grant: Vec<String>,

    /// Only print the SQL, for whoever may run it. Connects to nothing.
    #[arg(long)]
    pub(crate) print: bool,
}

#[cfg(test)]
mod tests {
    use super::PostgresFlags;

    #[test]
    fn the_keys_of_the_lock_are_parameters_of_the_url_whatever_is_in_it() {
        let flags = PostgresFlags { dsn: None, key1: Some(1), key2: Some(-2) };
        for (dsn, url) in [
            ("postgres://h/d", "postgres://h/d?key1=1&key2=-2"),
            ("postgres://h/d?schema=s", "postgres://h/d?schema=s&key1=1&key2=-2"),
            ("host=h", "postgres:host=h key1=1 key2=-2"),
            ("host=h password=a://b?c", "postgres:host=h password=a://b?c key1=1 key2=-2"),
        ] {
            assert_eq!(flags.with_keys(PostgresFlags::url(dsn)).as_deref(), Ok(url));
        }
        assert!(flags.with_keys("file:/srv/x".to_owned()).unwrap_err().contains("the backend is file"));
    }
}
