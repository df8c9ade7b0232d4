//! From a URL to a store.

use std::path::PathBuf;

use bellwether::{Options, Store};

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
    let Some((scheme, _)) = url.split_once(':') else {
        // What was given may be a secret in the wrong place, so it is not repeated.
        return Err(usage("that is not a backend's URL: write it like file:DIR or memory:".to_owned()));
    };
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
        _ => Err(usage(format!("no backend {scheme:?} in this build: there are {}", known().join(", ")))),
    }
}

/// What candidates on this backend set by default.
pub(crate) fn options(global: &Global) -> Result<Options, Failure> {
    match named(global)? {
        #[cfg(feature = "nats")]
        Some(url) if url.starts_with("nats:") || url.starts_with("tls:") => {
            Ok(bellwether::nats_options(&url)?)
        }
        _ => Ok(Options::default()),
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
    let mut flags = std::env::args().take_while(|argument| argument != "--");
    let named = |flag: &str| flag.starts_with("--backend");
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
    use bellwether::postgres::{Config, Keys, Postgres};
    let mut config = Config::from_url(url).map_err(bellwether::Error::from)?;
    if let (Some(one), Some(two)) = (global.postgres.key1, global.postgres.key2) {
        config = config.only_keys(Keys(one, two));
    }
    Ok(Store::from(Postgres::new(config, std::sync::Arc::new(bellwether::SystemClock))))
}

#[cfg(not(feature = "postgres"))]
fn postgres(_: &Global, _: &str) -> Result<Store, Failure> {
    Err(usage(format!("no backend \"postgres\" in this build: there are {}", known().join(", "))))
}

/// This candidate's id.
pub(crate) fn id(global: &Global) -> String {
    let pod = || std::env::var("POD_NAME").ok().filter(|id| !id.is_empty());
    global.id.clone().or_else(pod).unwrap_or_else(|| {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname")
            .ok()
            .map(|name| name.trim().to_owned())
            .filter(|name| !name.is_empty())
            .or_else(|| std::env::var("HOSTNAME").ok());
        format!("{}-{}", host.as_deref().unwrap_or("host"), std::process::id())
    })
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
    Failure::new(Exit::Usage, sentence)
}
