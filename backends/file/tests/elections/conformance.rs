//! The suite that every backend passes, on a directory of its own.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bellwether_backend::conformance::{self, Harness};
use bellwether_backend::faults::{Faults, FaultyRegister};
use bellwether_backend::{Backend, Fut, Lease};
use bellwether_core::{Candidate, Clock, ElectionName, StoreError};
use bellwether_file::{FileRegister, file_name, open};
use bellwether_support::{Scratch, clock, crash, lead_until_killed, role};

const TEST: &str = "conformance::a_directory_conforms";

struct Files(Scratch);

impl Harness for Files {
    fn clock(&self) -> Arc<dyn Clock> {
        clock()
    }

    fn connect(&self, clock: Arc<dyn Clock>) -> Fut<'_, Result<Arc<dyn Backend>, StoreError>> {
        Box::pin(async move { Ok(Arc::new(open(self.0.path(), clock)?) as Arc<dyn Backend>) })
    }

    fn connect_faulty(
        &self,
        clock: Arc<dyn Clock>,
        faults: Faults,
    ) -> Fut<'_, Result<Arc<dyn Backend>, StoreError>> {
        Box::pin(async move {
            let register = FaultyRegister::new(FileRegister::new(self.0.path(), Arc::clone(&clock))?, faults);
            Ok(Arc::new(Lease::new(register, clock)) as Arc<dyn Backend>)
        })
    }

    /// All its records, as somebody with `rm` would. The sign of life and the marker stay.
    fn delete<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<bool, StoreError>> {
        let dir = self.0.path().join(file_name(on.as_str()));
        Box::pin(async move {
            let record = |name: &str| name.strip_suffix(".json").is_some_and(|n| n.parse::<u64>().is_ok());
            for name in crate::support::names(&dir).iter().filter(|name| record(name)) {
                fs::remove_file(dir.join(name)).unwrap();
            }
            Ok(true)
        })
    }

    /// Every name and every byte.
    fn fingerprint(&self) -> Fut<'_, Result<Option<String>, StoreError>> {
        Box::pin(async move {
            let mut all = String::new();
            describe(self.0.path(), &mut all);
            Ok(Some(all))
        })
    }

    fn crash<'a>(
        &'a self,
        on: &'a ElectionName,
        who: &'a Candidate,
        ttl: Duration,
    ) -> Fut<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            crash(TEST, self.0.path().to_str().unwrap(), on, who, ttl).await;
            Ok(true)
        })
    }
}

fn describe(dir: &Path, all: &mut String) {
    for name in crate::support::names(dir) {
        let path = dir.join(&name);
        writeln!(all, "{}", path.display()).unwrap();
        if path.is_dir() {
            describe(&path, all);
        } else {
            writeln!(all, "{}", String::from_utf8_lossy(&fs::read(&path).unwrap())).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_conforms() {
    if let Some(role) = role() {
        return lead_until_killed(&role, |dir| open(dir, clock()).unwrap()).await;
    }
    let report = conformance::run(Arc::new(Files(Scratch::new()))).await;
    println!("{report}");
    report.assert_passed();
    assert_eq!(report.skipped().count(), 0, "a directory on a disk of this machine can do everything");
}
