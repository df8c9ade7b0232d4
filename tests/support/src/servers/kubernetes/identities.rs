//! Who the API server knows: users with tokens, and kubeconfig files for them.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;

use super::certificates;

/// The user who may do everything.
pub const ADMIN: &str = "admin";

/// Users who may do nothing but what a test permits them by roles.
pub const LIMITED: [&str; 4] = ["limited-1", "limited-2", "limited-3", "limited-4"];

pub(super) fn write(dir: &Path) {
    let mut lines = format!("{},{ADMIN},{ADMIN},system:masters\n", token(ADMIN));
    for user in LIMITED {
        lines += &format!("{},{user},{user}\n", token(user));
    }
    std::fs::write(dir.join("tokens.csv"), lines).expect("a scratch directory is writable");
}

pub(super) fn flags(dir: &Path) -> [String; 1] {
    [format!("--token-auth-file={}", dir.join("tokens.csv").display())]
}

pub(super) fn token(user: &str) -> String {
    format!("token-of-{user}")
}

pub(super) fn kubeconfig(dir: &Path, user: &str, url: &str) -> PathBuf {
    assert!(user == ADMIN || LIMITED.contains(&user), "the server knows no {user}");
    kubeconfig_with(dir, user, &token(user), url)
}

/// A new file each time, as JSON, which is YAML.
pub(super) fn kubeconfig_with(dir: &Path, user: &str, token: &str, url: &str) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "contexts": [{ "name": "test", "context": { "cluster": "test", "user": user } }],
        "clusters": [{
            "name": "test",
            "cluster": { "server": url, "certificate-authority": certificates::ca(dir) },
        }],
        "users": [{ "name": user, "user": { "token": token } }],
    });
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let file = dir.join(format!("kubeconfig-{user}-{count}"));
    std::fs::write(&file, config.to_string()).expect("a scratch directory is writable");
    file
}
