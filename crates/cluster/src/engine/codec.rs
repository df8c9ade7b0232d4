//! How a value is stored: a format byte, the value, and a checksum.
//!
//! The checksum covers the place of the value too. So a value that a disk returns in place of another one is noticed, and not only one
//! whose bits have changed.

use serde::Serialize;
use serde::de::DeserializeOwned;
use twox_hash::XxHash3_64;

/// The format of every value. A program that finds another one does not guess.
const FORMAT: u8 = 1;
const CHECKSUM_BYTES: usize = 8;

/// The bytes to store for `value` at `place`.
pub(super) fn seal(place: u64, value: &impl Serialize) -> Result<Vec<u8>, Unreadable> {
    let bytes = postcard::to_extend(value, vec![FORMAT]);
    let mut bytes = bytes.map_err(|error| Unreadable(format!("it cannot be encoded: {error}")))?;
    bytes.extend_from_slice(&checksum(place, &bytes).to_le_bytes());
    Ok(bytes)
}

/// The value that was stored at `place`.
pub(super) fn unseal<T: DeserializeOwned>(place: u64, sealed: &[u8]) -> Result<T, Unreadable> {
    let split = sealed.len().checked_sub(CHECKSUM_BYTES).filter(|length| *length > 0);
    let (bytes, stored) =
        sealed.split_at(split.ok_or_else(|| Unreadable(format!("it has only {} bytes", sealed.len())))?);
    if stored != checksum(place, bytes).to_le_bytes() {
        return Err(Unreadable("its checksum is wrong".to_owned()));
    }
    match bytes {
        [FORMAT, value @ ..] => decode(value),
        _ => Err(Unreadable(format!("it has format {}, and this program knows {FORMAT}", bytes[0]))),
    }
}

/// A value without format and checksum, with nothing behind it.
pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Unreadable> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok((_, rest)) => Err(Unreadable(format!("{} bytes follow it", rest.len()))),
        Err(error) => Err(Unreadable(error.to_string())),
    }
}

/// Equal in every process and on every machine.
pub(super) fn checksum(seed: u64, bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(seed, bytes)
}

/// Why bytes are not the value that they should be.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable(pub(super) String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_read_only_where_it_was_stored_and_only_if_no_bit_has_changed() {
        let sealed = seal(7, &"abc").unwrap();
        assert_eq!(unseal::<String>(7, &sealed).unwrap(), "abc");
        assert!(unseal::<String>(8, &sealed).is_err());
        for bit in 0..sealed.len() * 8 {
            let mut flipped = sealed.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(unseal::<String>(7, &flipped).is_err(), "bit {bit}");
        }
        for length in 0..sealed.len() {
            assert!(unseal::<String>(7, &sealed[..length]).is_err(), "{length} bytes");
        }
    }
}
