//! A command that there must never be two of: it holds a lock for its whole life, and tells when it cannot have it.
//!
//! `bellwether-witness DIRECTORY`: the lock is `DIRECTORY/witness`, a meeting of two is a line in `DIRECTORY/two`, and how
//! this one behaves are the words in `DIRECTORY/manners`, which may change from one leader to the next:
//!
//! - `deaf`: no signal that can be ignored ends it;
//! - `grandchild`: the work is done by a child of its own, while it waits;
//! - `daemon`: the work is done by a process that has left parents, group and session;
//! - `litter`: three more processes are started and left alone.
//!
//! It says on stdout, as an event line, when it works: `{"event":"witness",…}`.

#[cfg(target_os = "linux")]
fn main() {
    let directory = std::env::args_os().nth(1).expect("a directory as the only argument");
    linux::Witness::new(directory.into()).live();
}

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::io::Write;
    use std::path::PathBuf;

    use bellwether_deadman::boot_now;
    use bellwether_deadman::process::{Namespace, block_all_signals, fork};
    use rustix::fs::{FlockOperation, flock};

    pub(crate) struct Witness {
        directory: PathBuf,
        manners: String,
    }

    impl Witness {
        pub(crate) fn new(directory: PathBuf) -> Witness {
            let manners = std::fs::read_to_string(directory.join("manners")).unwrap_or_default();
            Witness { directory, manners }
        }

        pub(crate) fn live(&self) {
            if self.has("deaf") {
                block_all_signals();
            }
            if self.has("litter") {
                (0..3).for_each(|_| self.child(|| forever()));
            }
            if self.has("daemon") {
                self.child(|| {
                    rustix::process::setsid().expect("a session of its own");
                    self.child(|| self.work());
                });
                forever();
            }
            if self.has("grandchild") {
                self.child(|| self.work());
                forever();
            }
            self.work();
        }

        fn has(&self, manner: &str) -> bool {
            self.manners.split_whitespace().any(|word| word == manner)
        }

        fn child(&self, life: impl FnOnce()) {
            let lived = || {
                life();
                0
            };
            fork(Namespace::Same, lived).expect("a child");
        }

        fn work(&self) {
            let file = self.append("witness");
            let epoch = std::env::var("BELLWETHER_EPOCH").unwrap_or_else(|_| "0".to_owned());
            let alone = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
            let (now, pid) = (boot_now().as_nanos(), std::process::id());
            let line = format!(
                "{{\"event\":\"witness\",\"boot_ns\":{now},\"epoch\":{epoch},\"pid\":{pid},\"alone\":{alone}}}\n"
            );
            if !alone {
                self.append("two").write_all(line.as_bytes()).expect("two at once can be told");
            }
            // Whoever reads may be gone; the lock is what counts.
            let _ = std::io::stdout().lock().write_all(line.as_bytes());
            forever();
        }

        fn append(&self, name: &str) -> File {
            let opened = File::options().create(true).append(true).open(self.directory.join(name));
            opened.expect("a directory that can be written")
        }
    }

    fn forever() -> ! {
        loop {
            std::thread::park();
        }
    }
}
