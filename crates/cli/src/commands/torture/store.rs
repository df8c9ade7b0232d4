//! What is refused before anything is started, and how long a ttl is sensible.

use std::time::Duration;

use bellwether::Settings;
use bellwether::duration::print;

use crate::args::Global;
use crate::backend;
use crate::exit::{Exit, Failure};

/// The shortest ttl where nothing else is said: a busy machine holds a process up for a good part of a second.
const SHORTEST: Duration = Duration::from_secs(1);
/// Where a renewal takes several writes of the server, or is told to others late.
const SHORTEST_OF_SLOW: Duration = Duration::from_secs(2);

/// Parameters of URLs that name one election or other objects of the user's, whatever the election is called.
const NAMING: [&str; 5] = ["key1", "key2", "group", "service", "label"];

/// That candidates would be of one process, or take part in an election of the user's.
pub(super) fn refuse(global: &Global, url: &str) -> Result<(), Failure> {
    let usage = |sentence: String| Err(Failure::new(Exit::Usage, sentence).about_backend());
    if url.starts_with("memory:") {
        return usage(
            "memory: is of one process, and candidates are several: name a store with --backend".to_owned(),
        );
    }
    if global.postgres.election().map_err(bellwether::Error::from)?.is_some() {
        return usage(
            "--key1 and --key2 name an election of yours: leave them out, and torture has its own".to_owned(),
        );
    }
    match NAMING.into_iter().find(|name| is_set(url, name)) {
        Some(name) => usage(format!(
            "{name} in the backend's URL names something of yours: leave it out, and torture has its own"
        )),
        None => Ok(()),
    }
}

/// Whether a URL, or text of `name=value`, sets this.
fn is_set(url: &str, name: &str) -> bool {
    let begins = |c: char| matches!(c, '?' | '&' | ':') || c.is_whitespace();
    url.match_indices(name).any(|(at, _)| {
        url[..at].chars().next_back().is_some_and(begins)
            && url[at + name.len()..].trim_start().starts_with(['=', '&'])
    })
}

/// The ttl of the candidates: what is asked for, or the shortest that is sensible, as the store keeps it.
pub(super) fn ttl(global: &Global, url: &str, asked: Option<Duration>) -> Result<Duration, Failure> {
    let mut options = backend::options(global)?;
    let is_slow = url.starts_with("kubernetes:") || url.contains("profile=cluster");
    options.timing.ttl = asked.unwrap_or(if is_slow { SHORTEST_OF_SLOW } else { SHORTEST });
    (options.timing.renew, options.timing.retry) = (None, None);
    options.cooldown = None;
    let settings = Settings::new(options).map_err(bellwether::Error::from)?;
    let kept = settings.timing().ttl();
    match asked.filter(|asked| *asked != kept) {
        Some(asked) => {
            let sentence =
                format!("a ttl of {} counts as {} on this store: write that", print(asked), print(kept));
            Err(Failure::new(Exit::Usage, sentence))
        }
        None => Ok(kept),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_an_election_of_the_user_is_seen_in_either_form() {
        for url in [
            "postgres://h/d?key1=1&key2=2",
            "postgres:host=h key1 = 3",
            "postgres:key1=3",
            "nats://h?group=x",
        ] {
            assert!(NAMING.into_iter().any(|name| is_set(url, name)), "{url}");
        }
        for url in
            ["postgres://key1@h/group=", "nats://h?bucket=label", "file:/srv/key1=3", "kubernetes://label"]
        {
            assert!(!NAMING.into_iter().any(|name| is_set(url, name)), "{url}");
        }
        assert!(is_set("kubernetes://n?label", "label") || !is_set("kubernetes://n?label", "label"));
    }
}
