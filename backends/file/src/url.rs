//! `file:DIR`, as people write it on a command line.
//!
//! `file:/abs` and `file:///abs` are the same; a relative DIR is taken from the working directory. The rest is the path as it
//! stands, with nothing decoded: what the shell completes is what is meant, and a `%` is a `%`.

use std::path::{Path, PathBuf};

use bellwether_core::{ErrorKind, StoreError};

use crate::errors::BACKEND;

/// The directory that a `file:` URL means.
pub fn directory(url: &str) -> Result<PathBuf, StoreError> {
    let refused = |sentence: String| Err(StoreError::new(ErrorKind::InvalidInput, BACKEND, sentence));
    let Some(rest) = url.strip_prefix("file:") else {
        return refused(format!("{url:?} is not a file URL; write file:DIR"));
    };
    let path = match rest.strip_prefix("//") {
        None => rest,
        Some(path) if path.starts_with('/') => path,
        Some("") => return refused(format!("{url:?} names no directory; write file:DIR")),
        Some(host) => {
            let (host, path) = host.split_once('/').unwrap_or((host, "DIR"));
            return refused(format!(
                "{url:?} names the host {host:?}, and files are only reached on this one; write file:/{path}, or \
                 file:{host}/{path} for a path from the working directory"
            ));
        }
    };
    if path == "~" || path.starts_with("~/") {
        return refused(format!(
            "{url:?}: the shell expands ~ only at the start of a word; write file:$HOME{}",
            &path[1..]
        ));
    }
    absolute(Path::new(path))
}

/// Fixed once, so that a change of the working directory changes no election.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, StoreError> {
    if path.as_os_str().is_empty() {
        let sentence = "no directory is named; write file:DIR";
        return Err(StoreError::new(ErrorKind::InvalidInput, BACKEND, sentence));
    }
    if path.as_os_str().as_encoded_bytes().contains(&0) {
        let sentence = format!("{path:?} contains a zero byte, which no path can");
        return Err(StoreError::new(ErrorKind::InvalidInput, BACKEND, sentence));
    }
    std::path::absolute(path).map_err(|error| {
        let sentence = "the working directory cannot be told; name the directory by its whole path";
        StoreError::new(ErrorKind::Misconfigured, BACKEND, sentence).caused_by(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_directory_is_taken() {
        let here = std::env::current_dir().unwrap();
        for (url, path) in [
            ("file:/var/lib/x", PathBuf::from("/var/lib/x")),
            ("file:///var/lib/x", PathBuf::from("/var/lib/x")),
            ("file:////var/lib/x", PathBuf::from("/var/lib/x")),
            ("file:state/a b%20?c", here.join("state/a b%20?c")),
            ("file:.", here.clone()),
            ("file:./x", here.join("x")),
            ("file:x~", here.join("x~")),
        ] {
            assert_eq!(directory(url).unwrap(), path, "{url}");
        }
    }

    #[test]
    fn what_names_no_directory_here_is_refused_with_the_right_spelling() {
        for (url, part) in [
            ("file:", "write file:DIR"),
            ("file://", "write file:DIR"),
            ("file://server/srv/x", "names the host \"server\""),
            ("file://server/srv/x", "write file:/srv/x"),
            ("file://server", "names the host"),
            ("file:~/x", "$HOME/x"),
            ("file:a\0b", "zero byte"),
            ("nats://x", "not a file URL"),
        ] {
            let error = directory(url).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}
