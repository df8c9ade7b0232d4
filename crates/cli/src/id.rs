//! This candidate's id, where none is given: readable, and different from that of every other process that competes.

use std::sync::OnceLock;

use bellwether::CandidateId;

use crate::args::Global;

/// The PID namespace of the machine itself has this number on every Linux (`PROC_PID_INIT_INO`).
const MACHINES_OWN: &str = "pid:[4026531836]";

/// `--id`, `BELLWETHER_ID`, `POD_NAME`, or one made of the host's name and the process id.
pub(crate) fn id(global: &Global) -> String {
    given(global).unwrap_or_else(|| made_up().to_owned())
}

/// The id that somebody has chosen.
pub(crate) fn given(global: &Global) -> Option<String> {
    let pod = || std::env::var("POD_NAME").ok().filter(|id| !id.is_empty());
    global.id.clone().or_else(pod)
}

/// Whether this process is the one that an environment variable names: itself, or process 1 of a container, which it was.
pub(crate) fn is_this_process(pid: &str) -> bool {
    pid.parse::<u32>().is_ok_and(|named| named == 1 || named == std::process::id())
}

/// Who gives an order, for readers: the id that somebody has chosen, or `<user>@<hostname>`.
pub(crate) fn operator(global: &Global) -> Option<CandidateId> {
    let user = || std::env::var("USER").ok().filter(|user| !user.is_empty());
    let name = given(global).or_else(|| match (user(), host()) {
        (Some(user), Some(host)) => Some(format!("{user}@{host}")),
        (user, host) => user.or(host),
    });
    CandidateId::new(name?).ok()
}

fn host() -> Option<String> {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .ok()
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .or_else(|| std::env::var("HOSTNAME").ok())
}

/// `<hostname>-<pid>`. In a container process ids begin anew, and containers may share a host name: there, six random digits
/// follow.
fn made_up() -> &'static str {
    static ID: OnceLock<String> = OnceLock::new();
    ID.get_or_init(|| {
        let id = format!("{}-{}", host().as_deref().unwrap_or("host"), std::process::id());
        let namespace = std::fs::read_link("/proc/self/ns/pid");
        if namespace.is_ok_and(|name| name.as_os_str() == MACHINES_OWN) {
            return id;
        }
        format!("{id}-{:06x}", bellwether_deadman::random_bits() & 0xff_ffff)
    })
}
