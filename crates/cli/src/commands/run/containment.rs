//! What users can rely on when `bellwether` itself is killed, said once, at the start.

use bellwether_deadman::Pid1Deadline;
use bellwether_supervise::Containment;

/// Says it.
pub(super) fn say(containment: Containment) {
    match containment {
        Containment::Namespace => {
            tracing::info!("{}: it has a PID namespace of its own", containment.promise())
        }
        Containment::Sweep if Pid1Deadline::new().is_some() => tracing::info!(
            "{}: bellwether is the first process of its container",
            Containment::Namespace.promise()
        ),
        Containment::Sweep => tracing::warn!(
            "there is no right to make a PID namespace: {}; with CAP_SYS_ADMIN, or as the first process of a container, none can",
            containment.promise()
        ),
    }
}
