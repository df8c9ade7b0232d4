//! Who is who among the processes of a leader.

use super::Series;
use crate::Process;

/// The processes of the leader of a series.
pub(super) struct LeaderProcesses {
    /// Process 1 of the container, if there is one; else the supervisor.
    pub(super) first: Process,
    pub(super) supervisor: Process,
    pub(super) guard: Process,
    pub(super) init: Process,
    /// The command and all that came of it.
    pub(super) tree: Vec<Process>,
}

impl LeaderProcesses {
    /// `None` if the leader works no more: on a busy machine it may have lost the lead meanwhile.
    pub(super) fn of(series: &Series) -> Option<LeaderProcesses> {
        let alive = series.stage.alive();
        let started = series.running[series.leader.at].pid().cast_signed();
        let child = |parent: i32, name: &str| {
            alive.iter().find(|process| process.parent == parent && process.name == name).cloned()
        };
        let itself = alive.iter().find(|process| process.pid == started).expect("the candidate");
        let first = if itself.name == "bellwether" { itself.clone() } else { child(started, "bellwether")? };
        let supervisor = child(first.pid, "bellwether").unwrap_or_else(|| first.clone());
        let guard = child(supervisor.pid, "bellw-guard")?;
        let init = child(guard.pid, "bellw-init")?;
        let epoch = Some(series.leader.epoch);
        let tree: Vec<_> = alive.iter().filter(|process| process.epoch == epoch).cloned().collect();
        (!tree.is_empty()).then_some(LeaderProcesses { first, supervisor, guard, init, tree })
    }

    /// All but process 1 of the container, which nobody can stop from within and nothing depends on.
    pub(super) fn everybody(&self) -> impl Iterator<Item = &Process> {
        [&self.supervisor, &self.guard, &self.init].into_iter().chain(&self.tree)
    }
}
