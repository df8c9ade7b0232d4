//! Passwords in a backend's URL: nobody who does not need one gets to see it.
//!
//! What the user starts through us (COMMAND, hooks, health checks) inherits our environment without the variables of ours that
//! hold a password, whether or not we used them ourselves. Variables that others read too (`PG_DSN`, `PGPASSWORD`) are the
//! user's and are handed on. A password on the command line works, and causes a warning.

use bellwether::Scheme;

/// The prefix of the variables that only `bellwether` reads.
const OURS: &str = "BELLWETHER_";

/// The variables of ours that hold a password: what is started through us must not inherit them.
pub(crate) fn variables() -> impl Iterator<Item = String> {
    std::env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok().filter(|name| name.starts_with(OURS))?;
        Scheme::has_secret(&value.to_string_lossy()).then_some(name)
    })
}

/// Warns about a password that every process list shows.
pub(crate) fn warn_of_password(url: &str) {
    if Scheme::has_secret(url) && std::env::args_os().any(|argument| argument.to_string_lossy().contains(url))
    {
        tracing::warn!(
            "the password on the command line shows in every process list; put the URL into a file (--backend-file) \
             or into BELLWETHER_BACKEND"
        );
    }
}
