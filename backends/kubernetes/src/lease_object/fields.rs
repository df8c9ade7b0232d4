//! The fields of an object, as they were read, in their order.
//!
//! A list rather than a map: a thousand Leases have a few annotations each, and a map makes room for eleven at once.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fields<V>(Vec<(Box<str>, V)>);

impl<V> Default for Fields<V> {
    fn default() -> Fields<V> {
        Fields(Vec::new())
    }
}

impl<V> Fields<V> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &V)> {
        self.0.iter().map(|(key, value)| (&**key, value))
    }

    pub(crate) fn get(&self, key: &str) -> Option<&V> {
        self.iter().find(|(has, _)| *has == key).map(|(_, value)| value)
    }

    pub(crate) fn insert(&mut self, key: &str, value: V) {
        match self.0.iter_mut().find(|(has, _)| **has == *key) {
            Some((_, before)) => *before = value,
            None => {
                self.0.reserve_exact(1);
                self.0.push((key.into(), value));
            }
        }
    }

    pub(crate) fn remove(&mut self, key: &str) {
        self.0.retain(|(has, _)| **has != *key);
    }
}

impl<V: Serialize> Serialize for Fields<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Fields<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Fields<V>, D::Error> {
        struct Reader<V>(PhantomData<V>);
        impl<'de, V: Deserialize<'de>> Visitor<'de> for Reader<V> {
            type Value = Fields<V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<V>, A::Error> {
                let mut fields: Vec<(Box<str>, V)> = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, V>()? {
                    fields.push((key.into_boxed_str(), value));
                }
                // What is read is kept for as long as the Lease is.
                fields.shrink_to_fit();
                let mut keys: Vec<&str> = fields.iter().map(|(key, _)| &**key).collect();
                keys.sort_unstable();
                // Of two, one would be changed by a write, and the other believed by the next reader.
                match keys.windows(2).find(|pair| pair[0] == pair[1]) {
                    Some(twice) => Err(A::Error::custom(format!("the field {:?} is there twice", twice[0]))),
                    None => Ok(Fields(fields)),
                }
            }
        }
        deserializer.deserialize_map(Reader(PhantomData))
    }
}
