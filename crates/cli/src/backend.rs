//! From a URL to a store.

use std::ffi::OsStr;
use std::path::PathBuf;

use bellwether::{ElectionName, Options, Store};

use crate::args::Global;
use crate::exit::{Exit, Failure};
use crate::secrets;

/// The URL of the backend that flags, environment and defaults name.
pub(crate) fn url(global: &Global) -> Result<String, Failure> {
    let url = match named(global)? {
        Some(url) => url,
        None => format!("file:{}", default_directory()?.display()),
    };
    secrets::warn_of_password(&url);
    Ok(url)
}

/// Connects to it.
pub(crate) fn connect(global: &Global) -> Result<Store, Failure> {
    let url = url(global)?;
    if dsn(global)?.is_some() {
        // Which may be written without a scheme.
        return postgres(global, &url);
    }
    let Some((scheme, rest)) = url.split_once(':') else { return Err(no_url(&url)) };
    if global.postgres.key1.is_some() && !["postgres", "postgresql"].contains(&scheme) {
        let sentence = "--key1 and --key2 are numbers of a lock of PostgreSQL";
        return Err(usage(format!(
            "{sentence}, and the backend is {scheme}: leave them out, or name a server with --dsn"
        )));
    }
    match scheme {
        "memory" => Ok(bellwether::memory()),
        #[cfg(feature = "file")]
        "file" => Ok(bellwether::file(bellwether::file::directory(&url)?)?),
        "postgres" | "postgresql" => postgres(global, &url),
        #[cfg(feature = "nats")]
        "nats" | "tls" => Ok(bellwether::nats(&url)?),
        _ if rest.split(['/', '?', ',']).next().is_some_and(|port| port.parse::<u16>().is_ok()) => {
            let meant = "postgres://HOST:PORT/DATABASE or nats://HOST:PORT";
            Err(usage(format!("that names a host and a port, and not what listens there: write {meant}")))
        }
        _ => Err(usage(format!("no backend {scheme:?} in this build: there are {}", known().join(", ")))),
    }
}

/// The election, for what is done to one.
pub(crate) fn election(global: &Global, named: Option<&ElectionName>) -> Result<ElectionName, Failure> {
    election_named(global, named)?.ok_or_else(|| {
        let sentence = "name the election: any name, the same for all who compete";
        usage(format!("{sentence} (only --key1 and --key2 together can stand for it)"))
    })
}

/// The election that is named, or N:M, which stands for the lock of `--key1 N --key2 M`.
pub(crate) fn election_named(
    global: &Global,
    named: Option<&ElectionName>,
) -> Result<Option<ElectionName>, Failure> {
    let lock = global.postgres.key1.zip(global.postgres.key2);
    let of_lock = lock.map(|(one, two)| ElectionName::new(format!("{one}:{two}"))).transpose();
    Ok(named.cloned().or(of_lock.map_err(bellwether::Error::from)?))
}

/// What candidates on this backend set by default.
pub(crate) fn options(global: &Global) -> Result<Options, Failure> {
    #[cfg(feature = "nats")]
    if let Some(config) = nats_config(global)? {
        return Ok(config.profile().options());
    }
    let _ = global;
    Ok(Options::default())
}

/// What the URL says, where it is one of NATS servers.
#[cfg(feature = "nats")]
pub(crate) fn nats_config(global: &Global) -> Result<Option<bellwether::nats::Config>, Failure> {
    match named(global)? {
        Some(url) if url.starts_with("nats:") || url.starts_with("tls:") => {
            Ok(Some(bellwether::nats::Config::from_url(&url)?))
        }
        _ => Ok(None),
    }
}

/// The URL that was given, if one was.
fn named(global: &Global) -> Result<Option<String>, Failure> {
    if let Some(dsn) = dsn(global)? {
        return Ok(Some(dsn));
    }
    match (&global.backend, &global.backend_file) {
        (Some(url), _) => Ok(Some(url.clone())),
        (None, Some(file)) => {
            let read = std::fs::read_to_string(file).map_err(|error| {
                usage(format!("cannot read the backend's URL from {}: {error}", file.display()))
            })?;
            Ok(Some(read.trim().to_owned()))
        }
        (None, None) => Ok(None),
    }
}

/// What `--dsn` names, or `PG_DSN` where nothing else names a backend.
fn dsn(global: &Global) -> Result<Option<String>, Failure> {
    let mut flags = std::env::args_os().take_while(|argument| argument != "--");
    let named = |flag: &OsStr| flag.as_encoded_bytes().starts_with(b"--backend");
    match &global.postgres.dsn {
        Some(_) if flags.any(|flag| named(&flag)) => {
            Err(usage("--dsn and --backend both name where the election is held: give one".to_owned()))
        }
        Some(dsn) => Ok(Some(dsn.clone())),
        None if global.backend.is_some() || global.backend_file.is_some() => Ok(None),
        None => Ok(std::env::var("PG_DSN").ok().filter(|dsn| !dsn.is_empty())),
    }
}

#[cfg(feature = "postgres")]
fn postgres(global: &Global, url: &str) -> Result<Store, Failure> {
    use bellwether::postgres::{Config, Environment, Keys, from_config};
    let mut config = Config::from_url_in(url, &Environment::from_env()).map_err(bellwether::Error::from)?;
    if let (Some(one), Some(two)) = (global.postgres.key1, global.postgres.key2) {
        config = config.only_keys(Keys(one, two));
    }
    Ok(Store::from(from_config(config, std::sync::Arc::new(bellwether::SystemClock))))
}

#[cfg(not(feature = "postgres"))]
fn postgres(_: &Global, _: &str) -> Result<Store, Failure> {
    Err(usage(format!("no backend \"postgres\" in this build: there are {}", known().join(", "))))
}

/// What to write instead of something without a scheme.
fn no_url(given: &str) -> Failure {
    let sentence = "that is not a backend's URL";
    if given.is_empty() {
        return usage(format!("the backend's URL is empty: write one of {}", known().join(", ")));
    }
    if let Some(meant) = known().iter().find(|url| url.split(':').next() == Some(given)) {
        return usage(format!("{sentence}: write it like {meant}"));
    }
    if given.starts_with(['/', '.', '~']) || std::path::Path::new(given).is_dir() {
        return usage(format!("{sentence}: for a directory, write file:{given}"));
    }
    // It may be a secret in the wrong place, so it is not repeated.
    usage(format!("{sentence}: write one of {}", known().join(", ")))
}

fn default_directory() -> Result<PathBuf, Failure> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = variable("XDG_STATE_HOME").or_else(|| variable("HOME").map(|home| home.join(".local/state")));
    let state = state.ok_or_else(|| {
        usage("there is no home directory to keep elections in: name one with --backend file:DIR".to_owned())
    })?;
    Ok(state.join("bellwether"))
}

fn known() -> Vec<&'static str> {
    let mut all = vec!["memory:"];
    if cfg!(feature = "file") {
        all.push("file:DIR");
    }
    if cfg!(feature = "postgres") {
        all.push("postgres://…");
    }
    if cfg!(feature = "nats") {
        all.push("nats://…");
    }
    all
}

fn usage(sentence: String) -> Failure {
    Failure::new(Exit::Usage, sentence).about_backend()
}
