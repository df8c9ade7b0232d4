//! From flags to a store.

use std::path::PathBuf;

use bellwether::{ElectionName, Options, Scheme, Settings, Store};

use crate::args::{Global, PostgresFlags};
use crate::exit::{Exit, Failure};
use crate::secrets;

/// The URL of the backend that flags, environment and defaults name.
pub(crate) fn url(global: &Global) -> Result<String, Failure> {
    let given = [global.postgres.server(), global.backend.as_deref()];
    given.into_iter().flatten().for_each(secrets::warn_of_password);
    match named(global)? {
        Some(url) => Ok(url),
        None => Ok(format!("file:{}", default_directory()?.display())),
    }
}

/// Connects to it.
pub(crate) fn connect(global: &Global) -> Result<Store, Failure> {
    let url = global.postgres.with_keys(url(global)?).map_err(usage)?;
    Ok(bellwether::open(&url)?)
}

/// The options that candidates on this backend start from. Opens nothing.
pub(crate) fn options(global: &Global) -> Result<Options, Failure> {
    let Some(url) = named(global)? else { return Ok(Options::default()) };
    match Scheme::of(&url) {
        Some(scheme) if scheme.is_built_in() => Ok(scheme.default_options(&url)?),
        _ => Ok(Options::default()),
    }
}

/// What to say about a ttl that the store does not keep as it was asked for.
pub(crate) fn rounded_ttl(asked: &Options, settings: &Settings) -> Option<String> {
    let (asked, kept) = (asked.timing.ttl, settings.timing().ttl());
    let print = bellwether::duration::print;
    (asked != kept).then(|| format!("a ttl of {} counts as {} on this store", print(asked), print(kept)))
}

/// The election, for what is done to one.
pub(crate) fn election(global: &Global, named: Option<&ElectionName>) -> Result<ElectionName, Failure> {
    election_named(global, named)?.ok_or_else(|| {
        let sentence = "name the election: any name, the same for all who compete";
        usage(format!("{sentence} (only --key1 and --key2 together can stand for it)"))
    })
}

/// The election that is named, or the one that other flags stand for.
pub(crate) fn election_named(
    global: &Global,
    named: Option<&ElectionName>,
) -> Result<Option<ElectionName>, Failure> {
    let of_flags = global.postgres.election().map_err(bellwether::Error::from)?;
    Ok(named.cloned().or(of_flags))
}

/// For commands that show all elections of a store unless some are named.
pub(crate) fn can_list(store: &Store) -> Result<(), Failure> {
    let backend = store.backend();
    if backend.capabilities().lists {
        return Ok(());
    }
    let sentence = format!("the {} store cannot list its elections: name one", backend.name());
    Err(Failure::new(Exit::Usage, sentence))
}

/// The URL that was given, if one was.
fn named(global: &Global) -> Result<Option<String>, Failure> {
    if let Some(dsn) = global.postgres.server() {
        return Ok(Some(PostgresFlags::url(dsn)));
    }
    match (&global.backend, &global.backend_file) {
        (Some(url), _) => Ok(Some(url.clone())),
        (None, Some(file)) => {
            let read = std::fs::read_to_string(file).map_err(|error| {
                usage(format!("cannot read the backend's URL from {}: {error}", file.display()))
            })?;
            Ok(Some(read.trim().to_owned()))
        }
        (None, None) => Ok(PostgresFlags::server_of_environment().map(|dsn| PostgresFlags::url(&dsn))),
    }
}

fn default_directory() -> Result<PathBuf, Failure> {
    state_directory().ok_or_else(|| {
        usage("there is no home directory to keep elections in: name one with --backend file:DIR".to_owned())
    })
}

/// Where the state of this user's programs is kept, and ours in it.
pub(crate) fn state_directory() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = variable("XDG_STATE_HOME").or_else(|| variable("HOME").map(|home| home.join(".local/state")));
    Some(state?.join("bellwether"))
}

fn usage(sentence: String) -> Failure {
    Failure::new(Exit::Usage, sentence).about_backend()
}
