//! When may a follower take over? Pure judgement, written once for every register.
//!
//! A follower never asks what time the record says it is. It asks how long *it* has seen the record without a sign
//! of life, on its own clock, and compares that with the ttl in the record. So nobody's clock is compared with
//! anybody else's, and the argument for exclusion is short:
//!
//! - the leader believes from the instant before its write for ttl − margin;
//! - a follower first sees that write after it happened, and waits for the whole ttl from then;
//! - if the record vanishes or falls back, the leader's last write was before that was noticed, and the wait is
//!   the whole ttl from the notice.
//!
//! It owns what was seen of each election and since when. It assumes that `now` is read *after* the answer that
//! showed the record. It leaves the writing to [`Lease`](crate::Lease).

use std::collections::HashMap;
use std::time::Duration;

use bellwether_core::{Bid, Boot, ElectionName, Epoch, Pause, Paused, Proof, Seen};

use crate::Record;

/// How a record was come by, which decides what an older version means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Read from the store now: an older version than before means that the store was rolled back.
    Load,
    /// Told by a watch, which may repeat old news: an older version is dropped.
    Watch,
    /// Read, but something was learnt since the read began, so that it may be older than that: as good as told.
    Overtaken,
    /// Read from a store that takes away by itself what has run out, and nothing was found: no reason to think that somebody
    /// removed it. The wait for what was seen goes on, and does not begin anew.
    TakenAway,
}

/// What was seen of each election, and since when.
#[derive(Clone, Debug)]
pub struct Observations<V> {
    sights: HashMap<ElectionName, Sight<V>>,
}

#[derive(Clone, Debug)]
struct Sight<V> {
    found: Option<(Record, V)>,
    /// Records that kept others out and were not released, but vanished or were rolled back; oldest loss first.
    ghosts: Vec<Ghost>,
    /// When the present sign of life, or the present absence of one, was first seen.
    since: Boot,
    /// A sign of life came while we watched.
    alive: bool,
    /// Counts what was learnt: what was known already, and old news, is not.
    learnt: u64,
    /// Until when a release that the watch told of may be acted on without a read.
    fresh_until: Option<Boot>,
    /// The highest epoch that was ever seen. A store that falls back may issue it again; this candidate must not take it.
    highest: Epoch,
    /// The pause in the present record, counted from when it was first seen. Unlike a wait for a leader it does not begin anew when the
    /// connection was away: nobody acts on what it protects.
    paused: Option<Paused>,
}

/// A leadership that the store has forgotten and its leader may not have.
///
/// It counts as held for its whole ttl from when the loss was noticed, and not from the last sign of life that was
/// seen here: the leader may have renewed after that, up to the moment of the loss, and nobody can see that any
/// more. Whatever stands in its place meanwhile changes nothing, because whoever wrote that may never have seen it.
#[derive(Clone, Debug)]
struct Ghost {
    record: Record,
    since: Boot,
    /// That it is gone was read and not only told. "Nothing" has no version, so old news of it looks like new, and
    /// the record may have been there, and been renewed, after that: the wait begins with the first read.
    certain: bool,
}

/// News of a release that is older than this is read again before anybody acts on it.
const FRESH: Duration = Duration::from_millis(100);

/// Leaderships of one election that the store may forget within one ttl before the first is no longer minded.
const GHOSTS_MAX: usize = 8;

impl Ghost {
    /// Each is minded by itself: one that is the bidder's own keeps only others away, and must not stand for one
    /// that keeps the bidder away.
    fn rises(ghosts: &mut Vec<Ghost>, record: Record, since: Boot, certain: bool) {
        if !record.is_held() {
            return;
        }
        ghosts.retain(|ghost| ghost.record.ttl.is_none_or(|ttl| since < ghost.since + ttl));
        if ghosts.len() == GHOSTS_MAX {
            ghosts.remove(0);
        }
        ghosts.push(Ghost { record, since, certain });
    }

    /// Whether this is the same leadership come back, or its release: then nothing has to be remembered of it.
    ///
    /// A store that fell back may issue an epoch a second time, and a release names nobody: it is this leadership's only if it was
    /// acquired at the same instant.
    fn is_settled_by(&self, found: &Record) -> bool {
        let released = found.holder.is_none() && self.record.acquired == found.acquired;
        self.record.epoch == found.epoch && (released || self.record.holder == found.holder)
    }
}

impl<V> Sight<V> {
    /// Until when the election is paused, if it is.
    fn paused_until(&self, now: Boot) -> Option<Boot> {
        self.paused.as_ref()?.at(now).map(|paused| paused.until)
    }

    /// How long news of the release of the leadership seen last may be acted on without a read. Never beyond the end of that
    /// leadership as it was known: news can lie unread while a process is stopped, and the store may be in another life by then.
    fn fresh(&self, now: Boot, new: &Record, source: Source) -> Option<Boot> {
        let (old, _) = self.found.as_ref()?;
        let released =
            old.is_held() && !new.is_held() && !new.broken && old.epoch == new.epoch && old.epoch.is_some();
        let end = self.since + old.ttl?;
        (source == Source::Watch && released).then(|| end.min(now + FRESH))
    }
}

/// What a candidate may do about an election now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimVerdict<V> {
    /// Write at that version; `None` creates.
    Write {
        /// What is replaced.
        at: Option<V>,
        /// On evidence of a crash rather than of silence or release.
        after_crash: bool,
    },
    /// Somebody is in the way until then, unless they show another sign of life.
    Wait(Boot),
}

impl<V: Clone + Ord> Default for Observations<V> {
    fn default() -> Observations<V> {
        Observations { sights: HashMap::new() }
    }
}

impl<V: Clone + Ord> Observations<V> {
    /// Takes in what was found; `now` was read after the answer came. False if it was old news.
    pub fn saw(&mut self, now: Boot, on: &ElectionName, found: Option<(Record, V)>, source: Source) -> bool {
        let epoch = found.as_ref().and_then(|(record, _)| record.epoch).unwrap_or(Epoch::ZERO);
        let pause = found.as_ref().and_then(|(record, _)| record.paused.clone());
        let Some(sight) = self.sights.get_mut(on) else {
            let sight = Sight {
                found,
                ghosts: Vec::new(),
                since: now,
                alive: false,
                learnt: 1,
                fresh_until: None,
                highest: epoch,
                paused: pause.map(|pause| pause.seen(now, None)),
            };
            self.sights.insert(on.clone(), sight);
            return true;
        };
        sight.highest = sight.highest.max(epoch);
        let Some((record, version)) = found else {
            sight.fresh_until = None;
            let vanished = sight.found.take();
            let news = vanished.is_some();
            sight.learnt += u64::from(news);
            let read = matches!(source, Source::Load | Source::TakenAway);
            if let Some((record, _)) = vanished {
                let since = if source == Source::TakenAway { sight.since } else { now };
                Ghost::rises(&mut sight.ghosts, record, since, read);
            }
            for ghost in sight.ghosts.iter_mut().filter(|ghost| !ghost.certain && read) {
                (ghost.since, ghost.certain) = (now, true);
            }
            sight.alive = false;
            // Whoever may remove the record may end the pause as well.
            sight.paused = None;
            return news;
        };
        let (renewed, rolled_back) = match &sight.found {
            None => (true, false),
            // What a store gives back of a write may differ from what was handed to it in what it adds itself and in how
            // finely it tells the time: the same beat at the same version is the same record.
            Some((old, before)) if version == *before && (record == *old || old.is_same_beat(&record)) => {
                sight.found = Some((record, version));
                return false;
            }
            Some((_, before)) if version < *before && source != Source::Load => return false,
            Some((old, before)) => {
                // The same version with another content, or an older epoch under a newer version, is a store that went back and
                // counted up again.
                let back = version <= *before || is_older(record.epoch, old.epoch);
                (!old.is_same_beat(&record), back)
            }
        };
        sight.learnt += 1;
        sight.paused = pause.map(|pause| pause.seen(now, sight.paused.as_ref()));
        sight.fresh_until = sight.fresh(now, &record, source).filter(|_| !rolled_back);
        let before = sight.found.replace((record, version));
        sight.alive = !rolled_back && if renewed { before.is_some() } else { sight.alive };
        if let Some((old, _)) = before.filter(|_| rolled_back) {
            Ghost::rises(&mut sight.ghosts, old, now, true);
        }
        if renewed || rolled_back {
            sight.since = now;
        }
        let found = sight.found.as_ref();
        sight.ghosts.retain(|ghost| !found.is_some_and(|(record, _)| ghost.is_settled_by(record)));
        true
    }

    /// Changes whenever something is learnt: compared before and after a read, it tells whether to call that
    /// [`Source::Load`] or [`Source::Overtaken`].
    pub fn learnt(&self, on: &ElectionName) -> u64 {
        self.sights.get(on).map_or(0, |sight| sight.learnt)
    }

    /// The connection was away, or the store may be in another life: every wait starts anew.
    pub fn restart(&mut self, now: Boot) {
        for sight in self.sights.values_mut() {
            sight.since = now;
            sight.alive = false;
            sight.fresh_until = None;
            for ghost in &mut sight.ghosts {
                ghost.since = now;
            }
        }
    }

    /// The connection fell silent: what it told last may have been on its way for long.
    pub fn doubt(&mut self) {
        for sight in self.sights.values_mut() {
            sight.fresh_until = None;
        }
    }

    /// Whether the watch has just told of a release, so that a claim needs no read: what was told is replaced
    /// only if it is still what is there.
    pub fn is_fresh_release(&self, now: Boot, on: &ElectionName) -> bool {
        let sight = self.sights.get(on);
        sight.is_some_and(|sight| {
            let is_fresh = sight.fresh_until.is_some_and(|until| now < until);
            // A pause may have been ended since: only a read can tell.
            is_fresh && sight.ghosts.is_empty() && sight.paused_until(now).is_none()
        })
    }

    /// Forgets an election that nobody here takes part in any more.
    pub fn forget(&mut self, on: &ElectionName) {
        self.sights.remove(on);
    }

    /// The record as it was last seen, with its version.
    pub fn last(&self, on: &ElectionName) -> Option<&(Record, V)> {
        self.sights.get(on).and_then(|sight| sight.found.as_ref())
    }

    /// The highest epoch that was ever seen.
    pub fn epoch(&self, on: &ElectionName) -> Epoch {
        self.sights.get(on).map_or(Epoch::ZERO, |sight| sight.highest)
    }

    /// What is left of the pause in a record, for whoever writes the record again; `None` once it is over.
    pub fn left_of(&self, now: Boot, on: &ElectionName, pause: &Pause) -> Option<Pause> {
        let seen = self.sights.get(on).and_then(|sight| sight.paused.as_ref());
        let seen = seen.filter(|seen| (seen.at, &seen.by) == (pause.at, &pause.by));
        seen.map_or(Some(pause.clone()), |seen| pause.left(seen.until, now))
    }

    /// Whether the election is paused, as far as is known.
    pub fn is_paused(&self, now: Boot, on: &ElectionName) -> bool {
        self.sights.get(on).is_some_and(|sight| sight.paused_until(now).is_some())
    }

    /// What this bidder may do now. `dead` says whether the holder is proven to be dead.
    pub fn verdict(&self, now: Boot, on: &ElectionName, bid: &Bid, dead: bool) -> ClaimVerdict<V> {
        let free = |at| ClaimVerdict::Write { at, after_crash: false };
        let Some(sight) = self.sights.get(on) else { return free(None) };
        let verdict = match &sight.found {
            None => free(None),
            Some((record, at)) if !record.is_held() => match &record.reserved {
                Some(kept) if kept.candidate != bid.who.id && now < sight.since + kept.span => {
                    ClaimVerdict::Wait(sight.since + kept.span)
                }
                _ => free(Some(at.clone())),
            },
            Some((record, at)) if is_mine(record, bid) => free(Some(at.clone())),
            Some((_, at)) if dead => ClaimVerdict::Write { at: Some(at.clone()), after_crash: true },
            Some((record, at)) => {
                let until = sight.since + ttl(record, bid.ttl);
                if now >= until { free(Some(at.clone())) } else { ClaimVerdict::Wait(until) }
            }
        };
        let others = sight.ghosts.iter().filter(|ghost| !is_mine(&ghost.record, bid));
        let haunted = others.map(|ghost| ghost.since + ttl(&ghost.record, bid.ttl)).max();
        // A pause keeps everybody out: proof of a death, a reservation and the bidder's own record are no way past it.
        let barred = haunted.max(sight.paused_until(now));
        match (verdict, barred.filter(|until| now < *until)) {
            (verdict, None) => verdict,
            (ClaimVerdict::Write { .. }, Some(until)) => ClaimVerdict::Wait(until),
            (ClaimVerdict::Wait(other), Some(until)) => ClaimVerdict::Wait(until.max(other)),
        }
    }

    /// What is known, in the terms of the core. `own_ttl` stands in where the record names none.
    pub fn seen(&self, now: Boot, on: &ElectionName, own_ttl: Option<Duration>, dead: bool) -> Seen {
        let Some(sight) = self.sights.get(on) else { return Seen::nothing() };
        let end = |record: &Record, since: Boot| own_ttl.or(record.ttl).map(|own| since + ttl(record, own));
        let haunted = sight.ghosts.iter().filter_map(|ghost| end(&ghost.record, ghost.since)).max();
        let Some((record, _)) = &sight.found else {
            let Some(ghost) = sight.ghosts.last() else { return Seen::nothing() };
            let (epoch, ttl) = (ghost.record.epoch, ghost.record.ttl);
            return Seen { epoch, ttl, free_at: haunted, ..Seen::nothing() };
        };
        let proof = match (record.is_held(), dead, sight.alive) {
            (false, ..) => Proof::Released,
            (true, true, _) => Proof::Dead,
            (true, false, true) => Proof::Alive,
            (true, false, false) => Proof::Record,
        };
        let paused = sight.paused.as_ref().and_then(|paused| paused.at(now));
        let kept = record.reserved.as_ref().filter(|_| !record.is_held() && paused.is_none());
        let free_at = match kept {
            Some(kept) => Some(sight.since + kept.span),
            None if record.is_held() && dead => Some(now),
            None if record.is_held() => end(record, sight.since),
            None => None,
        };
        Seen {
            holder: record.holder.clone(),
            epoch: record.epoch,
            ttl: record.ttl,
            proof,
            free_at: free_at.max(haunted.filter(|until| now < *until)),
            cooldown: None,
            priority: record.priority,
            acquired: record.acquired,
            renewed: record.renewed,
            reserved_for: kept.map(|kept| kept.candidate.clone()),
            paused: paused.map(Box::new),
            metadata: record.metadata.clone(),
        }
    }
}

fn is_mine(record: &Record, bid: &Bid) -> bool {
    let holder = record.holder.as_ref();
    holder.is_some_and(|holder| holder.is(&bid.who) || bid.danger_reclaim && holder.id == bid.who.id)
}

fn is_older(new: Option<Epoch>, old: Option<Epoch>) -> bool {
    new.zip(old).is_some_and(|(new, old)| new < old)
}

/// The record's; `own` where it names none.
fn ttl(record: &Record, own: Duration) -> Duration {
    record.ttl.unwrap_or(own)
}

#[cfg(test)]
mod tests;
