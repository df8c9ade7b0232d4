//! What the store has taken is judged, and counted.

use bellwether_backend::Record;

use crate::call::Purpose;
use crate::connection::leadership_of;
use crate::invariants::exclusion::SimLeadership;
use crate::invariants::{clones, requests, stale};
use crate::key::ElectionKey;
use crate::store::Commit;
use crate::world::{World, say};

impl World {
    pub(crate) fn committed(&mut self, from: usize, key: ElectionKey, purpose: Purpose, commit: &Commit) {
        self.tally.commits += 1;
        let (record, version) = &*commit.after;
        self.trace.mix(*version);
        self.trace.mix(record.epoch.map_or(0, |epoch| epoch.get()));
        let before = commit.before.as_ref().map(|found| &found.0);
        say!(
            self,
            "store: {purpose:?} took {key:?}, version {version} beat {} {:?}",
            record.beat,
            record.epoch
        );
        self.judge(stale::check(purpose, before, record));
        self.judge_kept(key, purpose, commit);
        let now = self.now;
        let verdict = self.election(key).pauses.wrote(now, purpose, record);
        self.judge(verdict);
        self.judge_taken_out(from, purpose, commit);
        self.judge_clones(from, key, purpose, commit);
        if let (Purpose::Claim(who), Some(epoch)) = (purpose, record.epoch) {
            let election = self.election(key);
            let verdict = election.owners.owns(SimLeadership { who, epoch }, &election.losses);
            let released_at = election.released_at.take();
            self.judge(verdict);
            if before.is_some_and(|before: &Record| before.holder.is_none()) {
                self.tally.handovers += 1;
            }
            if let Some(released_at) = released_at {
                self.tally.raced(self.now - released_at);
            }
        }
        if let (Purpose::Release(..), None) = (purpose, &record.reserved) {
            self.election(key).released_at = Some(now);
        }
        self.announce(key);
    }

    fn judge_kept(&mut self, key: ElectionKey, purpose: Purpose, commit: &Commit) {
        let (record, version) = &*commit.after;
        let (now, reservations) = (self.now, &mut self.elections[key.0].reservations);
        let verdict = match (purpose, &commit.before) {
            (Purpose::Release(..), _) => reservations.released(now, *version, record),
            (Purpose::Claim(_), Some(found)) => {
                let (before, at) = &**found;
                reservations.claimed(now, *at, before, record)
            }
            _ => Ok(()),
        };
        self.judge(verdict);
    }

    /// A renewal that takes a request out of the record: its process must have told its core.
    fn judge_taken_out(&mut self, from: usize, purpose: Purpose, commit: &Commit) {
        let (Purpose::Renew(who, epoch), Some(before)) = (purpose, &commit.before) else { return };
        let (before, after) = (&before.0, &commit.after.0);
        let Some(request) = before.request.as_ref().filter(|_| after.request.is_none()) else { return };
        if request.epoch != epoch || !requests::binds(&request.what, before.priority.unwrap_or_default()) {
            return;
        }
        let candidates = &mut self.nodes[from].candidates;
        if let Some(renews) = candidates.iter_mut().find(|candidate| candidate.who.incarnation == who) {
            renews.requests.taken_out(epoch);
        }
    }

    /// Which of several processes with one incarnation goes on, and what becomes of the others when it lets go.
    fn judge_clones(&mut self, from: usize, key: ElectionKey, purpose: Purpose, commit: &Commit) {
        let Some((before, leadership)) =
            commit.before.as_ref().and_then(|found| Some((&found.0, leadership_of(&found.0)?)))
        else {
            return;
        };
        if let Purpose::Renew(..) | Purpose::Release(..) = purpose {
            let is_own = self.nodes[from].has_written(key, before.beat);
            self.judge(clones::check(leadership, before.beat, is_own));
        }
        let clones = &mut self.election(key).clones;
        match purpose {
            Purpose::Renew(..) => {
                let verdict = clones.renewed(leadership, from);
                self.judge(verdict);
            }
            Purpose::Release(..) => clones.released(leadership),
            Purpose::Claim(who) if who == leadership.who => clones.released(leadership),
            _ => {}
        }
    }
}
