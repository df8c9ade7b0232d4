//! Options of a store's URL: what comes after the `?`, as `name=value&…`, the same in every store.

use std::time::Duration;

use bellwether_core::{ErrorKind, StoreError, duration};

/// The shortest time that an option can name.
const TIME_MIN: Duration = Duration::from_millis(10);

/// The options of a query, each with its name and its value, of which the latter may be percent-encoded. An option without `=` has an
/// empty value.
///
/// # Errors
/// For an option whose value is not encoded properly. The value is not repeated, since it may be a secret.
pub fn options<'a>(
    backend: &'static str,
    query: &'a str,
) -> impl Iterator<Item = Result<(&'a str, String), StoreError>> {
    query.split('&').filter(|option| !option.is_empty()).map(move |option| {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        Ok((name, decoded(backend, value)?))
    })
}

/// A part of a URL without its percent-encoding.
///
/// # Errors
/// When a `%` is not followed by two hexadecimal digits, or the bytes are not UTF-8.
pub fn decoded(backend: &'static str, text: &str) -> Result<String, StoreError> {
    let sentence = "a % in the URL starts two hexadecimal digits; write %25 for the sign itself";
    unescape(text).ok_or_else(|| StoreError::new(ErrorKind::InvalidInput, backend, sentence))
}

/// Text without its percent-encoding; `None` if a `%` is not followed by two hexadecimal digits, or the bytes are not UTF-8.
pub fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            // Digit by digit: a number may have a sign, and `%+f` is none.
            let mut digit = || char::from(rest.next()?).to_digit(16);
            bytes.push((digit()? << 4 | digit()?) as u8);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

/// The value of an option that is on or off; on if it has none.
///
/// # Errors
/// When it is neither.
pub fn yes_or_no(backend: &'static str, option: &str, value: &str) -> Result<bool, StoreError> {
    match value {
        "" | "yes" | "true" => Ok(true),
        "no" | "false" => Ok(false),
        _ => Err(StoreError::new(ErrorKind::InvalidInput, backend, format!("{option} is yes or no"))),
    }
}

/// The value of an option that is a time.
///
/// # Errors
/// When it is none, or too short for any network.
pub fn time(backend: &'static str, option: &str, value: &str) -> Result<Duration, StoreError> {
    let time = duration::parse(value).filter(|time| *time >= TIME_MIN);
    let sentence = || format!("{option} is a time as 500ms or 2s, at least {}", duration::print(TIME_MIN));
    time.ok_or_else(|| StoreError::new(ErrorKind::InvalidInput, backend, sentence()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_decoded_and_what_is_not_encoded_properly_is_refused_without_being_repeated() {
        let all: Vec<_> = options("test", "a=b%20c&&on&d=e=f").map(Result::unwrap).collect();
        let wanted = [("a", "b c"), ("on", ""), ("d", "e=f")];
        assert_eq!(all, wanted.map(|(name, value)| (name, value.to_owned())));
        for wrong in ["a=s3cret%", "a=s3cret%2", "a=s3cret%zz", "a=s3cret%+f", "a=s3cret%ff"] {
            let error = options("test", wrong).next().unwrap().unwrap_err();
            assert!(
                error.to_string().contains("write %25") && !error.to_string().contains("s3cret"),
                "{error}"
            );
        }
    }

    #[test]
    fn values_are_read_or_refused_with_what_to_write() {
        let is_on = |value| yes_or_no("test", "create", value).ok();
        assert_eq!(
            ["", "yes", "true", "no", "false", "2"].map(is_on),
            [Some(true), Some(true), Some(true), Some(false), Some(false), None]
        );
        assert_eq!(time("test", "ping", "500ms").unwrap(), Duration::from_millis(500));
        for wrong in ["9ms", "", "fast"] {
            let error = time("test", "ping", wrong).unwrap_err();
            assert!(error.to_string().contains("ping is a time as 500ms or 2s, at least 10ms"), "{error}");
        }
    }
}
