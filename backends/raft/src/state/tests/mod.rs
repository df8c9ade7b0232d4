//! The state machine, command by command.

mod campaigning;
mod once;
mod random;

use std::time::Duration;

use bellwether_core::{Incarnation, Wall};

use super::*;
use crate::command::{Act, Campaign, ReserveFor, Sequence};

pub(super) const TTL: Duration = Duration::from_secs(10);

/// A cluster of one state.
pub(super) struct Stage {
    pub(super) state: State,
    pub(super) at: At,
    sequences: BTreeMap<SessionId, u64>,
}

impl Stage {
    pub(super) fn new() -> Stage {
        let at = At { index: 0, term: 1, generation: 0 };
        Stage { state: State::new(), at, sequences: BTreeMap::new() }
    }

    pub(super) fn apply(&mut self, command: &Command) -> Answer {
        self.at.index += 1;
        self.state.step(self.at, &command.encode()).answer
    }

    pub(super) fn open(&mut self, nonce: u128) -> SessionId {
        match self.apply(&Command::OpenSession { nonce, ttl: TTL, label: "here".to_owned() }) {
            Answer::Opened(session) => session,
            other => panic!("{other:?}"),
        }
    }

    /// The next command of a session; those before are answered.
    pub(super) fn act(&mut self, session: SessionId, act: Act) -> Answer {
        let sequence = self.sequences.entry(session).or_default();
        *sequence += 1;
        let sequence = Sequence(*sequence);
        self.apply(&Command::InSession { session, sequence, answered_below: sequence, act })
    }

    pub(super) fn campaign(&mut self, session: SessionId, bid: Campaign) -> Answer {
        self.act(session, Act::Campaign(bid))
    }

    pub(super) fn leads(&mut self, session: SessionId, id: &str, start: u128) -> Epoch {
        match self.campaign(session, bid(id, start)) {
            Answer::Granted { epoch, .. } => epoch,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn denied(&mut self, session: SessionId, bid: Campaign) -> ElectionView {
        match self.campaign(session, bid) {
            Answer::Denied(view) => *view,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn resign(&mut self, session: SessionId, epoch: Epoch, start: u128) -> Answer {
        self.act(session, resign(epoch, start))
    }

    pub(super) fn expire(&mut self, session: SessionId) -> Answer {
        self.apply(&Command::ExpireSession { session, term: self.at.term })
    }

    pub(super) fn queue(&self) -> Vec<String> {
        self.state.waiting(&election()).iter().map(|waiting| waiting.who.id.to_string()).collect()
    }
}

pub(super) fn election() -> ElectionName {
    ElectionName::new("e").unwrap()
}

pub(super) fn id(text: &str) -> CandidateId {
    CandidateId::new(text).unwrap()
}

pub(super) fn bid(name: &str, start: u128) -> Campaign {
    Campaign {
        on: election(),
        who: Candidate { id: id(name), incarnation: Incarnation::from_bits(start) },
        floor: Epoch::ZERO,
        priority: 0,
        metadata: BTreeMap::new(),
        cooldown: None,
        danger_reclaim: false,
        wall: Wall::default(),
    }
}

pub(super) fn resign(epoch: Epoch, start: u128) -> Act {
    let incarnation = Incarnation::from_bits(start);
    Act::Resign { on: election(), epoch, incarnation, reserve_for: None, cooldown: None }
}

pub(super) fn reserve_for(name: &str) -> Option<ReserveFor> {
    Some(ReserveFor { id: id(name), span: Duration::from_secs(1) })
}
