//! The contract, by the parts beside this one. Calls that change anything run to their end, whatever becomes of their caller.

use std::sync::Arc;

use bellwether_backend::{
    Backend, Capabilities, Creation, Discarded, Finding as Examined, Followers, Fut, Notices, Past, Probing,
    check_note, lock,
};
use bellwether_core::{
    Bid, Boot, Candidate, CandidateId, ElectionName, ErrorKind, Grant, Outcome, ReleaseOptions, Request,
    Seen, StoreError,
};
use futures_util::stream;
use tokio::runtime::Handle;

use super::{CALL_LIMIT, Raft, Shared, checkup, watch};
use crate::answer::{Answer, ElectionView};
use crate::command::Command;
use crate::errors::{BACKEND, refused, senseless};
use crate::protocol::{Finding, Query, Question, Reply, Text};

impl Backend for Raft {
    fn name(&self) -> &'static str {
        BACKEND
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::REGISTER.with(|can| {
            can.session_bound = true;
            can.create_once = true;
            can.pauses = false;
        })
    }

    fn claim<'a>(&'a self, on: &'a ElectionName, bid: &'a Bid) -> Fut<'a, Outcome<Grant>> {
        let call = Arc::clone(&self.0).claim(on.clone(), bid.clone());
        Box::pin(async { finish(call).await.unwrap_or_else(Outcome::Unknown) })
    }

    fn renew<'a>(&'a self, on: &'a ElectionName, grant: &'a Grant, sent: Boot) -> Fut<'a, Outcome<Grant>> {
        let (shared, on, grant) = (Arc::clone(&self.0), on.clone(), grant.clone());
        let call = async move { shared.renew(&on, &grant, sent).await };
        Box::pin(async { finish(call).await.unwrap_or_else(Outcome::Unknown) })
    }

    fn release<'a>(
        &'a self,
        on: &'a ElectionName,
        grant: &'a Grant,
        how: &'a ReleaseOptions,
    ) -> Fut<'a, Outcome<()>> {
        let call = Arc::clone(&self.0).release(on.clone(), grant.clone(), how.clone());
        Box::pin(async { finish(call).await.unwrap_or_else(Outcome::Unknown) })
    }

    fn observe<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Seen, StoreError>> {
        Box::pin(async move { Ok(self.0.view(on).await?.seen()) })
    }

    fn followers<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Option<Followers>, StoreError>> {
        Box::pin(async move {
            let Finding::Queue(queue) = self.0.read(Query::Queue(on.clone())).await? else {
                return Err(senseless());
            };
            let mut ids: Vec<CandidateId> = queue.into_iter().map(|Text(id)| id).collect();
            ids.sort();
            ids.dedup();
            Ok(Some(Followers { ids, is_complete: true }))
        })
    }

    fn request<'a>(&'a self, on: &'a ElectionName, what: &'a Request) -> Fut<'a, Outcome<()>> {
        let command = Command::Request { on: on.clone(), epoch: what.epoch, ask: (&what.what).into() };
        let shared = Arc::clone(&self.0);
        let call = async move {
            match shared.propose(&command, CALL_LIMIT).await {
                Ok(Answer::Done) => Outcome::Done(()),
                Ok(Answer::Denied(view)) => Outcome::Denied(view.seen()),
                Ok(Answer::Refused(refusal)) => Outcome::failed(refused(&refusal)),
                Ok(_) => Outcome::Unknown(senseless()),
                Err(error) => Outcome::failed(error),
            }
        };
        Box::pin(async { finish(call).await.unwrap_or_else(Outcome::Unknown) })
    }

    fn follow(&self, on: &ElectionName) {
        self.0.followed.send_modify(|interest| *interest.elections.entry(on.clone()).or_default() += 1);
        watch::begin(&self.0);
    }

    fn unfollow(&self, on: &ElectionName) {
        let is_last = self.0.followed.send_if_modified(|interest| match interest.elections.get_mut(on) {
            Some(followers) if *followers > 1 => {
                *followers -= 1;
                false
            }
            _ => interest.elections.remove(on).is_some(),
        });
        if is_last {
            lock(&self.0.watching).forget(on);
            self.0.notices.forget(on);
        }
    }

    fn unwatched(&self, on: &ElectionName) -> Option<StoreError> {
        let _ = on;
        lock(&self.0.watching).why_silent()
    }

    fn retire(&self, on: &ElectionName, who: &Candidate) {
        let Some((session, gone)) = lock(&self.0.candidates).retire(on, who.incarnation) else { return };
        // Whoever looks after the session tells the cluster again, if this is lost.
        let Ok(runtime) = Handle::try_current() else { return };
        let shared = Arc::clone(&self.0);
        runtime.spawn(async move { shared.tell_gone(&session, gone).await });
    }

    fn signals(&self) -> Notices {
        let (notices, alive) = (Arc::clone(&self.0.notices), self.0.alive.subscribe());
        Box::pin(stream::unfold((notices, alive), |(notices, mut alive)| async move {
            let notice = tokio::select! {
                biased;
                notice = notices.next() => notice,
                _ = alive.changed() => return None,
            };
            Some((notice, (notices, alive)))
        }))
    }

    fn remember<'a>(&'a self, on: &'a ElectionName, past: &'a Past) -> Fut<'a, Result<(), StoreError>> {
        let command = Command::Remember { on: on.clone(), past: past.into() };
        let shared = Arc::clone(&self.0);
        let call = async move {
            match shared.propose(&command, CALL_LIMIT).await? {
                Answer::Done => Ok(()),
                Answer::Refused(refusal) => Err(refused(&refusal)),
                _ => Err(senseless()),
            }
        };
        Box::pin(async { finish(call).await? })
    }

    fn history<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Vec<Past>, StoreError>> {
        Box::pin(async move {
            match self.0.read(Query::History(on.clone())).await? {
                Finding::History(lines) => Ok(lines.into_iter().map(Past::from).collect()),
                _ => Err(senseless()),
            }
        })
    }

    fn elections(&self) -> Fut<'_, Result<Vec<ElectionName>, StoreError>> {
        Box::pin(async move {
            match self.0.read(Query::Elections).await? {
                Finding::Elections(names) => Ok(names.into_iter().map(|Text(name)| name).collect()),
                _ => Err(senseless()),
            }
        })
    }

    fn create_once<'a>(&'a self, name: &'a ElectionName, bytes: &'a [u8]) -> Fut<'a, Creation> {
        if let Err(why) = check_note(bytes) {
            let error = StoreError::new(ErrorKind::InvalidInput, BACKEND, why);
            return Box::pin(async { Creation::Refused(error) });
        }
        let command = Command::CreateOnce { name: name.clone(), bytes: bytes.to_vec() };
        let shared = Arc::clone(&self.0);
        let call = async move {
            match shared.propose(&command, CALL_LIMIT).await {
                Ok(Answer::Created) => Creation::Created,
                Ok(Answer::Exists(bytes)) => Creation::Exists(bytes),
                Ok(Answer::Refused(refusal)) => Creation::failed(refused(&refusal)),
                Ok(_) => Creation::Unknown(senseless()),
                Err(error) => Creation::failed(error),
            }
        };
        Box::pin(async { finish(call).await.unwrap_or_else(Creation::Unknown) })
    }

    fn read_once<'a>(&'a self, name: &'a ElectionName) -> Fut<'a, Result<Option<Vec<u8>>, StoreError>> {
        Box::pin(async move {
            match self.0.read(Query::Note(name.clone())).await? {
                Finding::Note(note) => Ok(note),
                _ => Err(senseless()),
            }
        })
    }

    fn checkup<'a>(&'a self, probing: Probing<'a>) -> Fut<'a, Vec<Examined>> {
        Box::pin(checkup::checkup(&self.0, probing))
    }

    fn danger_discard<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Discarded, StoreError>> {
        Box::pin(async move {
            match self.0.propose(&Command::DangerDiscard { on: on.clone() }, CALL_LIMIT).await? {
                Answer::Done => Ok(Discarded::Gone),
                Answer::Denied(_) => Ok(Discarded::Remains(format!("the election {on}, which is in use"))),
                Answer::Refused(refusal) => Err(refused(&refusal)),
                _ => Err(senseless()),
            }
        })
    }
}

impl Shared {
    pub(super) async fn view(&self, on: &ElectionName) -> Result<ElectionView, StoreError> {
        match self.read(Query::Election(on.clone())).await? {
            Finding::Election(view) => Ok(*view),
            _ => Err(senseless()),
        }
    }

    async fn read(&self, query: Query) -> Result<Finding, StoreError> {
        match self.link.ask(&Question::Read(query), CALL_LIMIT).await?.1 {
            Reply::Read(finding) => Ok(finding),
            Reply::Refused { why } => Err(StoreError::new(ErrorKind::InvalidInput, BACKEND, why)),
            _ => Err(senseless()),
        }
    }
}

/// Runs a call to its end even if its caller is dropped: a claim that nobody waits for must not go unnoticed.
async fn finish<T: Send + 'static>(call: impl Future<Output = T> + Send + 'static) -> Result<T, StoreError> {
    let ended = tokio::spawn(call).await;
    ended.map_err(|_| StoreError::new(ErrorKind::Bug, BACKEND, "a call ended in a panic"))
}
