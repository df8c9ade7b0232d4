//! Names of elections and ids of candidates as names of directories and files.
//!
//! Owns the mapping, which is part of the format on disk and never changes:
//!
//! - A name of `a-z 0-9 . _ -` that does not start with a dot and has at most 100 bytes is used as it is.
//! - Any other becomes a readable prefix, a `~`, and 16 hexadecimal digits: the 64-bit FNV-1a hash of the
//!   name's UTF-8 bytes. The prefix is the name's first 40 characters, in lower case, with everything outside
//!   the alphabet (and a dot at the start) turned into `-`.
//!
//! Upper-case letters take the second form, because on a file system that ignores case `Reports` and `reports`
//! would be one directory, and two elections would have one leader between them. For the same reason
//! nothing outside ASCII is used as it is: some file systems store such names in another spelling.
//! The two forms cannot meet, since `~` is not in the alphabet.
//!
//! FNV-1a resists accidents, not attackers: who can choose names of elections can make two of them meet in
//! one directory. Leaves to the caller to compare the full name that is in the record.

use bellwether_backend::names::shortened;

/// Longest name used as it is, in bytes: with a prefix, a number and a suffix it stays below the 143 bytes
/// that the strictest file system in common use allows.
const PLAIN_MAX_BYTES: usize = 100;

/// The file-system name for an election's name or a candidate's id: at most 100 bytes, never `.` or `..`,
/// never hidden, without separators.
pub fn file_name(name: &str) -> String {
    let plain = name.len() <= PLAIN_MAX_BYTES
        && !name.is_empty()
        && !name.starts_with('.')
        && name.chars().all(in_alphabet);
    if plain {
        return name.to_owned();
    }
    let spell = |c: char| if in_alphabet(c.to_ascii_lowercase()) { c.to_ascii_lowercase() } else { '-' };
    let mut short = shortened(name, '~', spell);
    if short.starts_with('.') {
        short.replace_range(..1, "-");
    }
    short
}

fn in_alphabet(c: char) -> bool {
    matches!(c, 'a'..='z' | '0'..='9' | '.' | '_' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_names_stay_readable_as_they_are() {
        for name in ["reports", "a", "job-7.prod_eu", &"x".repeat(100)] {
            assert_eq!(file_name(name), name);
        }
    }

    #[test]
    fn this_mapping_is_on_disk_and_never_changes() {
        assert_eq!(file_name("Reports"), "reports~884bcdca26998a48");
        assert_eq!(file_name("a/b"), "a-b~e620c3190468cf61");
        assert_eq!(file_name(".."), "-.~07da1a07b4a03f2d");
        assert_eq!(file_name("foobar "), "foobar-~3452fca7168b58d8");
    }

    #[test]
    fn odd_names_are_safe_and_distinct() {
        let long = "x".repeat(253);
        let longer = format!("{}y", "x".repeat(252));
        let odd =
            ["..", ".", ".x", "a/b", "a-b", "A-b", "a b", "*", "naïve №1", "🐑", "~", &long, &longer, "x~1"];
        let mapped: Vec<String> = odd.iter().map(|name| file_name(name)).collect();
        for (at, name) in mapped.iter().enumerate() {
            assert!(name.len() <= 100 && !name.starts_with('.') && !name.contains('/'), "{name}");
            assert!(name.is_ascii() && !name.contains(char::is_uppercase), "{name}");
            assert!(!mapped[..at].contains(name), "{name} twice");
        }
    }
}
