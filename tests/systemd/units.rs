//! The units in `deploy/systemd`: systemd understands them, they are hardened, and what they start works under what they forbid.
//!
//! There is no booted systemd here. So a test takes the command line out of the unit and starts it as systemd would: as another user, without
//! capabilities, with a filter of system calls made of the unit's own lines (`sandbox.rs`), and with a socket to be told by.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use bellwether_tests::notify::ServiceManager;
use bellwether_tests::{Candidate, OutputLines, bellwether, is_root, run_to_end, skipped};
use rustix::process::Signal;

use crate::sandbox::sandboxed;
use crate::{pings, temporary};

/// What `systemd-analyze security` may say at most, of 10: "OK". A service without any of it has 9.6.
const EXPOSURE_MAX: &str = "2.0";

fn units() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/systemd")
}

/// The lines of one setting.
pub(crate) fn settings(unit: &str, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(units().join(unit)).expect("a unit of this project");
    let values = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    values.map(str::to_owned).collect()
}

fn setting(unit: &str, name: &str) -> String {
    settings(unit, name).pop().unwrap_or_else(|| panic!("{unit} does not set {name}"))
}

/// Its watchdog.
fn watchdog(unit: &str) -> Duration {
    Duration::from_secs(setting(unit, "WatchdogSec").parse().expect("seconds"))
}

/// Every unit, with the command where it is here, and a template as an instance of it.
fn installed(directory: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(units()).expect("a directory of this project").flatten();
    let installed = files.map(|file| {
        let text = std::fs::read_to_string(file.path()).expect("a unit");
        let text = text.replace("/usr/local/bin/bellwether", bellwether().to_str().expect("a plain path"));
        let name = file.file_name().into_string().expect("a plain name").replace("@.", "@reports.");
        let place = directory.join(name);
        std::fs::write(&place, text).expect("our own directory");
        place
    });
    installed.collect()
}

fn analyze(arguments: &[&str], unit: &Path) -> (bool, String) {
    let mut command = Command::new("systemd-analyze");
    command.arg("--no-pager").args(arguments).arg(unit);
    let output = run_to_end(command);
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn systemd_finds_nothing_wrong_with_the_units() {
    let directory = temporary();
    let installed = installed(directory.path());
    assert_eq!(installed.len(), 2, "{installed:?}");
    for unit in installed {
        let (is_fine, said) = analyze(&["verify", "--man=no"], &unit);
        // It warns of settings that it does not know, and succeeds.
        assert!(is_fine && said.is_empty(), "{}: {said}", unit.display());
    }
}

#[test]
fn the_units_are_hardened() {
    let directory = temporary();
    for unit in installed(directory.path()) {
        let threshold = format!("--threshold={}", EXPOSURE_MAX.replace('.', ""));
        let (is_below, said) = analyze(&["security", "--offline=yes", &threshold], &unit);
        assert!(is_below, "{} is exposed by more than {EXPOSURE_MAX}: {said}", unit.display());
        // A setting that is ignored does not harden anything.
        assert!(!said.contains("Unknown"), "{said}");
    }
}

/// What starts this command line as the unit does: as nobody, with nothing but what the unit leaves.
fn start(unit: &str, directory: &Path, words: Vec<String>, manager: &ServiceManager) -> Command {
    let mut command = sandboxed(unit, &words);
    command.current_dir(directory).env("RUNTIME_DIRECTORY", directory).env("STATE_DIRECTORY", directory);
    manager.tell(&mut command, Some(watchdog(unit)));
    command
}

/// As systemd splits it, with these in place of specifiers and variables.
fn exec_start(unit: &str, replaced: &[(&str, &str)]) -> Vec<String> {
    let mut line = setting(unit, "ExecStart");
    for (from, to) in replaced {
        assert!(line.contains(from), "{unit}: no {from} in {line}");
        line = line.replace(from, to);
    }
    assert!(!line.contains(['$', '%']), "{line}");
    line.split(' ').map(str::to_owned).collect()
}

/// The command where nobody else has to be let in to reach it.
fn binary_in(directory: &Path) -> String {
    let place = directory.join("bellwether");
    std::fs::copy(bellwether(), &place).expect("our own directory");
    place.to_str().expect("a plain path").to_owned()
}

/// For whom the test is not root: there, the process stays who it is.
fn may_become_nobody() -> bool {
    if !is_root() {
        skipped("a unit's user and its capabilities need root");
    }
    is_root()
}

#[test]
fn what_the_unit_of_a_program_starts_works_under_all_that_it_forbids() {
    const UNIT: &str = "bellwether-run@.service";
    if !may_become_nobody() {
        return;
    }
    let directory = crate::everybody_s_directory();
    let path = directory.path().to_str().expect("a plain path").to_owned();
    let manager = ServiceManager::in_directory(directory.path());
    crate::let_everybody_write(&directory.path().join("notify"));
    // It leaves a daemon behind, which is of its own session.
    let script = directory.path().join("work");
    let daemon = "setsid sleep 1000 </dev/null >/dev/null 2>&1 &";
    std::fs::write(&script, format!("{daemon}\necho $$ > {path}/pid\nexec sleep 1000\n"))
        .expect("our own directory");
    let (command, socket) = (format!("/bin/sh {path}/work"), format!("{path}/http.sock"));
    let binary = binary_in(directory.path());
    let words = exec_start(
        UNIT,
        &[
            ("/usr/local/bin/bellwether", &binary),
            ("%I", "reports"),
            ("%H", "host-1"),
            ("${RUNTIME_DIRECTORY}/http.sock", &socket),
            ("$COMMAND", &command),
        ],
    );
    let mut command = start(UNIT, directory.path(), words, &manager);
    command.env("BELLWETHER_BACKEND", format!("file:{path}/store")).env("BELLWETHER_TEST_MARK", &path);
    let mark = format!("BELLWETHER_TEST_MARK={path}");
    let mut unit = Candidate::start(command);
    let heard = manager.until(|one| one.field("STATUS") == Some("leads reports under epoch 1"));
    assert!(heard.iter().any(|one| one.says("READY=1")), "{heard:?}");
    if pings(&heard) == 0 {
        manager.until(|one| one.says("WATCHDOG=1"));
    }
    bellwether_tests::until_blocking(|| std::fs::metadata(directory.path().join("pid")));
    let place = bellwether_tests::http::HttpPlace::Unix(directory.path().join("http.sock"));
    assert_eq!(place.get("/leader").status, 200);
    unit.signal(Signal::TERM);
    manager.until(|one| one.says("STOPPING=1"));
    let ended = unit.ended();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(!ended.stderr.contains(" ERROR "), "{}", ended.stderr);
    let left = bellwether_tests::Process::all_with(&mark);
    assert!(left.is_empty(), "a daemon outlived the unit: {left:?}");
}

#[test]
fn what_the_unit_of_a_node_starts_works_under_all_that_it_forbids() {
    const UNIT: &str = "bellwether-node.service";
    if !may_become_nobody() {
        return;
    }
    let directory = crate::everybody_s_directory();
    let path = directory.path().to_str().expect("a plain path").to_owned();
    let manager = ServiceManager::in_directory(directory.path());
    crate::let_everybody_write(&directory.path().join("notify"));
    std::fs::create_dir(directory.path().join("state")).expect("our own directory");
    crate::give_to_nobody(&directory.path().join("state"));
    let secret = directory.path().join("secret");
    std::fs::write(&secret, "0123456789abcdef0123456789abcdef").expect("our own directory");
    crate::give_to_nobody(&secret);
    std::fs::write(
        directory.path().join("node.toml"),
        "output = \"json\"\n[node]\nname = \"alpha\"\nexpect = 1\nbind = \"127.0.0.1:0\"\n",
    )
    .expect("our own directory");
    let binary = binary_in(directory.path());
    let words = exec_start(
        UNIT,
        &[
            ("/usr/local/bin/bellwether", &binary),
            ("/etc/bellwether/node.toml", &format!("{path}/node.toml")),
            ("${STATE_DIRECTORY}", &format!("{path}/state")),
            ("${CREDENTIALS_DIRECTORY}", &path),
        ],
    );
    let mut node = OutputLines::run(start(UNIT, directory.path(), words, &manager));
    let heard = manager.until(|one| one.says("READY=1"));
    let status = heard.last().and_then(|one| one.field("STATUS"));
    assert_eq!(status, Some("alpha: leads the cluster (term 1)"));
    if pings(&heard) == 0 {
        manager.until(|one| one.says("WATCHDOG=1"));
    }
    node.signal(Signal::TERM);
    manager.until(|one| one.says("STOPPING=1"));
    assert_eq!(node.exit_code(), Some(0));
}
