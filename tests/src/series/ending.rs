//! The ways in which a leader can end.

use std::fmt;
use std::time::Duration;

use bellwether_core::Boot;
use bellwether_deadman::boot_now;
use rustix::process::Signal;

use super::leader_processes::LeaderProcesses;
use super::{Leaving, Series};
use crate::{Process, Surroundings};

/// What is done to a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// kill −9 of the supervisor; the witness daemonises, and is deaf.
    SupervisorKilled,
    /// kill −9 of the supervisor; a grandchild does the work.
    GrandchildWorks,
    /// kill −9 of the guard.
    GuardKilled,
    /// kill −9 of both, one right after the other.
    BothKilled,
    /// kill −9 of process 1 of the container, or of the supervisor where there is none.
    ContainerKilled,
    /// SIGSTOP of the supervisor until there is another leader, then CONT.
    SupervisorStopped,
    /// SIGSTOP of the guard, for good.
    GuardStopped,
    /// SIGSTOP of supervisor, guard, init and the whole tree.
    AllStopped,
    /// TERM, to a witness that heeds it and has started more processes.
    Terminated,
    /// TERM, to a witness that does not heed it.
    DeafTerminated,
    /// TERM, while the work is done by a daemon.
    DaemonTerminated,
    /// The store becomes read-only, and later writable again.
    ReadOnlyStore,
}

impl Ending {
    /// Every way that there is in these surroundings.
    pub fn all(surroundings: Surroundings) -> Vec<Ending> {
        let mut all = vec![
            Ending::SupervisorKilled,
            Ending::GrandchildWorks,
            Ending::GuardKilled,
            Ending::SupervisorStopped,
            Ending::Terminated,
            Ending::GuardStopped,
            Ending::DeafTerminated,
            Ending::AllStopped,
            Ending::DaemonTerminated,
        ];
        match surroundings {
            // A container has mounts of its own, which do not follow ours.
            Surroundings::Container => all.extend([Ending::BothKilled, Ending::ContainerKilled]),
            Surroundings::Plain => all.extend([Ending::BothKilled, Ending::ReadOnlyStore]),
            Surroundings::Nobody => all.extend([Ending::BothKilled, Ending::ReadOnlyStore]),
        }
        all
    }

    /// How a witness behaves that is to end like this.
    pub(super) fn manners(self, surroundings: Surroundings) -> &'static str {
        match self {
            // Without a namespace, only the command itself is tied to those that the kernel kills.
            Ending::AllStopped if surroundings == Surroundings::Nobody => "deaf",
            Ending::SupervisorKilled | Ending::GuardKilled | Ending::ContainerKilled => "deaf daemon litter",
            Ending::GrandchildWorks | Ending::BothKilled => "deaf grandchild",
            Ending::SupervisorStopped | Ending::GuardStopped => "deaf daemon",
            Ending::AllStopped | Ending::DeafTerminated => "deaf litter",
            Ending::Terminated | Ending::ReadOnlyStore => "litter",
            Ending::DaemonTerminated => "daemon",
        }
    }

    /// Does it.
    pub(super) fn act(self, series: &mut Series, cast: LeaderProcesses) -> Done {
        let mut done = Done { since: boot_now(), bound: series.bounds.failover, stopped: None };
        match self {
            Ending::SupervisorKilled | Ending::GrandchildWorks => {
                cast.supervisor.signal(Signal::KILL);
                series.leader_leaves(Leaving::Killed(done.since));
            }
            Ending::BothKilled => {
                cast.supervisor.signal(Signal::KILL);
                cast.guard.signal(Signal::KILL);
                series.leader_leaves(Leaving::Killed(done.since));
            }
            Ending::ContainerKilled => {
                cast.first.signal(Signal::KILL);
                series.leader_leaves(Leaving::Killed(done.since));
            }
            Ending::Terminated | Ending::DeafTerminated | Ending::DaemonTerminated => {
                cast.first.signal(Signal::TERM);
                series.leader_leaves(Leaving::With(0));
            }
            Ending::GuardKilled => cast.guard.signal(Signal::KILL),
            Ending::GuardStopped => cast.guard.signal(Signal::STOP),
            Ending::SupervisorStopped => {
                cast.supervisor.signal(Signal::STOP);
                done.stopped = Some((series.running[series.leader.at].pid(), cast.supervisor));
            }
            Ending::AllStopped => {
                cast.everybody().for_each(|process| process.signal(Signal::STOP));
                done.stopped = Some((series.running[series.leader.at].pid(), cast.supervisor));
            }
            Ending::ReadOnlyStore => {
                done.since = read_only(series, &cast);
                done.bound = series.bounds.recovery;
            }
        }
        done
    }
}

/// What was done.
pub(super) struct Done {
    /// From when on the next leader is due.
    pub(super) since: Boot,
    /// Within what time.
    pub(super) bound: Duration,
    /// Who was stopped: the candidate's number, and the process.
    stopped: Option<(u32, Process)>,
}

impl Done {
    /// Lets those go on who were stopped, and sees those off who were ended.
    pub(super) fn put_right(self, series: &mut Series) {
        if let Some((pid, supervisor)) = self.stopped {
            supervisor.signal(Signal::CONT);
            let candidate = series.running.iter_mut().find(|candidate| candidate.pid() == pid);
            candidate.expect("stopped, not gone").expect("lost");
        }
        series.see_off();
    }
}

/// Nobody can renew, so the work ends while the lead is still certain; nobody can take over, and all leave. When it can
/// be written again, new candidates find what was left.
fn read_only(series: &mut Series, cast: &LeaderProcesses) -> Boot {
    let read_only = series.stage.read_only();
    let gone = cast.tree.iter().map(Process::wait_for_end).max().expect("a witness");
    let lost = series.running[series.leader.at].expect("lost");
    let deadline = lost.instant("deadline_boot_ns").expect("a deadline");
    assert!(gone < deadline + series.bounds.margin, "at work {:?} past its time", gone.since(deadline));
    let leaving = series.running.drain(..).map(|candidate| (candidate, Some(NO_PERMISSION)));
    series.leaving.extend(leaving);
    series.see_off();
    let since = read_only.end();
    series.fill_up();
    since
}

/// The exit code for what needs other rights.
const NO_PERMISSION: i32 = 77;

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ending::SupervisorKilled => "kill -9 of the supervisor, daemon at work",
            Ending::GrandchildWorks => "kill -9 of the supervisor, grandchild at work",
            Ending::GuardKilled => "kill -9 of the guard",
            Ending::BothKilled => "kill -9 of supervisor and guard",
            Ending::ContainerKilled => "kill -9 of the container's process 1",
            Ending::SupervisorStopped => "SIGSTOP of the supervisor, then CONT",
            Ending::GuardStopped => "SIGSTOP of the guard",
            Ending::AllStopped => "SIGSTOP of all of them, then CONT",
            Ending::Terminated => "TERM",
            Ending::DeafTerminated => "TERM, child ignores it",
            Ending::DaemonTerminated => "TERM, child has daemonised",
            Ending::ReadOnlyStore => "store made read-only and writable again",
        })
    }
}
