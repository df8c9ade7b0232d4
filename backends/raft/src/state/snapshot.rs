//! The state as bytes: a format byte, then the state in postcard, every map in the order of its keys. Equal states give equal bytes.

use std::collections::BTreeMap;

use bellwether_cluster::CorruptSnapshot;
use bellwether_core::ElectionName;
use serde::{Deserialize, Serialize};

use super::State;
use super::election::Election;
use super::events::Events;
use super::session::Session;
use crate::command::SessionId;
use crate::wire;

/// The first byte of every snapshot.
const FORMAT: u8 = 1;

#[derive(Serialize)]
struct Stored<'a> {
    revision: u64,
    sessions: &'a BTreeMap<SessionId, Session>,
    #[serde(with = "stored_map")]
    elections: &'a BTreeMap<ElectionName, Election>,
    #[serde(with = "stored_map")]
    notes: &'a BTreeMap<ElectionName, Vec<u8>>,
}

#[derive(Deserialize)]
struct Restored {
    revision: u64,
    sessions: BTreeMap<SessionId, Session>,
    #[serde(with = "wire::map")]
    elections: BTreeMap<ElectionName, Election>,
    #[serde(with = "wire::map")]
    notes: BTreeMap<ElectionName, Vec<u8>>,
}

impl State {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let State { revision, sessions, elections, notes, nonces: _, waiting: _, pasts: _, events: _ } = self;
        let stored = Stored { revision: *revision, sessions, elections, notes };
        postcard::to_extend(&stored, vec![FORMAT]).expect("the state has nothing that postcard cannot write")
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Result<State, CorruptSnapshot> {
        let corrupt = |why: &str| CorruptSnapshot(format!("the state of the elections: {why}"));
        let [FORMAT, rest @ ..] = bytes else {
            return Err(corrupt("it has a format that this program does not know"));
        };
        let restored = match postcard::take_from_bytes::<Restored>(rest) {
            Ok((restored, [])) => restored,
            Ok(_) => return Err(corrupt("something follows it")),
            Err(error) => return Err(corrupt(&error.to_string())),
        };
        let Restored { revision, mut sessions, elections, notes } = restored;
        for (on, election) in &elections {
            for id in election.sessions() {
                let session = sessions.get_mut(&id);
                let session = session.ok_or_else(|| corrupt("a candidate has a session that is not open"))?;
                session.elections.insert(on.clone());
            }
        }
        let state = State {
            revision,
            nonces: sessions.iter().map(|(id, session)| (session.nonce, *id)).collect(),
            waiting: elections.values().map(Election::queue_length).sum(),
            pasts: elections.values().map(|election| election.history.len()).sum(),
            events: Events::from(revision),
            sessions,
            elections,
            notes,
        };
        // One state has one sequence of bytes.
        if state.to_bytes() != bytes { Err(corrupt("it is not in the one order")) } else { Ok(state) }
    }
}

mod stored_map {
    use std::collections::BTreeMap;

    use serde::{Serialize, Serializer};

    use crate::wire::{self, Wire};

    pub(super) fn serialize<K: Wire, V: Serialize, S: Serializer>(
        map: &&BTreeMap<K, V>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        wire::map::serialize(map, to)
    }
}
