//! libpq's password file: lines of `HOST:PORT:DATABASE:USER:PASSWORD`, of which the first that fits counts. `*` fits everything, and
//! a backslash takes the next character as it is.
//!
//! It is read for every connection, so that a changed password counts. As libpq does, a file that others can read is left
//! alone, with a warning.

use std::path::Path;

/// What a line has to fit.
pub(crate) struct Login<'a> {
    pub(crate) host: &'a str,
    pub(crate) port: u16,
    pub(crate) database: &'a str,
    pub(crate) user: &'a str,
}

/// Where Debian's and the distributions' servers have their socket; libpq calls these `localhost` in the file.
const SOCKETS: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// The password for that login, if the file has one.
pub(crate) fn password(file: &Path, login: &Login<'_>) -> Option<String> {
    let found = std::fs::metadata(file).ok()?;
    if !found.is_file() {
        tracing::warn!("the password file {} is no plain file and is not read", file.display());
        return None;
    }
    if others_can_read(&found) {
        tracing::warn!(
            "others can read the password file {}, so it is not used: chmod 600 it",
            file.display()
        );
        return None;
    }
    match std::fs::read_to_string(file) {
        Ok(text) => find(&text, login),
        Err(error) => {
            tracing::warn!("the password file {} cannot be read: {error}", file.display());
            None
        }
    }
}

#[cfg(unix)]
fn others_can_read(found: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    found.permissions().mode() & 0o077 != 0
}

#[cfg(not(unix))]
fn others_can_read(_: &std::fs::Metadata) -> bool {
    false
}

pub(crate) fn find(text: &str, login: &Login<'_>) -> Option<String> {
    let host = if SOCKETS.contains(&login.host) { "localhost" } else { login.host };
    let port = login.port.to_string();
    let wanted = [host, &port, login.database, login.user];
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = fields(line);
        let [fits @ .., password] = &fields[..] else { return None };
        let fit = fits.len() == wanted.len()
            && fits.iter().zip(wanted).all(|((field, whole), wanted)| *whole == "*" || field == wanted);
        (fit && !password.0.is_empty()).then(|| password.0.clone())
    })
}

/// The fields without their backslashes, each with what is written. Colons in the password count only behind a backslash, too.
fn fields(line: &str) -> Vec<(String, &str)> {
    let (mut fields, mut field, mut start) = (Vec::new(), String::new(), 0);
    let mut characters = line.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => field.extend(characters.next().map(|(_, next)| next)),
            ':' => {
                fields.push((std::mem::take(&mut field), &line[start..at]));
                start = at + 1;
            }
            other => field.push(other),
        }
    }
    fields.push((field, &line[start..]));
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_fits_counts() {
        let text = "# db:5432:app:me:comment\n\
                    db:5433:*:*:by port\n\
                    db:*:app:me:it\\:s \\\\ me\n\
                    localhost:*:*:*:by socket\n\
                    \\*:*:*:*:a star\n\
                    too:few:fields\n\
                    *:*:*:me:last";
        let at = |host: &str, port: u16, user: &str| find(text, &Login { host, port, database: "app", user });
        assert_eq!(at("db", 5433, "anybody").as_deref(), Some("by port"));
        assert_eq!(at("db", 5432, "me").as_deref(), Some("it:s \\ me"));
        assert_eq!(at("/var/run/postgresql", 5432, "anybody").as_deref(), Some("by socket"));
        assert_eq!(at("*", 5432, "anybody").as_deref(), Some("a star"));
        assert_eq!(at("elsewhere", 5432, "me").as_deref(), Some("last"));
        assert_eq!(at("elsewhere", 5432, "anybody"), None);
    }
}
