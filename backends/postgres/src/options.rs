//! The options of a connection, by libpq's names for them: those of a URL or of `name=value` text first, then whatever fills the
//! gaps. What Bellwether knows itself is taken out, and the rest is the driver's.

use std::collections::BTreeMap;

use bellwether_backend::url::unescape;
use bellwether_core::StoreError;

use crate::config::bad;

/// Options by name. Of one that is given twice the last counts.
#[derive(Default)]
pub(crate) struct ConnectionOptions(BTreeMap<String, String>);

impl ConnectionOptions {
    pub(crate) fn of(text: &str) -> Result<ConnectionOptions, StoreError> {
        let bare = text.strip_prefix("postgresql:").or_else(|| text.strip_prefix("postgres:"));
        let text = bare.filter(|rest| !rest.starts_with("//")).unwrap_or(text);
        match text.split_once("://") {
            // A value may have the look of a URL, as a password can; then its name stands before it.
            Some((scheme, rest)) if !scheme.contains('=') => ConnectionOptions::of_url(rest),
            _ => ConnectionOptions::of_pairs(text),
        }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    /// Sets an option that is not set yet.
    pub(crate) fn fill(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.0.entry(name.to_owned()).or_insert_with(|| value.to_owned());
        }
    }

    /// All that is left, as the driver reads it.
    pub(crate) fn for_driver(&self) -> String {
        let quoted = |value: &String| value.replace('\\', "\\\\").replace('\'', "\\'");
        self.0.iter().map(|(name, value)| format!("{name}='{}' ", quoted(value))).collect()
    }

    fn put(&mut self, name: &str, value: String) {
        if !value.is_empty() {
            self.0.insert(name.to_owned(), value);
        }
    }

    /// `USER:PASSWORD@HOST:PORT,HOST:PORT/DATABASE?NAME=VALUE&…`, each part of it optional.
    fn of_url(rest: &str) -> Result<ConnectionOptions, StoreError> {
        let mut options = ConnectionOptions::default();
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        for (name, value) in [("user", user), ("password", password), ("dbname", database)] {
            options.put(name, decoded(name, value)?);
        }
        let (mut names, mut ports) = (Vec::new(), Vec::new());
        for place in hosts.split(',') {
            let (name, port) = host_and_port(place)?;
            names.push(decoded("the host", name)?);
            ports.push(port);
        }
        options.put("host", names.join(","));
        if ports.iter().any(|port| !port.is_empty()) {
            options.put("port", ports.join(","));
        }
        for part in query.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part
                .split_once('=')
                .ok_or_else(|| bad(format!("{part} of the URL has no value: write {part}=VALUE")))?;
            options.put(name, decoded(name, value)?);
        }
        Ok(options)
    }

    /// `name = value`, where a value with spaces is quoted, and a backslash takes the next character as it is.
    fn of_pairs(text: &str) -> Result<ConnectionOptions, StoreError> {
        let mut options = ConnectionOptions::default();
        let mut left = text.trim_start();
        while !left.is_empty() {
            let (name, after) = left
                .split_once('=')
                .ok_or_else(|| bad("the connection string is not made of name=value".to_owned()))?;
            let (value, after) = value(after.trim_start())?;
            options.put(name.trim(), value);
            left = after.trim_start();
        }
        Ok(options)
    }
}

fn decoded(name: &str, value: &str) -> Result<String, StoreError> {
    unescape(value)
        .ok_or_else(|| bad(format!("the % in {name} of the URL is not followed by two hexadecimal digits")))
}

/// An address of IPv6 is in brackets.
fn host_and_port(place: &str) -> Result<(&str, &str), StoreError> {
    let unclosed = || bad(format!("{place} in the URL is no host: write an IPv6 address as [::1]:5432"));
    match place.strip_prefix('[') {
        Some(rest) => {
            let (name, port) = rest.split_once(']').ok_or_else(unclosed)?;
            Ok((name, port.strip_prefix(':').unwrap_or(port)))
        }
        None => Ok(place.split_once(':').unwrap_or((place, ""))),
    }
}

/// The value at the beginning, and what comes after it.
fn value(text: &str) -> Result<(String, &str), StoreError> {
    let quoted = text.starts_with('\'');
    let mut found = String::new();
    let mut characters = text.char_indices().skip(usize::from(quoted));
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => found.extend(characters.next().map(|(_, next)| next)),
            '\'' if quoted => return Ok((found, &text[at + 1..])),
            space if !quoted && space.is_whitespace() => return Ok((found, &text[at..])),
            other => found.push(other),
        }
    }
    if quoted {
        return Err(bad("a quote in the connection string is not closed".to_owned()));
    }
    Ok((found, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_taken_out_of_either_form() {
        let mut of_url = ConnectionOptions::of(
            "postgres://u:a%20b@h/d?key1=-5&connect_timeout=3&sslrootcert=%2fa%20b.pem&key1=6",
        )
        .unwrap();
        assert_eq!(of_url.take("sslrootcert").as_deref(), Some("/a b.pem"));
        assert_eq!(of_url.take("key1").as_deref(), Some("6"));
        assert_eq!(of_url.take("key1"), None);
        let rest = "connect_timeout='3' dbname='d' host='h' password='a b' user='u' ";
        assert_eq!(of_url.for_driver(), rest);
        let mut of_pairs =
            ConnectionOptions::of(r"host = h user='it\'s \\' sslmode=verify-full sslkey='/a b' dbname=d\ d")
                .unwrap();
        assert_eq!(of_pairs.take("sslmode").as_deref(), Some("verify-full"));
        assert_eq!(of_pairs.take("sslkey").as_deref(), Some("/a b"));
        assert_eq!(of_pairs.for_driver(), r"dbname='d d' host='h' user='it\'s \\' ");
        let with_scheme = ConnectionOptions::of("postgres:host=h key1=5 key1=6").unwrap();
        assert_eq!(with_scheme.for_driver(), "host='h' key1='6' ");
        assert_eq!(ConnectionOptions::of("postgresql:").unwrap().for_driver(), "");
    }

    #[test]
    fn a_value_that_looks_like_a_url_makes_none_of_the_pairs_around_it() {
        for text in ["host=h password=a://b", "postgres:host=h password=a://b"] {
            let options = ConnectionOptions::of(text).unwrap();
            assert_eq!(options.for_driver(), "host='h' password='a://b' ", "{text}");
        }
    }

    #[test]
    fn hosts_of_a_url_keep_their_ports_and_gaps_are_filled() {
        for (url, host, port) in [
            ("postgres://h/d", "h", None),
            ("postgres://a:1,b,[::1]:3/d", "a,b,::1", Some("1,,3")),
            ("postgres://u@%2Frun%2Fpostgresql:5433/d", "/run/postgresql", Some("5433")),
        ] {
            let mut options = ConnectionOptions::of(url).unwrap();
            options.fill("host", "other");
            options.fill("user", "other");
            options.fill("dbname", "");
            assert_eq!(options.take("host").as_deref(), Some(host), "{url}");
            assert_eq!(options.take("port").as_deref(), port, "{url}");
            assert!(options.has("user") && options.has("dbname"), "{url}");
        }
        let mut none = ConnectionOptions::of("postgres:///d").unwrap();
        none.fill("host", "other");
        assert_eq!(none.take("host").as_deref(), Some("other"));
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        for text in
            ["host", "user='x", "postgres://h/d?sslkey=%zz", "postgres://h/d?sslkey", "postgres://[::1/d"]
        {
            assert!(ConnectionOptions::of(text).is_err(), "{text}");
        }
    }
}
