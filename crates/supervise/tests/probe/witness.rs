//! A command that there must never be two of: it holds a lock for its whole life, and tells when it cannot have it.

use crate::say;
use bellwether_deadman::process::{self, Namespace};
use std::fs::File;
use std::io::Write;

pub(crate) fn run(args: &[String]) {
    let [lock, manners @ ..] = args else { panic!("a witness needs a file to lock") };
    let has = |manner: &str| manners.iter().any(|other| other == manner);
    if has("deaf") {
        process::block_all_signals();
    }
    if has("disguised") {
        process::set_name(c"bellw-worker");
    }
    if has("daemon") {
        // The work is done by a grandchild that has left group, session and parents.
        process::fork(Namespace::Same, || {
            rustix::process::setsid().unwrap();
            process::fork(Namespace::Same, || {
                hold(lock, has("exit"));
                0
            })
            .unwrap();
            0
        })
        .unwrap();
        forever();
    }
    if has("grandchild") {
        process::fork(Namespace::Same, || {
            hold(lock, false);
            0
        })
        .unwrap();
        forever();
    }
    hold(lock, has("exit"));
}

fn hold(path: &str, briefly: bool) {
    let file = File::options().create(true).append(true).open(path).unwrap();
    if rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive).is_err() {
        let mut others = File::options().create(true).append(true).open(format!("{path}.two")).unwrap();
        let _ = writeln!(others, "{} found it taken", std::process::id());
        say("TWO");
        return;
    }
    say("witness");
    if !briefly {
        forever();
    }
}

fn forever() -> ! {
    loop {
        std::thread::park();
    }
}
