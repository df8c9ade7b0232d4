//! Starting up: from nothing to leading on the file backend, to the command's first words, and what the program weighs.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use bellwether::boot_now;
use bellwether_benches::{median, percentile, report};
use bellwether_tests::{Candidate, bellwether};

const ROUNDS: usize = 20;
const LEADING_MAX: Duration = Duration::from_millis(30);

/// The words of the command, as an event line among those of `bellwether`.
const COMMAND: [&str; 3] = ["/bin/sh", "-c", r#"echo '{"event":"said","boot_ns":0}'; exec sleep 1000"#];

/// From before the start of the process to `acquired`, by its own word, and to the command's first words, as read here.
fn start(directory: &Path) -> (Duration, Duration) {
    let mut command = Command::new(bellwether());
    command.arg("--backend").arg(format!("file:{}", directory.display()));
    command.args(["--id", "a", "run", "job", "--events", "--"]).args(COMMAND);
    let before = boot_now();
    let mut candidate = Candidate::start(command);
    candidate.expect("said");
    let said = boot_now();
    let acquired = candidate.heard("acquired").boot();
    candidate.signal(rustix::process::Signal::TERM);
    assert_eq!(candidate.ended().code, Some(0));
    (acquired.since(before), said.since(before))
}

fn version() -> Duration {
    let mut command = Command::new(bellwether());
    command.arg("--version").stdout(Stdio::null());
    let before = boot_now();
    let status = command.status().expect("it starts");
    let took = boot_now().since(before);
    assert!(status.success());
    took
}

fn main() {
    let size = std::fs::metadata(bellwether()).expect("the command").len();
    report("size of the bellwether command", &format!("{:.1} MB", size as f64 / 1e6), "");
    report("size without debug information", &stripped(), "");
    let versions: Vec<Duration> = (0..ROUNDS).map(|_| version()).collect();
    report(&format!("--version, median of {ROUNDS}"), &format!("{:.1?}", median(versions)), "");
    // A store that has been used, and one that has to be made.
    for fresh in [true, false] {
        let used = tempfile::tempdir().expect("a temporary directory");
        let (leading, saying): (Vec<_>, Vec<_>) = (0..ROUNDS)
            .map(|round| {
                let place =
                    if fresh { used.path().join(round.to_string()) } else { used.path().join("store") };
                start(&place)
            })
            .unzip();
        let store = if fresh { "new store" } else { "used store" };
        let (middle, most) = (median(leading.clone()), percentile(leading, 0.99));
        let wanted = format!("less than {LEADING_MAX:?}");
        report(&format!("start to leading, {store}, median of {ROUNDS}"), &format!("{middle:.1?}"), &wanted);
        report(&format!("start to leading, {store}, p99"), &format!("{most:.1?}"), "");
        report(
            &format!("start to the command's first words, {store}, median"),
            &format!("{:.1?}", median(saying)),
            "",
        );
        assert!(middle < LEADING_MAX, "{middle:?} from start to leading");
    }
}

/// The size that packages have.
fn stripped() -> String {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let copy = directory.path().join("bellwether");
    // Not on every machine.
    let _ = Command::new("strip").arg("-o").arg(&copy).arg(bellwether()).stderr(Stdio::null()).status();
    let size = std::fs::metadata(copy).ok();
    size.map_or_else(|| "unknown".to_owned(), |found| format!("{:.1} MB", found.len() as f64 / 1e6))
}
