//! What fuzzing asks of what HTTP brings in. Each function takes any bytes, and panics where a promise is broken; `fuzz` has the list.

use axum::http::{HeaderMap, HeaderValue, header};
use serde_json::Value;

use crate::endpoints::campaign::{ends_with_process, number};
use crate::endpoints::step_down::successor;
use crate::{Address, Token};

/// What a client sends: a body, the id of a campaign in a path, or a token.
pub fn http_request(bytes: &[u8]) {
    campaign(bytes);
    step_down(bytes);
    shown(bytes);
}

/// The body of `POST /campaign`, and the id that it is answered with.
fn campaign(bytes: &[u8]) {
    if ends_with_process(bytes) == Ok(true) {
        let json: Value = serde_json::from_slice(bytes).expect("only JSON says so");
        assert_eq!(json["ends_with_process"], Value::Bool(true));
    }
    if let Some(id) = std::str::from_utf8(bytes).ok().and_then(number) {
        assert!(bytes.eq_ignore_ascii_case(format!("{id:032x}").as_bytes()));
    }
}

/// The body of `POST /step-down`: nobody is named whose name the body does not have.
fn step_down(bytes: &[u8]) {
    match successor(bytes) {
        Ok(Some(id)) => {
            let json: Value = serde_json::from_slice(bytes).expect("only JSON names somebody");
            assert_eq!(json["to"].as_str(), Some(id.as_str()));
        }
        Ok(None) => assert!(bytes.trim_ascii().is_empty() || serde_json::from_slice::<Value>(bytes).is_ok()),
        Err(sentence) => assert!(!sentence.is_empty() && sentence.len() < 400, "{sentence}"),
    }
}

/// A token in a file, and the header that shows it: whatever is not the whole token is refused.
fn shown(bytes: &[u8]) {
    let Ok(token) = Token::parse(bytes) else { return };
    let text = bytes.trim_ascii();
    let shows = |shown: &[u8]| {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_bytes(&[b"Bearer ", shown].concat()).expect("printable");
        headers.insert(header::AUTHORIZATION, value);
        token.is_shown_by(&headers)
    };
    assert!(shows(text), "what was read is what has to be shown");
    assert!(!shows(&text[1..]) && !shows(&text[..text.len() - 1]) && !shows(&[text, b"x"].concat()));
    assert!(!token.is_shown_by(&HeaderMap::new()));
}

/// Where to listen: on loopback, unless a host is named.
pub fn http_address(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(address) = Address::parse(text) else { return };
    let printed = address.to_string();
    assert_eq!(Address::parse(&printed).ok().as_ref(), Some(&address), "{printed}");
    if text.trim_start_matches(':').bytes().all(|byte| byte.is_ascii_digit()) {
        assert!(printed.starts_with("127.0.0.1:"), "{printed}");
    }
}
