//! Every store, by the scheme of its URL: the one table that [`open`], the command, the documents and the errors read.
//!
//! A new store is its crate, a feature, and a row here.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;

use bellwether_election::{Error, Options, Store};

use crate::reroute::Reroute;

/// A kind of store, as its URLs name it.
///
/// ```
/// let urls: Vec<&str> = bellwether::Scheme::all().iter().map(|scheme| scheme.example).collect();
/// assert!(urls.contains(&"memory:"));
/// ```
#[non_exhaustive]
pub struct Scheme {
    /// What may stand before the colon; the first is the usual one.
    pub names: &'static [&'static str],
    /// How a URL looks.
    pub example: &'static str,
    /// Where the elections are held.
    pub place: &'static str,
    /// The feature of this crate that brings the store; `None` where it is always there.
    pub feature: Option<&'static str>,
    /// Where a URL may have a secret in it.
    pub secret: SecretIn,
    /// `None` where the feature is off.
    driver: Option<Opener>,
}

/// Where a URL may have a secret in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SecretIn {
    /// Its URLs need none.
    Nowhere,
    /// In the password of `USER:PASSWORD@`, or in a parameter `password`.
    Password,
    /// In a password, or in `TOKEN@`, which stands where others have a user.
    UserOrPassword,
}

/// What this build does with a URL of the scheme.
struct Opener {
    open: fn(&str) -> Result<Store, Error>,
    /// The options that candidates start from on the store of this URL. Opens nothing.
    options: fn(&str) -> Result<Options, Error>,
    /// How its servers are reached elsewhere; `None` where it has none.
    reroute: Option<Reroute>,
}

static SCHEMES: [Scheme; 6] = [
    Scheme {
        names: &["memory"],
        example: "memory:",
        place: "the memory of one process, for trying out",
        feature: None,
        secret: SecretIn::Nowhere,
        driver: Some(Opener { open: |_| Ok(crate::memory()), options: usual, reroute: None }),
    },
    Scheme {
        names: &["file"],
        example: "file:DIR",
        place: "a directory, for the processes of one machine",
        feature: Some("file"),
        secret: SecretIn::Nowhere,
        #[cfg(not(feature = "file"))]
        driver: None,
        #[cfg(feature = "file")]
        driver: Some(Opener {
            open: |url| Ok(Store::from(bellwether_file::from_url(url, crate::clock())?)),
            options: usual,
            reroute: None,
        }),
    },
    Scheme {
        names: &["postgres", "postgresql"],
        example: "postgres://HOST:PORT/DATABASE",
        place: "the advisory locks of a PostgreSQL server",
        feature: Some("postgres"),
        secret: SecretIn::Password,
        #[cfg(not(feature = "postgres"))]
        driver: None,
        #[cfg(feature = "postgres")]
        driver: Some(Opener {
            open: |url| {
                let environment = bellwether_postgres::Environment::from_env();
                let config = bellwether_postgres::Config::from_url_in(url, &environment)?;
                Ok(Store::from(bellwether_postgres::from_config(config, crate::clock())))
            },
            options: usual,
            reroute: Some(crate::reroute::POSTGRES),
        }),
    },
    Scheme {
        names: &["nats", "tls"],
        example: "nats://HOST:PORT",
        place: "a JetStream bucket of NATS servers",
        feature: Some("nats"),
        secret: SecretIn::UserOrPassword,
        #[cfg(not(feature = "nats"))]
        driver: None,
        #[cfg(feature = "nats")]
        driver: Some(Opener {
            open: |url| Ok(Store::from(bellwether_nats::from_url(url, crate::clock())?)),
            options: |url| Ok(bellwether_nats::Config::from_url(url)?.profile().options()),
            reroute: Some(crate::reroute::NATS),
        }),
    },
    Scheme {
        names: &["kubernetes"],
        example: "kubernetes://NAMESPACE",
        place: "the Leases of a Kubernetes namespace",
        feature: Some("kubernetes"),
        secret: SecretIn::Nowhere,
        #[cfg(not(feature = "kubernetes-any-version"))]
        driver: None,
        #[cfg(feature = "kubernetes-any-version")]
        driver: Some(Opener {
            open: |url| {
                let environment = bellwether_kubernetes::Environment::from_env();
                let config = bellwether_kubernetes::Config::from_url(url)?.in_environment(&environment)?;
                Ok(Store::from(bellwether_kubernetes::from_config(config, crate::clock())))
            },
            options: |_| Ok(bellwether_kubernetes::options()),
            reroute: Some(crate::reroute::KUBERNETES),
        }),
    },
    Scheme {
        names: &["raft"],
        example: "raft://HOST:PORT",
        place: "a Raft cluster of `bellwether node`s",
        feature: Some("raft"),
        secret: SecretIn::Nowhere,
        #[cfg(not(feature = "raft"))]
        driver: None,
        #[cfg(feature = "raft")]
        driver: Some(Opener {
            open: |url| Ok(Store::from(bellwether_raft::from_url(url, crate::clock())?)),
            options: usual,
            reroute: Some(crate::reroute::RAFT),
        }),
    },
];

fn usual(_: &str) -> Result<Options, Error> {
    Ok(Options::default())
}

/// Opens the store that this URL names, with the options that candidates on it start from. Connects to nothing yet.
///
/// [`Scheme::all`] lists the URLs. What a URL of PostgreSQL leaves out is taken from libpq's variables and files, as by `psql`.
///
/// ```
/// # fn main() -> Result<(), bellwether::Error> {
/// use bellwether::Election;
///
/// let store = bellwether::open("memory:")?;
/// let builder = Election::builder("reports").backend(store).id("host-1");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::BadUrl`] when the URL names no store of this build; and what the store says to the URL.
pub fn open(url: &str) -> Result<Store, Error> {
    let scheme = Scheme::of(url).ok_or_else(|| Error::BadUrl(no_scheme(url)))?;
    let driver = scheme.driver.as_ref().ok_or_else(|| Error::BadUrl(scheme.missing()))?;
    Ok((driver.open)(url)?.with_default_options((driver.options)(url)?))
}

impl Scheme {
    /// Every store that this version knows, those that this build leaves out included.
    pub fn all() -> &'static [Scheme] {
        &SCHEMES
    }

    /// The scheme of a URL, if there is such a store.
    pub fn of(url: &str) -> Option<&'static Scheme> {
        let (name, _) = url.split_once(':')?;
        SCHEMES.iter().find(|scheme| scheme.names.contains(&name))
    }

    /// Whether this build has the store.
    pub fn is_built_in(&self) -> bool {
        self.driver.is_some()
    }

    /// The options that candidates start from on the store of this URL. Opens nothing.
    ///
    /// # Errors
    /// When this build has no such store, or when the URL cannot be read.
    pub fn default_options(&self, url: &str) -> Result<Options, Error> {
        let driver = self.driver.as_ref().ok_or_else(|| Error::BadUrl(self.missing()))?;
        (driver.options)(url)
    }

    /// `HOST:PORT` of each server that the URL names; none where the store has no servers. Connects to nothing.
    ///
    /// # Errors
    /// When this build has no such store, when the URL cannot be read, and for servers that are not reached over TCP.
    pub fn servers(&self, url: &str) -> Result<Vec<String>, Error> {
        let driver = self.driver.as_ref().ok_or_else(|| Error::BadUrl(self.missing()))?;
        driver.reroute.as_ref().map_or(Ok(Vec::new()), |reroute| (reroute.servers)(url))
    }

    /// The URL of the same store with its servers at these addresses, in the order of [`servers`](Scheme::servers), as behind proxies. Servers keep their
    /// names for TLS where the store can tell name and address apart. What the URL needs in files is written into the directory.
    ///
    /// # Errors
    /// As [`servers`](Scheme::servers), where there are no servers, and when a file cannot be written.
    pub fn through(&self, url: &str, addresses: &[SocketAddr], directory: &Path) -> Result<String, Error> {
        let driver = self.driver.as_ref().ok_or_else(|| Error::BadUrl(self.missing()))?;
        let no_servers = || Error::BadUrl(format!("{} has no servers", self.example));
        (driver.reroute.as_ref().ok_or_else(no_servers)?.through)(url, addresses, directory)
    }

    /// Whether this URL has a secret in it. In doubt it has: an unescaped slash may be part of a password, and a URL of no
    /// store may be one of another store, mistyped.
    pub fn has_secret(url: &str) -> bool {
        let rest = url.split_once("://").map_or("", |(_, rest)| rest);
        let user = rest.split('?').next().and_then(|place| place.rsplit_once('@')).map(|(user, _)| user);
        let is_token = Scheme::of(url).is_some_and(|scheme| scheme.secret == SecretIn::UserOrPassword);
        let parameter = || url.split_whitespace().collect::<String>().contains("password=");
        user.is_some_and(|user| is_token || user.contains(':')) || parameter()
    }

    fn missing(&self) -> String {
        let (name, feature) = (self.names[0], self.feature.unwrap_or_default());
        format!(
            "no backend {name:?} in this build: it comes with the feature {feature:?}; there are {}",
            examples()
        )
    }
}

impl fmt::Debug for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scheme({})", self.example)
    }
}

/// What to write instead of a URL that no store answers to.
fn no_scheme(given: &str) -> String {
    let sentence = "that is not a backend's URL";
    let Some((name, rest)) = given.split_once(':') else {
        if given.is_empty() {
            return format!("the backend's URL is empty: write one of {}", examples());
        }
        if let Some(meant) = built_in().find(|scheme| scheme.names.contains(&given)) {
            return format!("{sentence}: write it like {}", meant.example);
        }
        if given.starts_with(['/', '.', '~']) || std::path::Path::new(given).is_dir() {
            return format!("{sentence}: for a directory, write file:{given}");
        }
        // It may be a secret in the wrong place, so it is not repeated.
        return format!("{sentence}: write one of {}", examples());
    };
    let servers: Vec<&str> = built_in().map(|one| one.example).filter(|one| one.contains("PORT")).collect();
    let is_port = rest.split(['/', '?', ',']).next().is_some_and(|port| port.parse::<u16>().is_ok());
    if is_port && !servers.is_empty() {
        let sentence = "that names a host and a port, and not what listens there";
        return format!("{sentence}: write {}", servers.join(" or "));
    }
    format!("no backend {name:?}: there are {}", examples())
}

fn built_in() -> impl Iterator<Item = &'static Scheme> {
    SCHEMES.iter().filter(|scheme| scheme.is_built_in())
}

fn examples() -> String {
    built_in().map(|scheme| scheme.example).collect::<Vec<&str>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(url: &str) -> String {
        match open(url) {
            Err(Error::BadUrl(sentence)) => sentence,
            Err(other) => panic!("{url}: {other}"),
            Ok(_) => panic!("{url} was opened"),
        }
    }

    #[test]
    fn secrets_are_found_wherever_a_url_may_have_one() {
        for url in [
            "postgres://me:s3cret@host/db",
            "postgres://me:s3/cret@host/db",
            "postgres://me@host/db?password=s3cret",
            "host=db user=me password = s3cret",
            "nats://t0ken@host:4222",
            "nats://me:s3cret@one:4222,two:4222?bucket=b",
            "anything://me:s3cret@host",
        ] {
            assert!(Scheme::has_secret(url), "{url}");
        }
    }

    #[test]
    fn urls_without_a_secret_are_handed_on() {
        for url in [
            "",
            "memory:",
            "file:/srv/a@b:c",
            "postgres://me@host:5432/db",
            "host=db user=me passfile=/etc/pass",
            "nats://host:4222?creds=/etc/me@home.creds",
        ] {
            assert!(!Scheme::has_secret(url), "{url}");
        }
    }

    #[test]
    fn a_url_of_no_store_is_refused_with_what_to_write() {
        assert!(refusal("mysql://x").starts_with("no backend \"mysql\": there are memory:"));
        assert!(refusal("").contains("is empty"));
        assert!(refusal("memory").ends_with("write it like memory:"));
        assert!(refusal("/var/lib/x").ends_with("write file:/var/lib/x"));
        let secret = refusal("s3cret");
        assert!(secret.contains("not a backend's URL") && !secret.contains("s3cret"), "{secret}");
    }

    #[test]
    fn a_store_that_is_left_out_is_named_with_its_feature() {
        for scheme in Scheme::all().iter().filter(|scheme| !scheme.is_built_in()) {
            let refused = refusal(&format!("{}://host", scheme.names[0]));
            let feature = format!("the feature {:?}", scheme.feature.unwrap());
            assert!(refused.contains(&feature) && !refused.contains(scheme.example), "{refused}");
        }
    }

    #[cfg(feature = "nats")]
    #[test]
    fn a_builder_starts_from_the_options_of_its_store() {
        let url = "nats://127.0.0.1?profile=cluster";
        let ttl = open(url).unwrap().default_options().timing.ttl;
        assert_eq!(ttl, std::time::Duration::from_secs(10));
        assert_eq!(Scheme::of(url).unwrap().default_options(url).unwrap().timing.ttl, ttl);
        assert!(refusal("host:4222").contains("nats://HOST:PORT"));
    }
}
