//! Followers are told what there is now, at once; candidates that wait are told in turn that an election is free.
//!
//! ```text
//!  free: first in the queue ─ at once    second ─ 50 ms later, if it is still free    third ─ 100 ms …    everybody else ─ at once
//! ```
//!
//! Every node tells its own followers: it has the state, and with it the queue. If all candidates claimed at once, all but one would lose.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use bellwether_cluster::transport::{Gone, PartSender};
use bellwether_core::{Boot, Clock, ElectionName};

use super::applied::{Applied, Since};
use crate::command::SessionId;
use crate::limits::ELECTIONS_MAX;
use crate::protocol::{News, Subscription, encode};
use crate::state::WaitingView;

/// How much longer each candidate waits than the one before it in the queue: a claim of the one before it is over by then.
const TURN: Duration = Duration::from_millis(50);
/// News in one part. With all the metadata that a command can have, they fit into a frame.
const PART_MAX: usize = 128;

/// One follower, with everything that it follows.
struct Follower {
    sessions: HashSet<SessionId>,
    followed: BTreeMap<ElectionName, Known>,
    /// Elections that are free, and when it is told.
    turns: HashMap<ElectionName, Boot>,
    /// Events up to this revision were looked at; `None` before the first look.
    looked_at: Option<u64>,
}

/// What a follower knows of an election.
#[derive(Clone, Copy)]
struct Known {
    revision: u64,
    /// The index of the last request that it was told of.
    request: u64,
}

/// Tells until the follower is gone.
pub(super) async fn watch(
    applied: &Applied,
    clock: &dyn Clock,
    wanted: Subscription,
    parts: &PartSender,
) -> Result<(), String> {
    if wanted.elections.len() > ELECTIONS_MAX {
        return Err(format!("at most {ELECTIONS_MAX} elections can be followed at once"));
    }
    let mut follower = Follower {
        sessions: wanted.sessions.into_iter().collect(),
        followed: wanted
            .elections
            .into_iter()
            .map(|one| (one.on, Known { revision: one.known, request: one.known_request }))
            .collect(),
        turns: HashMap::new(),
        looked_at: None,
    };
    let mut changes = applied.changes();
    // Even with nothing to tell: the follower hears that the stream is open.
    let mut is_first = true;
    loop {
        changes.borrow_and_update();
        let now = clock.boot();
        let news = follower.look(applied, now);
        if is_first || !news.is_empty() {
            is_first = false;
            if tell(parts, news).await.is_err() {
                return Ok(());
            }
        }
        let next_turn = follower.turns.values().min().map(|at| at.since(clock.boot()));
        tokio::select! {
            changed = changes.changed() => {
                if changed.is_err() {
                    return Ok(());
                }
            }
            () = pause(next_turn) => {}
        }
    }
}

async fn pause(span: Option<Duration>) {
    match span {
        Some(span) => tokio::time::sleep(span).await,
        None => std::future::pending().await,
    }
}

async fn tell(parts: &PartSender, mut news: Vec<News>) -> Result<(), Gone> {
    loop {
        let rest = news.split_off(news.len().min(PART_MAX));
        parts.send(encode(&news)).await?;
        if rest.is_empty() {
            return Ok(());
        }
        news = rest;
    }
}

impl Follower {
    /// What is to be told now.
    fn look(&mut self, applied: &Applied, now: Boot) -> Vec<News> {
        let inside = applied.inside();
        let oldest = || self.followed.values().map(|known| known.request).min().unwrap_or(0);
        let Since { changed, mut requests } = inside.since(self.looked_at.unwrap_or_else(oldest));
        let names: Vec<ElectionName> = match (changed, self.looked_at) {
            (Some(changed), Some(_)) => {
                let due = self.turns.iter().filter(|(_, at)| **at <= now).map(|(on, _)| on.clone());
                changed.into_iter().chain(due).collect()
            }
            // The first look, or one that comes too late for events: everything is looked at.
            _ => self.followed.keys().cloned().collect(),
        };
        self.looked_at = Some(inside.state.revision());
        let mut news = Vec::new();
        for on in names {
            let Some(known) = self.followed.get(&on).copied() else { continue };
            let mut one = inside.news(&on);
            one.request = requests.remove(&on).or_else(|| inside.forgotten_request(&on, known.request));
            one.request = one.request.filter(|(made, _)| *made > known.request);
            let is_change = one.view.revision > known.revision;
            let turn = if is_change { self.turn(&one, &inside.state.waiting(&on), now) } else { Turn::Now };
            match turn {
                Turn::At(at) => _ = self.turns.insert(on.clone(), at),
                Turn::Now | Turn::Never => _ = self.turns.remove(&on),
            }
            if matches!(turn, Turn::Now) && (is_change || one.request.is_some()) {
                let request = one.request.as_ref().map_or(known.request, |(made, _)| *made);
                self.followed.insert(on, Known { revision: one.view.revision, request });
                news.push(one);
            }
        }
        news
    }

    /// When this follower is told that an election is free. What else there is to tell is told at once.
    fn turn(&self, news: &News, queue: &[WaitingView], now: Boot) -> Turn {
        let is_ours = |waiter: &&WaitingView| self.sessions.contains(&waiter.session);
        if news.view.holder.is_some() || !queue.iter().any(|waiter| is_ours(&waiter)) {
            return Turn::Now;
        }
        if let Some(kept_for) = &news.view.reserved_for {
            let is_kept_for_us = queue.iter().filter(is_ours).any(|waiter| waiter.who.id == *kept_for);
            return if is_kept_for_us { Turn::Now } else { Turn::Never };
        }
        let place = queue.iter().position(|waiter| is_ours(&waiter)).unwrap_or(0);
        let since = self.turns.get(&news.on).copied();
        match (place, since) {
            (0, _) => Turn::Now,
            (_, Some(at)) if at <= now => Turn::Now,
            (_, Some(at)) => Turn::At(at),
            (place, None) => Turn::At(now + TURN * u32::try_from(place).unwrap_or(u32::MAX)),
        }
    }
}

enum Turn {
    Now,
    At(Boot),
    /// It is kept for somebody else; its next change is told.
    Never,
}
