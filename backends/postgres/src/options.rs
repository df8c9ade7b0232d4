//! The options of a URL or of libpq's `name=value` text that the driver does not know, taken out of it.

use bellwether_core::Error;

use crate::config::bad;
use crate::names::unescape;

/// What is read here and not by the driver.
const OURS: [&str; 8] = ["key1", "key2", "schema", "sslmode", "sslrootcert", "sslcert", "sslkey", "watch"];

/// What is left for the driver, and what was taken out. Of an option that is there twice the last counts.
#[derive(Debug, Default)]
pub(crate) struct Options {
    pub(crate) rest: String,
    ours: Vec<(String, String)>,
}

impl Options {
    pub(crate) fn of(text: &str) -> Result<Options, Error> {
        if text.contains("://") { Options::of_url(text) } else { Options::of_pairs(text) }
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<String> {
        let mut value = None;
        self.ours.retain(|(other, found)| {
            let is = other == name;
            if is {
                value = Some(found.clone());
            }
            !is
        });
        value
    }

    fn of_url(url: &str) -> Result<Options, Error> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut options, mut rest) = (Options::default(), Vec::new());
        for part in query.split('&').filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                Some((name, value)) if OURS.contains(&name) => {
                    let value = unescape(value).ok_or_else(|| {
                        bad(format!("the % in {name} of the URL is not followed by two hexadecimal digits"))
                    })?;
                    options.ours.push((name.to_owned(), value));
                }
                _ => rest.push(part),
            }
        }
        options.rest = if rest.is_empty() { base.to_owned() } else { format!("{base}?{}", rest.join("&")) };
        Ok(options)
    }

    /// `name = value`, where a value with spaces is quoted, and a backslash takes the next character as it is.
    fn of_pairs(text: &str) -> Result<Options, Error> {
        let mut options = Options::default();
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

    /// As from the text; what is not ours goes to the driver.
    pub(crate) fn put(&mut self, name: &str, value: String) {
        if OURS.contains(&name) {
            self.ours.push((name.to_owned(), value));
        } else {
            let quoted = value.replace('\\', "\\\\").replace('\'', "\\'");
            self.rest.push_str(&format!("{name}='{quoted}' "));
        }
    }
}

/// The value at the beginning, and what comes after it.
fn value(text: &str) -> Result<(String, &str), Error> {
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
        let mut of_url =
            Options::of("postgres://u@h/d?key1=-5&connect_timeout=3&sslrootcert=%2fa%20b.pem&key1=6")
                .unwrap();
        assert_eq!(of_url.rest, "postgres://u@h/d?connect_timeout=3");
        assert_eq!(of_url.take("sslrootcert").as_deref(), Some("/a b.pem"));
        assert_eq!(of_url.take("key1").as_deref(), Some("6"));
        assert_eq!(of_url.take("key1"), None);
        let mut of_pairs =
            Options::of(r"host = h user='it\'s \\' sslmode=verify-full sslkey='/a b' dbname=d\ d").unwrap();
        assert_eq!(of_pairs.rest, r"host='h' user='it\'s \\' dbname='d d' ");
        assert_eq!(of_pairs.take("sslmode").as_deref(), Some("verify-full"));
        assert_eq!(of_pairs.take("sslkey").as_deref(), Some("/a b"));
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        for text in ["host", "user='x", "postgres://h/d?sslkey=%zz"] {
            assert!(Options::of(text).is_err(), "{text}");
        }
    }
}
