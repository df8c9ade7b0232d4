//! What is kept beside an election: past leaderships, until when an id stays away, and create-once notes.
//!
//! All are annotations of a Lease of their own, `<name>.notes`: they grow, and must not weigh on every renewal. Each is compared by itself, so
//! that writing one does not disturb another. No leadership depends on them: a user who may not read them takes part all the same. A create-once note
//! stays when its election is discarded, and the Lease with it.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use bellwether_backend::{FoundNote, Note, Write};
use bellwether_core::{ElectionName, ErrorKind, StoreError};

use crate::lease_object::LeaseObject;
use crate::names;
use crate::register::LeaseStore;

const HISTORY: &str = "bellwether/history";
const COOLDOWN: &str = "bellwether/cooldown.";
pub(crate) const ONCE: &str = "bellwether/once";
/// Cooldowns that are kept: every pod has an id of its own, and none comes back.
const COOLDOWNS_MAX: usize = 32;
/// How often a write that others overtook is tried again.
const TRIES: usize = 4;
const CONFLICT: u16 = 409;

fn key(note: &Note) -> String {
    match note {
        Note::History => HISTORY.to_owned(),
        Note::Cooldown(id) => format!("{COOLDOWN}{}", names::id(id)),
        Note::Once => ONCE.to_owned(),
    }
}

/// What a note is compared by: its content, since the Lease's own version changes with every other note.
fn version(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

impl LeaseStore {
    async fn notes(&self, on: &ElectionName) -> Result<Option<LeaseObject>, StoreError> {
        let object = self.get(&names::notes(on)).await?;
        if let Some(object) = &object {
            object.check_election(on)?;
        }
        Ok(object)
    }

    pub(crate) async fn read_note(&self, on: &ElectionName, note: &Note) -> Result<FoundNote, StoreError> {
        let found = match self.notes(on).await {
            Err(error)
                if error.kind() == ErrorKind::PermissionDenied && matches!(note, Note::Cooldown(_)) =>
            {
                tracing::debug!(%error, "a cooldown cannot be looked up");
                None
            }
            found => found?,
        };
        let text = found.as_ref().and_then(|object| object.metadata.annotations.get(&key(note)));
        Ok(text.map(|text| (text.clone().into_bytes(), version(text))))
    }

    pub(crate) async fn write_note(
        &self,
        on: &ElectionName,
        note: &Note,
        at: Option<u64>,
        text: &str,
    ) -> Result<Write<u64>, StoreError> {
        let (name, key) = (names::notes(on), key(note));
        for _ in 0..TRIES {
            let found = self.notes(on).await?;
            let is_new = found.is_none();
            let mut object = found.unwrap_or_else(|| LeaseObject::new(&name, on));
            let annotations = &mut object.metadata.annotations;
            if annotations.get(&key).map(|before| version(before)) != at {
                return Ok(Write::Conflict);
            }
            annotations.insert(&key, text.to_owned());
            forget_oldest(&mut object);
            let written = if is_new { self.post(&object).await } else { self.put(&object, "").await };
            match written {
                Ok(_) => return Ok(Write::Done(version(text))),
                Err(failure) if failure.is(CONFLICT) => {}
                Err(failure) => return Err(failure.error(&format!("write the Lease {name}"))),
            }
        }
        Ok(Write::Conflict)
    }
}

/// Those whose time is longest over go first: what they say is decimal milliseconds.
fn forget_oldest(object: &mut LeaseObject) {
    let annotations = &mut object.metadata.annotations;
    let mut cooldowns: Vec<(u64, String)> = annotations
        .iter()
        .filter(|(key, _)| key.starts_with(COOLDOWN))
        .map(|(key, until)| (until.parse().unwrap_or(0), key.to_owned()))
        .collect();
    cooldowns.sort();
    let surplus = cooldowns.len().saturating_sub(COOLDOWNS_MAX);
    for (_, key) in &cooldowns[..surplus] {
        annotations.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use bellwether_core::CandidateId;

    use super::*;

    #[test]
    fn cooldowns_do_not_pile_up() {
        let on = ElectionName::new("a").unwrap();
        let mut object = LeaseObject::new("a.notes", &on);
        object.metadata.annotations.insert(HISTORY, "[]".into());
        for at in 0..COOLDOWNS_MAX + 3 {
            let note = Note::Cooldown(CandidateId::new(format!("pod-{at}")).unwrap());
            object.metadata.annotations.insert(&key(&note), (1_000 + at).to_string());
        }
        forget_oldest(&mut object);
        let annotations = &object.metadata.annotations;
        let kept: Vec<&str> =
            annotations.iter().map(|(key, _)| key).filter(|key| key.starts_with(COOLDOWN)).collect();
        assert_eq!(kept.len(), COOLDOWNS_MAX);
        let is_kept = |pod: &str| kept.contains(&format!("{COOLDOWN}{pod}").as_str());
        assert!(!is_kept("pod-2") && is_kept("pod-3"));
        assert!(annotations.get(HISTORY).is_some(), "past leaderships are never forgotten here");
    }
}
