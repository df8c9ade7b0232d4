//! A machine for one candidate at a time, always of the same make.

use bellwether_core::Boot;
use bellwether_support::netns::Node;
use bellwether_support::until_blocking;

use super::Make;
use crate::{Candidate, Led};

pub(super) struct Seat {
    pub(super) make: Make,
    pub(super) node: Node,
    pub(super) taken: Option<Candidate>,
}

impl Seat {
    pub(super) fn new(make: Make, node: Node) -> Seat {
        Seat { make, node, taken: None }
    }

    pub(super) fn candidate(&mut self) -> &mut Candidate {
        self.taken.as_mut().expect("a candidate is here as long as something happens to it")
    }

    /// Waits until it knows who leads.
    pub(super) fn joined(&mut self) {
        match self.make {
            Make::Ours => self.candidate().joined(),
            Make::ClientGo => _ = self.candidate().heard("new_leader"),
        }
    }

    /// Whether it leads, by its own word.
    pub(super) fn leads(&mut self) -> bool {
        self.last().is_some_and(|led| led.until == Boot::FOREVER)
    }

    /// Waits until it says that its last leadership is over.
    pub(super) fn believes_no_more(&mut self) {
        until_blocking(|| {
            let leads = self.leads();
            if leads { Err(format!("it believes on: {:?}", self.candidate().said)) } else { Ok(()) }
        });
    }

    fn last(&mut self) -> Option<Led> {
        let candidate = self.taken.as_mut()?;
        candidate.drain();
        candidate.leaderships().into_iter().max_by_key(|led| led.from)
    }
}
