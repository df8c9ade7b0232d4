//! Where the servers are, who we are to them, and which bucket holds the elections.
//!
//! ```text
//! nats://[USER:PASSWORD@ | TOKEN@]HOST[:PORT][,HOST[:PORT]]…[?OPTION=VALUE&…]       tls:// insists on TLS
//! ```
//!
//! | option | default | meaning |
//! |---|---|---|
//! | `bucket` | `bellwether` | the bucket that holds the elections; `profile=cluster` has one for each, and `profile=leader` none by default |
//! | `profile` | `native` | names of keys and the shape of records: `native`, `cluster` as go-cluster 0.1 has them, or `leader` on a bucket of one's own |
//! | `group` | the election's name | with `profile=leader`, the key |
//! | `notes` | `bellwether` | with `profile=cluster` and `profile=leader`, the bucket for past leaderships; `bellwether-notes` where `bucket=bellwether` |
//! | `create`, `replicas` | no, 1 | make a bucket that is to be written when there is none, with this many replicas |
//! | `creds`, `nkey` | – | a credentials file; a file with a seed |
//! | `ca`, `cert` and `key` | the system's, none | whom to trust, and our own certificate |
//! | `discover` | yes | whether servers that servers name are used too, and not only those of the URL |
//! | `domain`, `inbox` | – | JetStream's domain; the prefix of subjects that answers come to |
//! | `ping` | 1s | a silent connection is given up after three of these; with a ttl below 5 s, set a fifth of it |
//! | `timeout` | 2s | for connecting to one server |
//!
//! Passwords and tokens may be percent-encoded. Errors never repeat them.

use std::path::PathBuf;
use std::time::Duration;

use bellwether_backend::url;
use bellwether_core::StoreError;

use crate::errors::{BACKEND, invalid};
use crate::names;
use crate::profile::Profile;

/// The bucket where the URL names none.
const BUCKET: &str = "bellwether";
/// The bucket for notes, where that one is the user's.
const NOTES: &str = "bellwether-notes";
const PORT: u16 = 4222;
/// A silent connection is given up at the third ping after the last answer.
const PING_INTERVAL: Duration = Duration::from_secs(1);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const OPTIONS: &str = "bucket, profile, group, notes, create, replicas, creds, nkey, ca, cert, key, discover, domain, inbox, ping, timeout";

/// Who we are to the server.
#[derive(Clone, Default)]
pub(crate) enum Authentication {
    #[default]
    Nobody,
    Token(String),
    User(String, String),
    /// A file with a token of the account and a seed.
    Credentials(PathBuf),
    /// A file with a seed.
    Seed(PathBuf),
}

/// Where the servers are, who we are to them, and which bucket holds the elections:
/// `nats://[USER:PASSWORD@ | TOKEN@]HOST[:PORT][,HOST[:PORT]]…[?OPTION=VALUE&…]`, with `tls://` to insist on TLS.
///
/// The options are `bucket` (`bellwether`), `profile` (`native`, `cluster` or `leader`), `group` (the key in the profile `leader`), `notes` (the bucket
/// for past leaderships in the profiles `cluster` and `leader`), `create` (no) and `replicas` (1) for a bucket that is missing,
/// `creds` and `nkey` for files with credentials or a seed, `ca`, `cert` and `key` for TLS, `discover` (yes; whether servers that servers
/// name are used too), `domain`, `inbox`, `ping` (1s) and `timeout` (2s, for connecting).
#[derive(Clone)]
pub struct Config {
    pub(crate) servers: Vec<String>,
    pub(crate) identity: Authentication,
    pub(crate) tls: bool,
    pub(crate) authority: Option<PathBuf>,
    pub(crate) certificate: Option<(PathBuf, PathBuf)>,
    /// `None` where the URL names none.
    pub(crate) bucket: Option<String>,
    pub(crate) profile: Profile,
    /// The key, where it is not the election's name.
    pub(crate) group: Option<String>,
    /// The bucket for notes, where the URL names one.
    notes: Option<String>,
    pub(crate) create: bool,
    pub(crate) replicas: u8,
    pub(crate) discovers: bool,
    pub(crate) domain: Option<String>,
    pub(crate) inbox: Option<String>,
    pub(crate) ping_interval: Duration,
    pub(crate) connect_timeout: Duration,
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Who we are stays out: it may be a password.
        f.debug_struct("Config")
            .field("servers", &self.servers)
            .field("profile", &self.profile)
            .field("bucket", &self.bucket())
            .finish_non_exhaustive()
    }
}

impl Config {
    /// Reads a URL. Connects to nothing, and reads no file.
    ///
    /// # Errors
    /// When it cannot be read, with a sentence that says what to write.
    pub fn from_url(url: &str) -> Result<Config, StoreError> {
        let (tls, rest) = match url.split_once("://") {
            Some(("nats", rest)) => (false, rest),
            Some(("tls", rest)) => (true, rest),
            _ => {
                return Err(invalid(
                    "that is not a URL of NATS servers; write nats://HOST:PORT or tls://HOST:PORT",
                ));
            }
        };
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (user, hosts) = match place.rsplit_once('@') {
            Some((user, hosts)) => (Some(user), hosts),
            None => (None, place),
        };
        let servers: Vec<String> =
            hosts.trim_end_matches('/').split(',').map(server).collect::<Result<_, _>>()?;
        let mut config = Config {
            servers,
            identity: user.map(identity).transpose()?.unwrap_or_default(),
            tls,
            authority: None,
            certificate: None,
            bucket: None,
            profile: Profile::Native,
            group: None,
            notes: None,
            create: false,
            replicas: 1,
            discovers: true,
            domain: None,
            inbox: None,
            ping_interval: PING_INTERVAL,
            connect_timeout: CONNECT_TIMEOUT,
        };
        let (mut certificate, mut key) = (None, None);
        for option in url::options(BACKEND, query) {
            let (name, value) = option?;
            match name {
                "cert" => certificate = Some(PathBuf::from(value)),
                "key" => key = Some(PathBuf::from(value)),
                _ => config.set(name, value)?,
            }
        }
        config.certificate = match (certificate, key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            (None, Some(_)) if config.profile == Profile::Leader => {
                return Err(invalid(
                    "key is the file of the client's key and belongs to cert; a key of the bucket is named with group=KEY",
                ));
            }
            _ => return Err(invalid("cert and key belong together; give both, or neither")),
        };
        config.agrees().map(|()| config)
    }

    /// Whether the names fit the profile, and no bucket of others gets keys of ours.
    fn agrees(&self) -> Result<(), StoreError> {
        let notes = self.notes.as_deref();
        let sentence = match self.profile {
            Profile::Native if notes.is_some() => {
                "notes names a bucket in the profiles cluster and leader; the profile native keeps notes in its own: leave it out"
            }
            Profile::Cluster if self.bucket.is_some() => {
                "every election of the profile cluster has its own bucket: leave bucket out, and name the bucket for past \
                 leaderships with notes=NAME"
            }
            Profile::Cluster if notes.is_some_and(|notes| notes.starts_with(names::CLUSTER)) => {
                "buckets named cluster-… are those of elections: choose another name for notes"
            }
            Profile::Leader if self.bucket.is_none() => {
                "the profile leader is held on a bucket of yours: name it with bucket=NAME"
            }
            Profile::Leader if self.bucket.as_deref() == notes => {
                "no key is added to the bucket of the election: choose another bucket for notes"
            }
            Profile::Native | Profile::Cluster if self.group.is_some() => {
                "group names the key in the profile leader; the others have keys of their own"
            }
            _ => return Ok(()),
        };
        Err(invalid(sentence))
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), StoreError> {
        match name {
            "bucket" => self.bucket = Some(bucket(value)?),
            "notes" => self.notes = Some(bucket(value)?),
            "group" => self.group = Some(group(value)?),
            "profile" => self.profile = profile(&value)?,
            "create" => self.create = url::yes_or_no(BACKEND, name, &value)?,
            "replicas" => {
                let number = value.parse().ok().filter(|number| (1..=5).contains(number));
                self.replicas = number.ok_or_else(|| invalid("replicas is a number from 1 to 5"))?;
            }
            "creds" => self.identity = Authentication::Credentials(value.into()),
            "nkey" => self.identity = Authentication::Seed(value.into()),
            "ca" => self.authority = Some(value.into()),
            "discover" => self.discovers = url::yes_or_no(BACKEND, name, &value)?,
            "domain" => self.domain = Some(token("domain", value)?),
            "inbox" => self.inbox = Some(token("inbox", value)?),
            "ping" => self.ping_interval = url::time(BACKEND, name, &value)?,
            "timeout" => self.connect_timeout = url::time(BACKEND, name, &value)?,
            _ => {
                return Err(invalid(format!(
                    "there is no option {name:?} in a URL of NATS servers: there are {OPTIONS}"
                )));
            }
        }
        Ok(())
    }

    /// The bucket, for every election where the profile has one for all.
    pub fn bucket(&self) -> &str {
        self.bucket.as_deref().unwrap_or(BUCKET)
    }

    /// The bucket for past leaderships and other notes, where the profile has one apart from that of the elections.
    pub fn notes(&self) -> Option<&str> {
        let usual = if self.bucket() == BUCKET && self.profile == Profile::Leader { NOTES } else { BUCKET };
        (self.profile != Profile::Native).then(|| self.notes.as_deref().unwrap_or(usual))
    }

    /// The profile.
    pub fn profile(&self) -> Profile {
        self.profile
    }
}

fn server(host: &str) -> Result<String, StoreError> {
    let (name, port) = match host.rsplit_once(':') {
        // The last colon of a bare IPv6 address is part of it.
        Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
        _ => (host, None),
    };
    let port = port.map_or(Ok(PORT), str::parse);
    let wrong =
        name.is_empty() || name.contains(['/', ' ', '?']) || (name.contains(':') && !name.starts_with('['));
    match port {
        Ok(port) if !wrong => Ok(format!("nats://{name}:{port}")),
        _ => Err(invalid("a server is named as HOST or HOST:PORT, several with a comma between them")),
    }
}

fn identity(text: &str) -> Result<Authentication, StoreError> {
    let decoded = |text| url::decoded(BACKEND, text);
    match text.split_once(':') {
        Some((user, password)) => Ok(Authentication::User(decoded(user)?, decoded(password)?)),
        None => Ok(Authentication::Token(decoded(text)?)),
    }
}

fn profile(name: &str) -> Result<Profile, StoreError> {
    match name {
        "native" => Ok(Profile::Native),
        "cluster" => Ok(Profile::Cluster),
        "leader" => Ok(Profile::Leader),
        _ => Err(invalid(format!("there is no profile {name:?}: there are native, cluster and leader"))),
    }
}

fn bucket(name: String) -> Result<String, StoreError> {
    let fits = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    if fits { Ok(name) } else { Err(invalid("a bucket's name is made of letters, digits, - and _")) }
}

fn group(name: String) -> Result<String, StoreError> {
    if names::is_key(&name) {
        Ok(name)
    } else {
        Err(invalid("group is a key of the bucket: letters, digits, - _ = / and single dots inside"))
    }
}

/// What becomes part of a subject.
fn token(option: &str, value: String) -> Result<String, StoreError> {
    let wrong = value.is_empty() || value.contains(|c: char| c.is_whitespace() || matches!(c, '*' | '>'));
    if wrong {
        Err(invalid(format!("{option} is part of a subject, without spaces and wildcards")))
    } else {
        Ok(value)
    }
}

#[cfg(test)]
mod tests;
