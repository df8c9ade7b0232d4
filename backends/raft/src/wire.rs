//! How the types of `core`, which knows no serde, are written: checked again whenever they are read.

use bellwether_core::{Candidate, CandidateId, ElectionName, Epoch, Incarnation, Wall};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A type of `core` and the plain value that stands for it.
pub(crate) trait Wire: Sized {
    /// What is written.
    type Plain: Serialize + DeserializeOwned;
    fn to_plain(&self) -> Self::Plain;
    fn from_plain(plain: Self::Plain) -> Result<Self, String>;
}

macro_rules! text {
    ($($type:ty),*) => {$(
        impl Wire for $type {
            type Plain = String;
            fn to_plain(&self) -> String {
                self.as_str().to_owned()
            }
            fn from_plain(plain: String) -> Result<$type, String> {
                <$type>::new(plain).map_err(|error| error.to_string())
            }
        }
    )*};
}

text!(ElectionName, CandidateId);

impl Wire for Epoch {
    type Plain = u64;
    fn to_plain(&self) -> u64 {
        self.get()
    }
    fn from_plain(plain: u64) -> Result<Epoch, String> {
        Epoch::new(plain).ok_or_else(|| format!("{plain} is no epoch"))
    }
}

impl Wire for Incarnation {
    type Plain = u128;
    fn to_plain(&self) -> u128 {
        self.bits()
    }
    fn from_plain(plain: u128) -> Result<Incarnation, String> {
        Ok(Incarnation::from_bits(plain))
    }
}

impl Wire for Wall {
    type Plain = i64;
    fn to_plain(&self) -> i64 {
        self.as_unix_nanos()
    }
    fn from_plain(plain: i64) -> Result<Wall, String> {
        Ok(Wall::from_unix_nanos(plain))
    }
}

impl Wire for Candidate {
    type Plain = (String, u128);
    fn to_plain(&self) -> (String, u128) {
        (self.id.to_plain(), self.incarnation.to_plain())
    }
    fn from_plain((id, incarnation): (String, u128)) -> Result<Candidate, String> {
        Ok(Candidate { id: Wire::from_plain(id)?, incarnation: Wire::from_plain(incarnation)? })
    }
}

impl<T: Wire> Wire for Option<T> {
    type Plain = Option<T::Plain>;
    fn to_plain(&self) -> Option<T::Plain> {
        self.as_ref().map(T::to_plain)
    }
    fn from_plain(plain: Option<T::Plain>) -> Result<Option<T>, String> {
        plain.map(T::from_plain).transpose()
    }
}

/// For `#[serde(with = "wire")]`.
pub(crate) fn serialize<T: Wire, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
    value.to_plain().serialize(to)
}

/// For `#[serde(with = "wire")]`.
pub(crate) fn deserialize<'de, T: Wire, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    T::from_plain(T::Plain::deserialize(from)?).map_err(D::Error::custom)
}

/// For `#[serde(with = "wire::map")]`: a map whose keys serde does not know, as pairs in ascending order.
pub(crate) mod map {
    use std::collections::BTreeMap;

    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Wire;

    pub(crate) fn serialize<K: Wire, V: Serialize, S: Serializer>(
        map: &BTreeMap<K, V>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(map.iter().map(|(key, value)| (key.to_plain(), value)))
    }

    pub(crate) fn deserialize<'de, K: Wire + Ord, V: Deserialize<'de>, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<K, V>, D::Error> {
        let mut map = BTreeMap::new();
        for (key, value) in Vec::<(K::Plain, V)>::deserialize(from)? {
            let key = K::from_plain(key).map_err(D::Error::custom)?;
            // One state has one sequence of bytes.
            if map.last_key_value().is_some_and(|(last, _)| *last >= key) {
                return Err(D::Error::custom("the keys are not in ascending order"));
            }
            map.insert(key, value);
        }
        Ok(map)
    }
}
