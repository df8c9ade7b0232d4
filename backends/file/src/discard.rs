//! Taking an election out of the store, records, floor and all.
//!
//! Only for elections that were made to measure the store, under a name that never comes back: with the floor goes the
//! knowledge of which epochs were issued. One that is held is left alone. Leaves the store's own directory, and the
//! place of the floors in it, as any first claim makes them.

use std::path::Path;

use bellwether_backend::Discarded;
use bellwether_core::{ElectionName, Error};
use rustix::io::Errno;

use crate::cell::look;
use crate::directory::Directory;
use crate::errors::meaning;
use crate::floor::FLOORS;
use crate::names::file_name;
use crate::numbered::Numbered;

pub(crate) fn discard(root: &Path, on: &ElectionName) -> Result<Discarded, Error> {
    let name = file_name(on.as_str());
    let dir = root.join(&name);
    if look(&Numbered::new(&dir, ""))?.is_some_and(|(read, _)| read.record.is_held()) {
        return Ok(Discarded::Remains(format!("{}, which is held", dir.display())));
    }
    for gone in [&dir, &root.join(FLOORS).join(&name)] {
        match std::fs::remove_dir_all(gone) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                let errno = error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error);
                return Err(meaning("remove", gone, errno));
            }
            _ => {}
        }
    }
    // Not removed even if empty: a candidate that starts at this moment may be about to use it.
    let ours = |name: &String| matches!(name.as_str(), "." | ".." | FLOORS);
    let names = Directory::open(root).and_then(|root| root.names()).unwrap_or_default();
    if names.contains(&FLOORS.to_owned()) && names.iter().all(ours) {
        return Ok(Discarded::Remains(format!(
            "the directory {} without any election in it",
            root.display()
        )));
    }
    Ok(Discarded::Gone)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::sync::Arc;

    use super::*;
    use bellwether_backend::{Record, Register, Write};
    use bellwether_core::{CandidateId, Epoch, Holder, Incarnation};

    #[tokio::test]
    async fn a_held_election_stays_and_a_released_one_goes_with_its_floor() {
        let root = std::env::temp_dir().join(format!("bellwether-discard-{}", std::process::id()));
        let register = crate::FileRegister::new(&root).unwrap();
        let on = ElectionName::new("Scratch").unwrap();
        let holder =
            Holder { id: CandidateId::new("a").unwrap(), incarnation: Some(Incarnation::from_bits(1)) };
        let held = Record { holder: Some(holder), epoch: Epoch::new(1), ..Record::default() };
        let Write::Done(version) = register.write(&on, None, &held).await else { panic!("not written") };
        let left = register.danger_discard(&on).await.unwrap();
        assert!(matches!(&left, Discarded::Remains(what) if what.contains("held")), "{left:?}");
        let free = Record { holder: None, ..held };
        let Write::Done(_) = register.write(&on, Some(&version), &free).await else { panic!("not written") };
        let left = register.danger_discard(&on).await.unwrap();
        assert!(matches!(&left, Discarded::Remains(what) if what.contains("without any")), "{left:?}");
        assert_eq!(register.elections().await.unwrap(), []);
        assert_eq!(std::fs::read_dir(root.join(FLOORS)).unwrap().count(), 0);
        drop(Arc::new(register));
        std::fs::remove_dir_all(&root).unwrap();
    }
}
