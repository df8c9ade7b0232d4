//! Names that do not fit a store's alphabet.
//!
//! Owns the part that is the same in every store, and part of what lies in them, so that it never changes: a readable prefix,
//! a mark that is not in the alphabet of names that fit, and 16 hexadecimal digits, the 64-bit FNV-1a hash of the name's
//! UTF-8 bytes. FNV-1a resists accidents, not attackers: who can choose names can make two of them meet. So the full name is
//! in the record, and whoever reads compares it.

/// Enough of the name for a human to recognise it.
const PREFIX_MAX_CHARS: usize = 40;

/// Prefix, mark, hash. `spell` turns a character into one of the store's alphabet.
pub fn shortened(name: &str, mark: char, spell: impl Fn(char) -> char) -> String {
    let prefix: String = name.chars().take(PREFIX_MAX_CHARS).map(spell).collect();
    format!("{prefix}{mark}{:016x}", fnv1a(name.as_bytes()))
}

/// FNV-1a, 64 bits: offset basis 0xcbf29ce484222325, prime 0x100000001b3.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        for (text, hash) in
            [("", 0xcbf29ce484222325), ("a", 0xaf63dc4c8601ec8c), ("foobar", 0x85944171f73967e8u64)]
        {
            assert_eq!(fnv1a(text.as_bytes()), hash, "{text}");
        }
    }
}
