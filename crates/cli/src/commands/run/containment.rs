//! What users can rely on when `bellwether` itself is killed, said once, at the start.

use bellwether_supervise::Containment;

/// Says it.
pub(super) fn say(containment: Containment) {
    match containment {
        Containment::Namespace => {
            tracing::info!(
                "no process of the command outlives the leadership: it has a PID namespace of its own"
            );
        }
        Containment::Sweep if is_first_process() => {
            tracing::info!(
                "no process of the command outlives the leadership: bellwether is the first process of its container"
            );
        }
        Containment::Sweep => tracing::warn!(
            "there is no right to make a PID namespace: processes that the command starts could outlive the leadership if \
             bellwether and its guard are both killed; with CAP_SYS_ADMIN, or as the first process of a container, none can"
        ),
    }
}

/// Whether we are what a container was started with. There, we are the child of a process of the same program.
fn is_first_process() -> bool {
    let program = |pid: &str| std::fs::read_link(format!("/proc/{pid}/exe")).ok();
    program("1").is_some_and(|first| program("self") == Some(first))
}
