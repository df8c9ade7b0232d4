//! What `bellwether explain` promises.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::{bellwether, run_to_end};

/// The bounds for one set of timings.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// From a crash or a silence to the next leader.
    pub failover: Duration,
    /// From the end of any trouble of the store to the next leader.
    pub recovery: Duration,
    /// From the end of a leader's belief to the earliest takeover.
    pub margin: Duration,
}

impl Bounds {
    /// Those for this ttl.
    pub fn explained(ttl: &str) -> Bounds {
        let mut command = Command::new(bellwether());
        command.args(["explain", "--ttl", ttl, "-o", "json"]);
        let output = run_to_end(command);
        let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let ms = |field: &str| {
            let ms = json[field].as_f64().unwrap_or_else(|| panic!("explain has no {field}: {json}"));
            Duration::from_secs_f64(ms / 1_000.0)
        };
        Bounds {
            failover: ms("failover_ms"),
            recovery: ms("recovery_ms"),
            margin: ms("takeover_ms") - ms("deadline_ms"),
        }
    }
}
