//! Children that this process has but did not start: orphans that came to it, and those of whoever became this program.

use crate::own::{self, Origin};
use crate::tree;
use rustix::process::{Pid, WaitOptions, waitpid};

/// Reaps them.
///
/// A child that has ended is taken for one of them if it had ended by the time of an earlier call already, unless it is a guard or was started by
/// [`start_beside`](crate::start_beside): whoever started a child waits for it. So leave that long between two calls, and call again while [`is_empty`](Orphans::is_empty) is false.
#[derive(Debug, Default)]
pub struct Orphans {
    ended: Vec<Pid>,
}

impl Orphans {
    /// Reaps those that were seen before, and looks for more.
    pub fn reap(&mut self) {
        let mut ended = own::told_apart(|own| {
            let mut ended = tree::zombies();
            ended.retain(|pid| own(*pid) != Some(Origin::Started));
            ended
        });
        ended.retain(|pid| {
            let seen = self.ended.contains(pid);
            if seen {
                let _ = waitpid(Some(*pid), WaitOptions::NOHANG);
            }
            !seen
        });
        self.ended = ended;
    }

    /// Whether nobody waits to be reaped.
    pub fn is_empty(&self) -> bool {
        self.ended.is_empty()
    }
}
