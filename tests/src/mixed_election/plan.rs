//! What happens to leaders, in which order, and who is to be the next.

use std::collections::VecDeque;
use std::fmt;

/// Whose candidate it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Make {
    /// `bellwether run`.
    Ours,
    /// client-go's `leaderelection`.
    ClientGo,
}

impl fmt::Display for Make {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Make::Ours => "bellwether",
            Make::ClientGo => "client-go",
        })
    }
}

/// What happens to a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// SIGTERM: it releases.
    Released,
    /// SIGKILL.
    Killed,
    /// SIGSTOP, until another leads.
    Stopped,
    /// Its packets vanish, until another leads.
    CutOff,
}

impl Fate {
    pub(super) const ALL: [Fate; 4] = [Fate::Released, Fate::Killed, Fate::Stopped, Fate::CutOff];

    /// Whether the leader lives on and does not know that it was replaced.
    pub(super) fn is_silent(self) -> bool {
        matches!(self, Fate::Stopped | Fate::CutOff)
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Fate::Released => "released",
            Fate::Killed => "killed",
            Fate::Stopped => "stopped",
            Fate::CutOff => "cut off",
        })
    }
}

/// How often which.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// So many leaders at least are asked to end or killed, as many of one make as of the other.
    pub handovers: usize,
    /// So many leaders of ours are stopped, and as many cut off.
    pub silences: usize,
    /// So many leaders of client-go are stopped, and as many cut off.
    pub faults: usize,
}

impl Plan {
    pub(super) fn turns(self) -> Turns {
        let each = self.handovers.div_ceil(4);
        let mixed = |silent: usize| {
            let counts = [each, each, silent, silent];
            let nth = move |n: usize| Fate::ALL.into_iter().zip(counts).filter(move |(_, count)| n < *count);
            (0..each.max(silent)).flat_map(nth).map(|(fate, _)| fate).collect()
        };
        Turns { ours: mixed(self.silences), theirs: mixed(self.faults), taken: 0 }
    }
}

/// What is still to happen.
pub(super) struct Turns {
    ours: VecDeque<Fate>,
    theirs: VecDeque<Fate>,
    taken: usize,
}

impl Turns {
    /// What happens to a leader of this make, and who is to lead after it: by turns so that each make follows each. `None` when
    /// everything has happened. Somebody other than wanted may have been faster: then one more is asked to end.
    pub(super) fn next(&mut self, leader: Make) -> Option<(Fate, Make)> {
        if self.ours.is_empty() && self.theirs.is_empty() {
            return None;
        }
        let fate = self.of(leader).pop_front().unwrap_or(Fate::Released);
        let (wanted, other) = match self.taken % 4 {
            0 | 1 => (Make::ClientGo, Make::Ours),
            _ => (Make::Ours, Make::ClientGo),
        };
        self.taken += 1;
        let next = if self.of(wanted).is_empty() { other } else { wanted };
        Some((fate, next))
    }

    fn of(&mut self, make: Make) -> &mut VecDeque<Fate> {
        match make {
            Make::Ours => &mut self.ours,
            Make::ClientGo => &mut self.theirs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_planned_happens_and_each_make_follows_each() {
        let mut turns = Plan { handovers: 8, silences: 2, faults: 1 }.turns();
        let (mut leader, mut happened) = (Make::Ours, Vec::new());
        while let Some((fate, next)) = turns.next(leader) {
            happened.push((leader, fate, next));
            leader = next;
        }
        let count = |make: Make, fate: Fate| {
            happened.iter().filter(|(leader, one, _)| (*leader, *one) == (make, fate)).count()
        };
        assert_eq!(Fate::ALL.map(|fate| count(Make::Ours, fate)), [2, 2, 2, 2]);
        assert_eq!(Fate::ALL.map(|fate| count(Make::ClientGo, fate)), [2, 2, 1, 1]);
        for pair in
            [Make::Ours, Make::ClientGo].into_iter().flat_map(|m| [(m, Make::Ours), (m, Make::ClientGo)])
        {
            assert!(happened.iter().any(|(leader, _, next)| (*leader, *next) == pair), "{pair:?}");
        }
    }
}
