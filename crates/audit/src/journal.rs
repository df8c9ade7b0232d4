//! The lines of one candidate in one election, and the leaderships that they tell of.

use bellwether_core::Boot;

use crate::{Doubt, Leadership, Line, Owner, Until, Violation, What};

/// What one start of a candidate wrote about one election.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    lines: Vec<Line>,
}

/// What a journal tells.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) leaderships: Vec<Leadership>,
    pub(crate) violations: Vec<Violation>,
    pub(crate) doubts: Vec<Doubt>,
}

/// A leadership that has not ended yet, as far as was read.
struct Open {
    epoch: Option<u64>,
    from: Boot,
    deadline: Option<Boot>,
    renewals_are_told: bool,
    left_leader: Option<Boot>,
}

impl Journal {
    pub(crate) fn add(&mut self, line: Line) {
        self.lines.push(line);
    }

    /// Reads the lines in the order of their clock. Lines of one instant stay in the order in which they were written.
    pub(crate) fn told(mut self, election: &str, owner: &Owner) -> Told {
        self.lines.sort_by_key(|line| line.at);
        let mut told = Told::default();
        let mut open: Option<Open> = None;
        // Lines are missing, so what is about to be read may have a begin that was not.
        let mut after_gap = false;
        let last = self.lines.last().map_or(Boot::default(), |line| line.at);
        let killed = self.lines.iter().find(|line| line.what == What::Killed).map(|line| line.at);
        let known = |open: Open, until: Until, is_released: bool| Leadership {
            election: election.to_owned(),
            owner: owner.clone(),
            epoch: open.epoch,
            from: open.from,
            until,
            deadline: open.deadline.unwrap_or(Boot::FOREVER),
            is_released,
        };
        for line in &self.lines {
            match line.what {
                What::Began { deadline } => {
                    let begun = Open {
                        epoch: line.epoch,
                        from: line.at,
                        deadline,
                        renewals_are_told: false,
                        left_leader: None,
                    };
                    if let Some(before) = open.replace(begun) {
                        let before = known_without_end(before, line.at, killed, &known);
                        if !after_gap {
                            let begun = open.as_ref().expect("it was just put there");
                            let second = Leadership {
                                epoch: begun.epoch,
                                from: begun.from,
                                until: Until { at_least: begun.from, at_most: Boot::FOREVER },
                                ..before.clone()
                            };
                            told.violations.push(Violation::BegunTwice { first: before.clone(), second });
                        }
                        told.leaderships.push(before);
                    }
                    after_gap = false;
                }
                What::Renewed { deadline } => {
                    if let Some(open) = open.as_mut().filter(|open| open.epoch == line.epoch) {
                        open.deadline = open.deadline.max(Some(deadline));
                        open.renewals_are_told = true;
                    }
                }
                What::LeftLeader => {
                    if let Some(open) = &mut open {
                        open.left_leader.get_or_insert(line.at);
                    }
                }
                What::Ended { deadline, is_release } => {
                    match open.take_if(|open| open.epoch == line.epoch) {
                        Some(ended) => {
                            let at = [Some(line.at), deadline, ended.left_leader, killed];
                            let at = at.into_iter().flatten().min().unwrap_or(line.at).max(ended.from);
                            told.leaderships.push(known(ended, Until::exactly(at), is_release));
                        }
                        None if after_gap => {}
                        None => told.violations.push(Violation::EndedUnbegun {
                            election: election.to_owned(),
                            owner: owner.clone(),
                            epoch: line.epoch.unwrap_or_default(),
                        }),
                    }
                    after_gap = false;
                }
                What::Missed => {
                    after_gap = true;
                    let missing = Doubt::Missing { election: election.to_owned(), owner: owner.clone() };
                    if !told.doubts.contains(&missing) {
                        told.doubts.push(missing);
                    }
                }
                What::Killed | What::Other => {}
            }
        }
        told.leaderships.extend(open.map(|open| known_without_end(open, last, killed, &known)));
        told
    }
}

/// A leadership whose end no line tells. Its candidate lived until `alive`, at least.
fn known_without_end(
    open: Open,
    alive: Boot,
    killed: Option<Boot>,
    known: &impl Fn(Open, Until, bool) -> Leadership,
) -> Leadership {
    let deadline = open.deadline.unwrap_or(Boot::FOREVER);
    let ends = [open.left_leader, killed].into_iter().flatten().min();
    let until = match ends {
        // After the last recorded deadline it may have believed by renewals that nobody recorded.
        Some(end) if open.renewals_are_told || end <= deadline => Until::exactly(end.min(deadline)),
        Some(end) => Until { at_least: deadline, at_most: end },
        None => Until {
            at_least: alive.min(deadline),
            at_most: if open.renewals_are_told { deadline } else { Boot::FOREVER },
        },
    };
    let from = open.from;
    let until = Until { at_least: until.at_least.max(from), at_most: until.at_most.max(from) };
    known(open, until, false)
}
