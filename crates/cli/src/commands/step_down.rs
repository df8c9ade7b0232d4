//! `bellwether step-down`: ask the leader, wherever it runs, to hand over, and say who took over.

use std::time::Duration;

use bellwether::backend::{Ask, Request};
use bellwether::backend::{Backend, Notices};
use bellwether::{Boot, CandidateId, ElectionName, Error, Followers, Store, boot_now};
use bellwether::{Epoch, Holder, Proof, Seen};
use serde_json::json;
use tokio::time::timeout;

use super::signals::Signals;
use super::status::followers;
use super::watch::next_change;
use crate::args::{Format, Global, StepDown};
use crate::exit::{Exit, Failure};
use crate::{backend, output};

/// Where the record does not tell its ttl.
const USUAL_TTL: Duration = Duration::from_secs(15);

/// The least time that a leader has for stopping its work. How long it really takes is its own affair.
const RELEASING_MIN: Duration = Duration::from_secs(30);

/// The least time that others have for taking over. Most hear of the release at once; some look at intervals.
const TAKING_OVER_MIN: Duration = Duration::from_secs(5);

/// The longest time ahead that a step-down can be asked for.
const LATER_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Asks, waits until somebody leads again, and says how long nobody did.
pub(crate) async fn step_down(global: &Global, step_down: &StepDown) -> Result<Exit, Failure> {
    let on = &backend::election(global, step_down.election.as_ref())?;
    let store = backend::connect(global)?;
    let mut leave = Signals::new()?;
    let watched = store.backend();
    let mut signals = watched.signals();
    watched.follow(on);
    let before = watched.observe(on).await?;
    // Before it changes who leads, and with that who follows.
    let followers = followers(&store, on).await;
    if let Some(after) = step_down.after {
        return ask_for_later(global, &store, on, &before, step_down.to.clone(), after).await;
    }
    let asked = StepDownRequest::ask(&store, on, &before, step_down.to.clone(), followers).await?;
    let mut free_since = None;
    let outcome = tokio::select! {
        outcome = asked.outcome(&**watched, &mut signals, &mut free_since) => outcome?,
        () = leave.leave() => return Err(Failure::new(Exit::NotLed, "interrupted before anybody took over")),
    };
    let Some((next, at)) = outcome else {
        return asked.report(global, None, None, free_since.is_some());
    };
    // If the notice of the next leader came before that of the release, nobody led for less than this.
    let gap = at.since(free_since.unwrap_or(asked.at));
    asked.report(global, Some(&next), next.leader().map(|_| gap), true)
}

/// Asks for a step-down at a later time, and says only that the store has the request.
async fn ask_for_later(
    global: &Global,
    store: &Store,
    on: &ElectionName,
    before: &Seen,
    to: Option<CandidateId>,
    after: Duration,
) -> Result<Exit, Failure> {
    if after > LATER_MAX {
        let most = output::span(LATER_MAX);
        return Err(Failure::new(
            Exit::Usage,
            format!("--in is at most {most}: a leader rarely lasts longer"),
        ));
    }
    can_take_over(on, before, to.as_ref())?;
    let asked = store.ask_to_step_down_later(on, to.clone(), after).await;
    let epoch = asked.map_err(|error| not_asked(on, to.as_ref(), error))?;
    let old = before.leader();
    if global.output == Format::Json {
        let text = json!({
            "election": on.as_str(),
            "from": old.map(CandidateId::as_str),
            "from_epoch": epoch.get(),
            "to": to.as_ref().map(CandidateId::as_str),
            "in_ms": after.as_millis() as u64,
        });
        output::line(&text.to_string())?;
    } else {
        let old = old.map_or("the leader", CandidateId::as_str);
        let to = to.map(|to| format!(" to {to}")).unwrap_or_default();
        output::line(&format!("{old} was asked to hand {on} over{to} in {}", output::span(after)))?;
    }
    Ok(Exit::Clean)
}

/// Whether there is somebody to ask, and nothing that keeps out whoever is named.
fn can_take_over(on: &ElectionName, before: &Seen, to: Option<&CandidateId>) -> Result<(), Failure> {
    somebody_leads(on, before)?;
    match (&before.paused, to) {
        (Some(paused), Some(to)) => {
            let sentence =
                format!("{to} cannot take over: {on} is {}; unpause it first", output::paused(paused));
            Err(Failure::new(Exit::NotLed, sentence))
        }
        _ => Ok(()),
    }
}

/// A leader that is alive and does not show its id can be asked as well.
fn somebody_leads(on: &ElectionName, before: &Seen) -> Result<(), Failure> {
    match before.leader().is_none() && before.proof != Proof::Alive {
        true => Err(Failure::new(Exit::NotLed, format!("nobody leads {on}: there is nobody to ask"))),
        false => Ok(()),
    }
}

fn not_asked(on: &ElectionName, to: Option<&CandidateId>, error: Error) -> Failure {
    match (&error, to) {
        (Error::AlreadyLeader, Some(to)) => {
            Failure::new(Exit::Usage, format!("{to} leads {on} already: there is nothing to hand over"))
        }
        _ => error.into(),
    }
}

/// A leadership that was asked to end.
struct StepDownRequest<'a> {
    on: &'a ElectionName,
    holder: Option<Holder>,
    epoch: Epoch,
    ttl: Duration,
    to: Option<CandidateId>,
    /// Who could have taken over when it was asked, where the store knows.
    followers: Option<Followers>,
    at: Boot,
}

impl<'a> StepDownRequest<'a> {
    async fn ask(
        store: &Store,
        on: &'a ElectionName,
        before: &Seen,
        to: Option<CandidateId>,
        followers: Option<Followers>,
    ) -> Result<StepDownRequest<'a>, Failure> {
        can_take_over(on, before, to.as_ref())?;
        let asked = store.ask_to_step_down(on, to.clone()).await;
        let epoch = asked.map_err(|error| not_asked(on, to.as_ref(), error))?;
        let (holder, ttl) = (before.holder.clone(), before.ttl.unwrap_or(USUAL_TTL));
        Ok(StepDownRequest { on, holder, epoch, ttl, to, followers, at: boot_now() })
    }

    /// The next leadership, and when it was seen; `None` when none came in time.
    ///
    /// # Errors
    /// The store could not tell.
    async fn outcome(
        &self,
        watched: &dyn Backend,
        signals: &mut Notices,
        free_since: &mut Option<Boot>,
    ) -> Result<Option<(Seen, Boot)>, Failure> {
        let mut again = self.at + self.ttl;
        loop {
            let until = match *free_since {
                None => self.at + (self.ttl * 2).max(RELEASING_MIN),
                Some(free) => free + self.ttl.max(TAKING_OVER_MIN),
            };
            let asks_again = free_since.is_none() && again < until;
            let wake = if asks_again { again } else { until };
            let mut seen = match timeout(wake.since(boot_now()), next_change(signals, self.on)).await {
                Ok(Some(seen)) => seen,
                Ok(None) => {
                    let failure = Failure::new(Exit::Unavailable, "it reports no more changes");
                    return Err(self.unknown(failure));
                }
                Err(_) if asks_again => {
                    // The request may be lost, and the store tells a leader of it only once. A leader that is already releasing ignores it.
                    let what = Ask::StepDown { to: self.to.clone() };
                    let _ = watched.request(self.on, &Request { epoch: self.epoch, what }).await;
                    again = boot_now() + self.ttl;
                    continue;
                }
                Err(_) => {
                    // Where nothing was heard, it may be the store that is silent, and not the leader.
                    self.look(watched).await?;
                    return Ok(None);
                }
            };
            if self.is_followed_by(&seen) && !self.is_before(&seen) {
                // It may be old news, of somebody who led before.
                seen = self.look(watched).await?;
            }
            if matches!(seen.proof, Proof::Released | Proof::Absent | Proof::Dead) {
                free_since.get_or_insert_with(boot_now);
                if seen.paused.is_some() {
                    // Nobody takes over: there is nothing to wait for.
                    return Ok(Some((seen, boot_now())));
                }
            } else if self.is_followed_by(&seen) {
                return Ok(Some((seen, boot_now())));
            }
        }
    }

    async fn look(&self, watched: &dyn Backend) -> Result<Seen, Failure> {
        watched.observe(self.on).await.map_err(|error| self.unknown(error.into()))
    }

    fn unknown(&self, failure: Failure) -> Failure {
        let sentence = format!(
            "{} was asked to step down, and the store does not say who leads now: {failure}",
            self.old()
        );
        Failure::new(failure.exit(), sentence)
    }

    fn old(&self) -> &str {
        self.holder.as_ref().map_or("the leader", |holder| holder.id.as_str())
    }

    /// Whether somebody leads after this leadership. A leader of another program may have no epoch, or one of its own counting.
    fn is_followed_by(&self, seen: &Seen) -> bool {
        let foreign = seen.holder.as_ref().is_some_and(|holder| holder.incarnation.is_none());
        seen.leader().is_some() && (self.is_before(seen) || foreign && seen.holder != self.holder)
    }

    fn is_before(&self, seen: &Seen) -> bool {
        seen.epoch.is_some_and(|epoch| epoch > self.epoch)
    }

    /// Prints who leads now. It is a success if the candidate of `--to` took over, or without `--to`, any other candidate, or
    /// nobody because the election is paused.
    fn report(
        &self,
        global: &Global,
        next: Option<&Seen>,
        gap: Option<Duration>,
        is_released: bool,
    ) -> Result<Exit, Failure> {
        let on = self.on;
        let old = self.old();
        let new = next.and_then(Seen::leader);
        if global.output == Format::Json && is_released {
            let text = json!({
                "election": on.as_str(),
                "from": old,
                "from_epoch": self.epoch.get(),
                "to": new.map(CandidateId::as_str),
                "to_epoch": next.and_then(|next| next.epoch).map(Epoch::get),
                "gap_ms": gap.map(|gap| gap.as_secs_f64() * 1_000.0),
            });
            output::line(&text.to_string())?;
        }
        let meant = self
            .to
            .as_ref()
            .map_or("no other candidate took over".to_owned(), |to| format!("{to} did not take over"));
        let sentence = match (next, new, gap) {
            _ if !is_released => {
                let waited = output::span((self.ttl * 2).max(RELEASING_MIN));
                let sentence = format!(
                    "{old} was asked to step down, and has not released the leadership within {waited}: is it alive?"
                );
                return Err(Failure::new(Exit::Unavailable, sentence));
            }
            (Some(next), Some(_), _) if next.holder == self.holder => {
                format!("{meant}: {old} leads {on} again")
            }
            (Some(_), Some(new), Some(gap)) if self.to.as_ref().is_none_or(|to| to == new) => {
                if global.output == Format::Table {
                    output::line(&format!("{old} handed over to {new}; nobody led for {gap:.1?}"))?;
                }
                return Ok(Exit::Clean);
            }
            (_, Some(new), _) => format!("{meant}: {new} leads {on} now"),
            (Some(Seen { paused: Some(paused), .. }), None, _) => {
                if global.output == Format::Table {
                    let left = output::paused(paused);
                    output::line(&format!(
                        "{old} released the leadership, and nobody leads {on}: it is {left}"
                    ))?;
                }
                return Ok(Exit::Clean);
            }
            (_, None, _) => format!("{meant}: {old} released the leadership, and nobody leads {on}"),
        };
        let there_were = match &self.followers {
            None => String::new(),
            Some(followers) if followers.ids.is_empty() && followers.is_complete => {
                "; nobody followed".to_owned()
            }
            Some(followers) => format!("; the followers were {followers}"),
        };
        Err(Failure::new(Exit::NotLed, sentence + &there_were))
    }
}

#[cfg(all(test, feature = "postgres"))]
mod tests {
    use bellwether::backend::Notice;
    use bellwether::backend::Signal;
    use bellwether::postgres::{Config, Environment, from_config};
    use futures_util::{StreamExt, stream};

    use super::*;

    #[tokio::test]
    async fn a_store_that_fails_after_the_request_is_blamed_and_not_the_leader() {
        let on = ElectionName::new("job").expect("a name");
        let holder = |id: &str| Some(Holder { id: CandidateId::new(id).expect("an id"), incarnation: None });
        let (epoch, at) = (Epoch::ZERO, boot_now());
        let asked = StepDownRequest {
            on: &on,
            holder: holder("a"),
            epoch,
            ttl: USUAL_TTL,
            to: None,
            at,
            followers: None,
        };
        // Another program's leader: nobody knows from this alone whether it is older than the request.
        let next = Seen { holder: holder("b"), proof: Proof::Record, ..Seen::nothing() };
        let notice = Notice { election: Some(on.clone()), signal: Signal::Changed(next) };
        let mut signals: Notices = stream::iter([notice]).chain(stream::pending()).boxed();
        let directory = tempfile::tempdir().expect("a temporary directory");
        let url = format!("postgres:///db?host={}", directory.path().display());
        let config = Config::from_url_in(&url, &Environment::default()).expect("a URL");
        let nowhere = from_config(config, std::sync::Arc::new(bellwether::SystemClock));
        let failure = asked.outcome(&nowhere, &mut signals, &mut None).await.expect_err("no store is there");
        assert_eq!(failure.exit(), Exit::Unavailable);
        assert!(
            failure.to_string().starts_with("a was asked to step down, and the store does not say"),
            "{failure}"
        );
    }
}
