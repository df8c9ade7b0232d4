//! What fuzzing asks of the parsers of this crate: notices, names of sessions, and libpq's texts. Each function takes any bytes, and panics
//! where a promise is broken; `fuzz` has the list.

use std::time::Duration;

use bellwether_backend::SessionNotice;

use crate::options::ConnectionOptions;
use crate::passfile::{self, Login};
use crate::{Schema, config, environment, names, notices};

/// The payload of a NOTIFY, which any role that may connect can send.
pub fn postgres_notice(bytes: &[u8]) {
    let Ok(payload) = std::str::from_utf8(bytes) else { return };
    let Some(notice) = notices::read(payload) else { return };
    let written = notices::write(&notice);
    assert!(written.len() < 8_000, "longer than the server takes: {written}");
    // Beyond what the server's numbers can say, and beyond every reservation.
    let is_endless = |span: &Duration| i64::try_from(span.as_millis()).is_err();
    match &notice {
        SessionNotice::Reserved(_, span, _) if is_endless(span) => {}
        SessionNotice::Requested(..) if written.contains(&i64::MAX.to_string()) => {}
        _ => assert_eq!(notices::read(&written).as_ref(), Some(&notice), "{written}"),
    }
}

/// `application_name`, which every session chooses for itself.
pub fn postgres_session_name(bytes: &[u8]) {
    let Ok(name) = std::str::from_utf8(bytes) else { return };
    let (id, lease) = names::read(name);
    assert!(names::is_ours(name) || (id.is_none() && lease.is_none()), "{name} is nobody's of ours");
    let written = names::write(id.as_ref(), lease);
    assert!(written.len() <= 63 && written.is_ascii(), "{written}");
    let (id_again, lease_again) = names::read(&written);
    assert!(id_again.is_none() || id_again == id);
    let millis =
        |lease: Option<names::SessionTtl>| lease.map(|lease| (names::millis(lease.ttl), lease.is_only));
    assert_eq!(millis(lease_again), millis(lease));
}

/// A URL or `name=value` text, as far as it can be read without a file.
pub fn postgres_url(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(mut options) = ConnectionOptions::of(text) else { return };
    let _ = config::keys(&mut options);
    let _ = options.take("schema").map(|name| Schema::new(&name));
    let _ = config::ssl(&mut options);
    let for_driver = options.for_driver();
    assert!(for_driver.len() <= 8 * text.len() + 8);
    let is_plain =
        |line: &str| line.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_'= ".contains(&byte));
    if is_plain(text) {
        let again = ConnectionOptions::of(&for_driver).map(|options| options.for_driver());
        assert_eq!(again.ok(), Some(for_driver.clone()));
    }
    let _ = for_driver.parse::<tokio_postgres::Config>();
}

/// A password file and a service file.
pub fn postgres_files(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let login = Login { host: "db", port: 5432, database: "app", user: "me" };
    if let Some(password) = passfile::find(text, &login) {
        assert!(!password.is_empty() && password.len() <= text.len());
        assert!(password.chars().all(|letter| text.contains(letter)));
    }
    for (name, value) in environment::section(text, "app").unwrap_or_default() {
        assert!(!name.contains(['=', '\n']) && text.contains(&name) && text.contains(&value));
    }
}
