//! The program that the tests run: a supervisor, its guard, and the command that it supervises.
//!
//! `host …` leads an election of its own and runs a command; `witness …` is such a command; `first …` leaves process 1
//! and becomes another program.

#[cfg(target_os = "linux")]
mod host;
#[cfg(target_os = "linux")]
mod witness;

#[cfg(target_os = "linux")]
fn main() {
    bellwether_supervise::guard_main_if_asked();
    bellwether_deadman::leave_pid1().expect("process 1 can be left");
    let mut args = std::env::args().skip(1);
    let role = args.next();
    let args: Vec<String> = args.collect();
    match role.as_deref() {
        Some("host") => host::run(&args),
        Some("witness") => witness::run(&args),
        Some("first") => become_program(&args),
        Some("descriptors") => say(&format!("descriptors {:?}", descriptors())),
        other => panic!("no such role: {other:?}"),
    }
}

#[cfg(target_os = "linux")]
/// Those that are open; the one that lists them no longer is.
fn descriptors() -> Vec<std::ffi::OsString> {
    let entries = std::fs::read_dir("/proc/self/fd").unwrap();
    // Names, since an entry keeps its directory open.
    let names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
    let dir = std::path::Path::new("/proc/self/fd");
    names.into_iter().filter(|name| std::fs::read_link(dir.join(name)).is_ok()).collect()
}

#[cfg(target_os = "linux")]
fn become_program(args: &[String]) {
    use std::os::unix::process::CommandExt;
    let error = std::process::Command::new(&args[0]).args(&args[1..]).exec();
    panic!("{args:?}: {error}");
}

#[cfg(target_os = "linux")]
/// A line that is not torn apart by those of other processes.
fn say(line: &str) {
    use std::io::Write;
    let _ = std::io::stdout().lock().write_all(format!("{line}\n").as_bytes());
}

#[cfg(not(target_os = "linux"))]
fn main() {}
