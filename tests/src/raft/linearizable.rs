//! Whether one order explains what clients were told: each operation at one instant between its call and its end, each answered with the
//! text that the operation before it left.
//!
//! The search is that of Wing and Gong, with the visited states remembered as Lowe does: an operation may come next if nothing else has
//! ended before it began. Every text is written once at most, which keeps the search short:
//!
//! - A write of unknown outcome whose text nobody saw can be left out. One whose text somebody saw has happened.
//! - A write that was refused must not be seen at all.
//! - A read that fits the current text comes at once: nothing is gained by waiting.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bellwether_core::Boot;

use super::Outcome;

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// To set this text, which nobody else writes.
    Write(String),
    /// To read.
    Read,
}

/// Something that a client did.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The register that it is about.
    pub register: String,
    /// What was asked for.
    pub act: Act,
    /// The instant before it was asked.
    pub called: Boot,
    /// The instant after the client was told.
    pub ended: Boot,
    /// What it was told.
    pub outcome: Outcome,
}

/// States that are looked at before the judge gives up on a register: more than any history of some hundred operations has.
const STATES_MAX: usize = 1_000_000;

/// One sentence for every register whose operations no order explains.
pub fn complaints(operations: &[Operation]) -> Vec<String> {
    let mut registers: BTreeMap<&str, Vec<&Operation>> = BTreeMap::new();
    for operation in operations {
        registers.entry(&operation.register).or_default().push(operation);
    }
    let judged = registers.into_iter().map(|(name, operations)| (name, judge(&operations)));
    judged.filter_map(|(name, judged)| Some(format!("register {name}: {}", judged.err()?))).collect()
}

/// One that has to be in the order.
struct Placed<'a> {
    operation: &'a Operation,
    /// What it saw, if it was told.
    saw: Option<Option<&'a str>>,
    /// By when it happened.
    by: Boot,
}

fn judge(operations: &[&Operation]) -> Result<(), String> {
    let seen = seen(operations)?;
    let mut placed: Vec<Placed<'_>> = operations
        .iter()
        .filter_map(|operation| match (&operation.outcome, &operation.act) {
            (Outcome::Done { before, .. }, _) => {
                Some(Placed { operation, saw: Some(before.as_deref()), by: operation.ended })
            }
            (Outcome::Written { .. }, _) => Some(Placed { operation, saw: None, by: operation.ended }),
            (Outcome::Unknown(_), Act::Write(text)) if seen.contains(text.as_str()) => {
                Some(Placed { operation, saw: None, by: Boot::FOREVER })
            }
            _ => None,
        })
        .collect();
    placed.sort_by_key(|one| one.operation.called);
    Search { placed: &placed, visited: HashMap::new(), states: 0, best: Vec::new() }.run()
}

/// Every text that somebody saw, after a check that somebody may have written it.
fn seen<'a>(operations: &[&'a Operation]) -> Result<BTreeSet<&'a str>, String> {
    let mut written = BTreeMap::new();
    for operation in operations {
        if let Act::Write(text) = &operation.act {
            let other = written.insert(text.as_str(), operation);
            assert!(other.is_none(), "{text:?} was written twice, so that nothing can be told from it");
        }
    }
    let mut seen = BTreeSet::new();
    for operation in operations {
        let Outcome::Done { before: Some(text), .. } = &operation.outcome else { continue };
        match written.get(text.as_str()).map(|write| &write.outcome) {
            None => return Err(format!("{text:?} was read, and nobody wrote it: {operation:?}")),
            Some(Outcome::Refused(why)) => {
                return Err(format!("{text:?} was read, and its write was refused ({why}): {operation:?}"));
            }
            Some(_) => seen.insert(text.as_str()),
        };
    }
    Ok(seen)
}

/// Which operations are in the order so far, and the text that they leave.
type State<'a> = (Vec<u64>, Option<&'a str>);

struct Search<'a> {
    placed: &'a [Placed<'a>],
    visited: HashMap<State<'a>, ()>,
    states: usize,
    /// The longest order that was found.
    best: Vec<usize>,
}

impl<'a> Search<'a> {
    fn run(mut self) -> Result<(), String> {
        // Each step: what is in the order, and what else may come next at its place.
        let mut done = vec![0_u64; self.placed.len().div_ceil(64)];
        let mut text = None;
        let mut order: Vec<usize> = Vec::new();
        let mut open: Vec<(Option<&'a str>, Vec<usize>)> = vec![(text, self.next(&done, text))];
        while order.len() < self.placed.len() {
            let Some((before, choices)) = open.last_mut() else { return Err(self.unexplained()) };
            let before = *before;
            if let Some(choice) = choices.pop() {
                done[choice / 64] |= 1 << (choice % 64);
                text = match &self.placed[choice].operation.act {
                    Act::Write(text) => Some(text.as_str()),
                    Act::Read => before,
                };
                order.push(choice);
                if order.len() > self.best.len() {
                    self.best.clone_from(&order);
                }
                let is_new = self.visited.insert((done.clone(), text), ()).is_none();
                self.states += 1;
                if self.states > STATES_MAX {
                    return Err(format!("not judged: {} operations have too many orders", self.placed.len()));
                }
                let next = if is_new { self.next(&done, text) } else { Vec::new() };
                open.push((text, next));
            } else {
                open.pop();
                if let Some(undone) = order.pop() {
                    done[undone / 64] &= !(1 << (undone % 64));
                }
            }
        }
        Ok(())
    }

    /// What may come next, the most likely last.
    fn next(&self, done: &[u64], text: Option<&str>) -> Vec<usize> {
        let left = || (0..self.placed.len()).filter(|at| done[at / 64] & (1 << (at % 64)) == 0);
        let first_end = left().map(|at| self.placed[at].by).min().unwrap_or(Boot::FOREVER);
        let fits = |at: &usize| {
            let one = &self.placed[*at];
            one.operation.called <= first_end && one.saw.is_none_or(|saw| saw == text)
        };
        let mut fitting: Vec<usize> = left().filter(fits).collect();
        if let Some(read) = fitting.iter().find(|at| self.placed[**at].operation.act == Act::Read) {
            return vec![*read];
        }
        fitting.sort_by_key(|at| std::cmp::Reverse(self.placed[*at].by));
        fitting
    }

    fn unexplained(&self) -> String {
        let left = (0..self.placed.len()).filter(|at| !self.best.contains(at));
        let left: Vec<String> = left.take(4).map(|at| format!("{:?}", self.placed[at].operation)).collect();
        let last = self.best.last().map(|at| self.placed[*at].operation);
        format!(
            "no order explains what clients were told: after {} of {} operations, the last of them {last:?}, none of the others fits: {}",
            self.best.len(),
            self.placed.len(),
            left.join("; ")
        )
    }
}
