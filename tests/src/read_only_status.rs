//! `status` writes nothing to a store.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use bellwether_support::servers::kubernetes::{self, ADMIN, LIMITED, Request};
use bellwether_support::servers::nats::{Server, Version};
use bellwether_support::until;
use serde_json::{Value, json};

use crate::{Candidate, bellwether, run_to_end};

/// Everything about a file but when it was last read.
type Traits = (Vec<u8>, u64, u32, i64, i64, i64, i64);

/// Runs `bellwether status` so many times, in each of its forms in turn, on a store with a leader's record in it, and
/// returns the files that are not as they were: none.
pub fn untouched_by_status(times: usize) -> Vec<PathBuf> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    // Killed, so that nobody else changes anything, and its record is there.
    let mut leader = Candidate::on_file(directory.path(), "job", "a", &["--ttl", "1s"]);
    leader.expect("acquired");
    leader.kill();
    let before = traits(directory.path());
    assert!(before.len() > 1, "no record: {before:?}");
    look(&format!("file:{}", directory.path().display()), times);
    let after = traits(directory.path());
    let all = before.keys().chain(after.keys());
    all.filter(|path| before.get(*path) != after.get(*path)).cloned().collect()
}

/// As [`untouched_by_status`] on a bucket of a NATS server: the number of its last write before and after.
pub fn unwritten_by_status(times: usize) -> (u64, u64) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let server = runtime.block_on(Server::start(Version::Current));
    let url = format!("{}?create=yes", server.url());
    let mut command = Command::new(bellwether());
    command.args(["--backend", &url, "--id", "a", "run", "job", "--events", "--ttl", "1s"]);
    let mut leader = Candidate::start(command);
    leader.expect("acquired");
    leader.kill();
    let last = || runtime.block_on(server.last_sequence("bellwether"));
    let before = last();
    assert!(before > 0, "no record");
    look(&url, times);
    (before, last())
}

/// As [`untouched_by_status`] on a Lease, in a namespace of its own and by a user of its own, who may do everything there: the
/// Lease's resource version before and after, and what that user asked for, by the API server's audit log, other than to read.
pub async fn unwritten_lease_by_status(
    server: &kubernetes::Server,
    times: usize,
) -> (String, String, Vec<Request>) {
    const NAMESPACE: &str = "looked-at";
    const USER: &str = LIMITED[3];
    server.namespace(NAMESPACE).await;
    let binding = json!({
        "metadata": { "name": USER },
        "subjects": [{ "kind": "User", "name": USER }],
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
    });
    let bindings = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings");
    server.api("POST", &bindings, binding).await;
    let mut command = Command::new(bellwether());
    command.args(["--backend", &server.backend(ADMIN, NAMESPACE), "--id", "a"]);
    command.args(["run", "job", "--events", "--ttl", "1s"]);
    let mut leader = Candidate::start(command);
    leader.expect("acquired");
    leader.kill();
    let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases");
    until(|| async {
        match server.asked(USER, "GET", &leases, None).await {
            Ok(answer) if answer.status == 200 => Ok(()),
            other => Err(format!("{USER} may not read yet: {other:?}")),
        }
    })
    .await;
    let version = async || {
        let lease = server.api("GET", &format!("{leases}/job"), Value::Null).await;
        lease["metadata"]["resourceVersion"].as_str().expect("a version").to_owned()
    };
    let before = version().await;
    look(&server.backend(USER, NAMESPACE), times);
    let after = version().await;
    let asked: Vec<Request> = server.requests().into_iter().filter(|request| request.user == USER).collect();
    assert!(asked.len() > times, "only {} requests in the audit log", asked.len());
    let reads = |request: &Request| matches!(request.verb.as_str(), "get" | "list" | "watch");
    (before, after, asked.into_iter().filter(|request| !reads(request)).collect())
}

fn look(url: &str, times: usize) {
    let forms: [&[&str]; 4] =
        [&["status", "job"], &["status", "job", "-o", "json"], &["status"], &["status", "other"]];
    for form in forms.iter().cycle().take(times) {
        let mut command = Command::new(bellwether());
        command.args(["--backend", url]).args(*form);
        let code = run_to_end(command).status.code();
        assert!(matches!(code, Some(0 | 1)), "{form:?} ended with {code:?}");
    }
}

fn traits(directory: &Path) -> BTreeMap<PathBuf, Traits> {
    let mut all = BTreeMap::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(path) = waiting.pop() {
        let found = fs::symlink_metadata(&path).expect("nothing vanishes");
        let mut bytes = Vec::new();
        if found.is_dir() {
            let entries = fs::read_dir(&path).expect("a directory");
            waiting.extend(entries.map(|entry| entry.expect("an entry").path()));
        } else if found.is_file() {
            bytes = fs::read(&path).expect("a file");
        }
        let changed = (found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec());
        let (mtime, mtime_ns, ctime, ctime_ns) = changed;
        all.insert(path, (bytes, found.ino(), found.mode(), mtime, mtime_ns, ctime, ctime_ns));
    }
    all
}
