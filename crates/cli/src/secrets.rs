//! Passwords in a backend's URL: nobody who does not need one gets to see it.
//!
//! What the user starts through us (COMMAND, hooks, health checks) inherits our environment without the variables of ours that
//! hold a password, whether or not we used them ourselves. Variables that others read too (`PG_DSN`, `PGPASSWORD`) are the
//! user's and are handed on. A password on the command line works, and causes a warning.

/// The prefix of the variables that only `bellwether` reads.
const OURS: &str = "BELLWETHER_";

/// The variables of ours that hold a password: what is started through us must not inherit them.
pub(crate) fn variables() -> impl Iterator<Item = String> {
    std::env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok().filter(|name| name.starts_with(OURS))?;
        has_password(&value.to_string_lossy()).then_some(name)
    })
}

/// Warns about a password that every process list shows.
pub(crate) fn warn_of_password(url: &str) {
    if has_password(url) && std::env::args_os().any(|argument| argument.to_string_lossy().contains(url)) {
        tracing::warn!(
            "the password on the command line shows in every process list; put the URL into a file (--backend-file) \
             or into BELLWETHER_BACKEND"
        );
    }
}

/// Whether this URL, or libpq's `host=… password=…`, has a password in it. When in doubt it has: an unescaped slash may be
/// part of one.
fn has_password(url: &str) -> bool {
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    let user = rest.split('?').next().and_then(|place| place.rsplit_once('@')).map(|(user, _)| user);
    // A user without a password is a token to NATS servers.
    let token = matches!(scheme, "nats" | "tls");
    let named = || url.split_whitespace().collect::<String>().contains("password=");
    user.is_some_and(|user| token || user.contains(':')) || named()
}

#[cfg(test)]
mod tests {
    use super::has_password;

    #[test]
    fn passwords_are_found_wherever_a_url_may_have_one() {
        for url in [
            "postgres://me:s3cret@host/db",
            "postgres://me:s3/cret@host/db",
            "postgres://me@host/db?password=s3cret",
            "host=db user=me password = s3cret",
            "nats://t0ken@host:4222",
            "nats://me:s3cret@one:4222,two:4222?bucket=b",
            "anything://me:s3cret@host",
        ] {
            assert!(has_password(url), "{url}");
        }
    }

    #[test]
    fn urls_without_one_are_handed_on() {
        for url in [
            "",
            "memory:",
            "file:/srv/a@b:c",
            "postgres://me@host:5432/db",
            "host=db user=me passfile=/etc/pass",
            "nats://host:4222?creds=/etc/me@home.creds",
        ] {
            assert!(!has_password(url), "{url}");
        }
    }
}
