//! Taking an election out of the store.
//!
//! Only for elections that were made to measure the store, under a name that never comes back. One that is held is left
//! alone, and so is every file that Bellwether did not write, with the directory that it is in. Leaves the store's own
//! directory, and the place of the markers in it, as any first claim makes them, and names the one that was made since the
//! store was opened.

use std::path::{Path, PathBuf};

use bellwether_backend::Discarded;
use bellwether_core::{ElectionName, StoreError};
use rustix::fs::{AtFlags, CWD};
use rustix::io::Errno;

use crate::directory::{Directory, is_empty};
use crate::election::{look, records};
use crate::errors::meaning;
use crate::liveness::incarnation_of;
use crate::marker::{MARKERS, Marker};
use crate::names::file_name;
use crate::numbered::number;
use crate::sweep::is_temporary;
use crate::value::{Ours, Value};
use crate::{notes, value};

/// The directories that the first claim in this store will make.
pub(crate) fn missing(root: &Path) -> Vec<PathBuf> {
    [root.to_owned(), root.join(MARKERS)].into_iter().filter(|dir| !dir.exists()).collect()
}

/// `missing` are the directories that were not there when the store was opened.
pub(crate) fn discard(root: &Path, missing: &[PathBuf], on: &ElectionName) -> Result<Discarded, StoreError> {
    let name = file_name(on.as_str());
    let dir = root.join(&name);
    if look(&records(&dir))?.is_some_and(|(read, _)| read.record.is_held()) {
        return Ok(Discarded::Remains(format!("{}, which is held", dir.display())));
    }
    match clear(&dir).and_then(|()| Marker::new(root, &name).remove()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(Errno::NOTEMPTY | Errno::EXIST) => {
            let what = "with files in it that Bellwether did not write";
            return Ok(Discarded::Remains(format!("{}, {what}", dir.display())));
        }
        Err(errno) => return Err(meaning("remove", &dir, errno)),
    }
    // Not removed even if empty: a candidate that starts at this moment may be about to use it.
    let is_without_elections = |dir: &&PathBuf| {
        let names = Directory::open(dir).and_then(|dir| dir.names());
        names.is_ok_and(|names| {
            names.iter().all(|name| matches!(name.as_str(), "." | ".." | MARKERS | notes::ONCE))
        })
    };
    if let Some(made) = missing.iter().find(is_without_elections) {
        return Ok(Discarded::Remains(format!(
            "the directory {} without any election in it",
            made.display()
        )));
    }
    Ok(Discarded::Gone)
}

/// Removes what is ours, and the directory if nothing else was in it.
fn clear(dir: &Path) -> Result<(), Errno> {
    let opened = Directory::open(dir)?;
    for name in opened.names()? {
        if is_ours(&opened, &name)? {
            opened.remove(&name)?;
        }
    }
    rustix::fs::unlinkat(CWD, dir, AtFlags::REMOVEDIR)
}

fn is_ours(dir: &Directory, name: &str) -> Result<bool, Errno> {
    if incarnation_of(name).is_some() {
        return Ok(is_empty(dir, name));
    }
    let lease = name.strip_suffix(".json").and_then(number).map(|_| value::is_record as Ours);
    let Some(ours) = lease.or_else(|| notes::ours(name)).or(is_temporary(name).then_some(value::is_record))
    else {
        return Ok(false);
    };
    Ok(match dir.read(name)? {
        Some((_, Value::Bytes(bytes))) => ours(&bytes) || is_temporary(name) && bytes.is_empty(),
        _ => false,
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;

    use super::*;
    use bellwether_backend::{Record, Register, Write};
    use bellwether_core::{CandidateId, Epoch, Holder, Incarnation};

    #[tokio::test]
    async fn a_held_election_stays_and_a_released_one_goes_but_for_what_others_wrote() {
        let root = std::env::temp_dir().join(format!("bellwether-discard-{}", std::process::id()));
        let register =
            crate::FileRegister::new(&root, std::sync::Arc::new(bellwether_deadman::SystemClock)).unwrap();
        let on = ElectionName::new("Scratch").unwrap();
        let holder =
            Holder { id: CandidateId::new("a").unwrap(), incarnation: Some(Incarnation::from_bits(1)) };
        let held = Record { holder: Some(holder), epoch: Some(Epoch::MAX), ..Record::default() };
        let Write::Done(version) = register.write(&on, None, &held).await else { panic!("not written") };
        let left = register.danger_discard(&on).await.unwrap();
        assert!(matches!(&left, Discarded::Remains(what) if what.contains("held")), "{left:?}");
        let free = Record { holder: None, ..held };
        let Write::Done(_) = register.write(&on, Some(&version), &free).await else { panic!("not written") };

        let theirs = root.join(file_name("Scratch")).join("history.1.json");
        fs::write(&theirs, "[\"theirs\"]").unwrap();
        let left = register.danger_discard(&on).await.unwrap();
        assert!(matches!(&left, Discarded::Remains(what) if what.contains("did not write")), "{left:?}");
        assert_eq!(fs::read_to_string(&theirs).unwrap(), "[\"theirs\"]");
        fs::remove_file(theirs).unwrap();

        let left = register.danger_discard(&on).await.unwrap();
        assert!(matches!(&left, Discarded::Remains(what) if what.contains("without any")), "{left:?}");
        assert_eq!(register.elections().await.unwrap(), []);
        assert_eq!(fs::read_dir(root.join(MARKERS)).unwrap().count(), 0);
        fs::remove_dir_all(&root).unwrap();
    }
}
