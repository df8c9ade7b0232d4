//! The token that a request which changes something has to show.

use std::fmt;
use std::io::Read;
use std::path::Path;

use axum::http::{HeaderMap, header};
use subtle::ConstantTimeEq;

use crate::AgentError;

/// A secret that clients send as `Authorization: Bearer TOKEN`.
#[derive(Clone)]
pub struct Token(Vec<u8>);

/// A shorter one can be guessed.
const MIN_BYTES: usize = 16;
/// A longer one fits into no header.
const MAX_BYTES: usize = 4 * 1024;

impl Token {
    /// Reads it from the first line of a file, without the white space around it.
    ///
    /// # Errors
    /// When the file cannot be read, or does not hold a token.
    pub fn from_file(file: &Path) -> Result<Token, AgentError> {
        let mut bytes = Vec::new();
        let opened = std::fs::File::open(file);
        let read = opened.and_then(|opened| opened.take(2 * MAX_BYTES as u64).read_to_end(&mut bytes));
        read.map_err(|error| {
            AgentError::new(format!("the token cannot be read from {}: {error}", file.display()))
        })?;
        warn_if_others_may_read(file);
        Token::parse(&bytes).map_err(|why| AgentError::new(format!("the token in {} {why}", file.display())))
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Token, String> {
        let text = bytes.trim_ascii();
        if text.len() < MIN_BYTES {
            let sentence =
                "is too short: write at least 16 characters, such as the output of `openssl rand -hex 32`";
            return Err(sentence.to_owned());
        }
        if text.len() > MAX_BYTES {
            return Err(format!("is too long: at most {MAX_BYTES} characters"));
        }
        if !text.iter().all(u8::is_ascii_graphic) {
            return Err("must be one line of letters, digits and punctuation, without spaces".to_owned());
        }
        Ok(Token(text.to_vec()))
    }

    /// Whether the request shows it. Takes as long for a wrong token as for the right one of the same length.
    pub(crate) fn is_shown_by(&self, headers: &HeaderMap) -> bool {
        let shown =
            headers.get(header::AUTHORIZATION).map(axum::http::HeaderValue::as_bytes).unwrap_or_default();
        let Some((scheme, shown)) = shown.split_at_checked("Bearer ".len()) else { return false };
        scheme.eq_ignore_ascii_case(b"Bearer ") && bool::from(self.0.ct_eq(shown.trim_ascii()))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

fn warn_if_others_may_read(file: &Path) {
    use std::os::unix::fs::MetadataExt;
    let others = std::fs::metadata(file).is_ok_and(|about| about.is_file() && about.mode() & 0o007 != 0);
    if others {
        tracing::warn!("every user of this machine may read the token in {}: chmod o-rwx it", file.display());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shows(authorization: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, authorization.parse().unwrap());
        Token::parse(b"0123456789abcdef\n").unwrap().is_shown_by(&headers)
    }

    #[test]
    fn only_the_whole_token_counts() {
        assert!(shows("Bearer 0123456789abcdef") && shows("bearer 0123456789abcdef"));
        for wrong in [
            "Bearer 0123456789abcdeF",
            "Bearer 0123456789abcde",
            "Bearer 0123456789abcdef0",
            "Bearer ",
            "Bearer",
            "Basic 0123456789abcdef",
            "0123456789abcdef",
        ] {
            assert!(!shows(wrong), "{wrong}");
        }
        assert!(!Token::parse(b"0123456789abcdef").unwrap().is_shown_by(&HeaderMap::new()));
    }

    #[test]
    fn what_is_no_token_is_refused() {
        for text in ["", "short", "two words that are long", "línea con letras", &"x".repeat(MAX_BYTES + 1)]
        {
            assert!(Token::parse(text.as_bytes()).is_err(), "{text}");
        }
        assert_eq!(format!("{:?}", Token::parse(b"0123456789abcdef").unwrap()), "Token(…)");
    }
}
