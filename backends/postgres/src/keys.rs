//! Which locks belong to an election.
//!
//! The name's keys are the first eight bytes, big-endian, of SHA-256 over `bellwether election`, a zero byte and the name:
//! the first four are `key1`, the others `key2`. The keys of the presence are made the same way from `bellwether presence`, a
//! zero byte and the eight bytes of the election's keys, so that elections with explicit keys have one too.

use bellwether_backend::LockKey;
use bellwether_core::ElectionName;
use sha2::{Digest, Sha256};

/// The two numbers of an advisory lock, as `pg_try_advisory_lock(key1, key2)` takes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Keys(pub i32, pub i32);

/// The first key of a session's own lock, whose second is its process id: "BWLS".
pub(crate) const SESSION_KEY: i32 = i32::from_be_bytes(*b"BWLS");

/// The first key of the lock that a second session holds, shared, on the process id of its first: "BWLB".
pub(crate) const SECOND_KEY: i32 = i32::from_be_bytes(*b"BWLB");

/// The first key of the lock of whoever follows more elections than it shows: "BWLM".
pub(crate) const MANY_KEY: i32 = i32::from_be_bytes(*b"BWLM");

impl Keys {
    /// The keys of an election without explicit ones.
    pub fn of(on: &ElectionName) -> Keys {
        Keys::hashed(b"bellwether election\0", on.as_str().as_bytes())
    }

    /// The keys of the lock that the leader's presence session holds, shared.
    pub fn presence(self) -> Keys {
        Keys::hashed(b"bellwether presence\0", &self.bytes())
    }

    /// The keys of the lock that followers hold, shared, so that they can be listed.
    pub(crate) fn follower(self) -> Keys {
        Keys::hashed(b"bellwether follower\0", &self.bytes())
    }

    /// What the lock that shows the epoch begins with: 24 bits of the election above 40 of the transaction id, in the
    /// one number of a lock with one. An election's leader holds one such lock beside the election's own.
    pub(crate) fn mark(self) -> i64 {
        let Keys(hash, _) = Keys::hashed(b"bellwether epoch\0", &self.bytes());
        // Not 0, where others' small numbers are.
        let tag = ((hash as u32) >> 8).max(1);
        (u64::from(tag) << 40) as i64
    }

    fn bytes(self) -> [u8; 8] {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&self.0.to_be_bytes());
        bytes[4..].copy_from_slice(&self.1.to_be_bytes());
        bytes
    }

    /// As the two unsigned numbers of `pg_locks` come back, put together.
    pub(crate) fn from_catalogue(class: i64, object: i64) -> Keys {
        // The catalogue shows int4 as unsigned: −5 is 4294967291.
        Keys(class as u32 as i32, object as u32 as i32)
    }

    fn hashed(domain: &[u8], content: &[u8]) -> Keys {
        let digest = Sha256::new().chain_update(domain).chain_update(content).finalize();
        let number = |from: usize| {
            i32::from_be_bytes([digest[from], digest[from + 1], digest[from + 2], digest[from + 3]])
        };
        Keys(number(0), number(4))
    }
}

impl LockKey for Keys {
    fn presence(self) -> Keys {
        Keys::presence(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_never_change_from_one_version_to_the_next() {
        let reports = Keys::of(&ElectionName::new("reports").unwrap());
        // sha256("bellwether election\0reports"), by another program.
        assert_eq!(reports, KNOWN);
        assert_ne!(reports.presence(), reports);
        assert_ne!(Keys(1, 2).presence(), Keys(2, 1).presence());
        assert_eq!(reports.mark() & ((1 << 40) - 1), 0);
    }

    const KNOWN: Keys = Keys(1955297891, 1138802702);

    #[test]
    fn negative_keys_come_back_from_the_catalogue() {
        assert_eq!(Keys::from_catalogue(4_294_967_291, 7), Keys(-5, 7));
    }
}
