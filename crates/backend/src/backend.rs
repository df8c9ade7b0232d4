//! What an election needs of a store.

use std::any::Any;
use std::pin::Pin;

use bellwether_core::{
    Bid, Boot, Candidate, ElectionName, ErrorKind, Grant, Outcome, Pause, ReleaseOptions, Request, Seen,
    Signal, StoreError,
};
use futures_util::Stream;

use crate::{Capabilities, Creation, Discarded, Finding, Followers, Past, Probing, once};

/// A future that a trait object can return.
pub type Fut<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A stream that a trait object can return.
pub type Notices = Pin<Box<dyn Stream<Item = Notice> + Send>>;

/// News from the store: about one election, or about the connection and so about all of them.
#[derive(Clone, Debug)]
pub struct Notice {
    /// The election; `None` means all.
    pub election: Option<ElectionName>,
    /// What happened.
    pub signal: Signal,
}

/// One connection to a store, shared by any number of elections.
///
/// What an implementation owes:
/// - A call ends, with an error if it must, in bounded time; the caller never drops it before.
/// - [`Outcome::Done`] only when the store acknowledged it, [`Outcome::Denied`] only when it certainly did not
///   happen and never will, [`Outcome::Unknown`] for every other failure that may pass,
///   [`Outcome::Refused`] where trying again will not help.
/// - Renewal and release touch exactly the grant they are given: its epoch and its incarnation.
/// - An epoch is above every earlier one of the election, and above [`Bid::floor`].
/// - [`observe`](Backend::observe), [`followers`](Backend::followers), [`history`](Backend::history),
///   [`elections`](Backend::elections), [`read_once`](Backend::read_once) and [`signals`](Backend::signals) change nothing in the store.
#[expect(unused_variables, reason = "the default of an optional method ignores what it is given")]
pub trait Backend: Any + Send + Sync {
    /// The name used in errors and logs.
    fn name(&self) -> &'static str;

    /// What this store can and cannot do.
    fn capabilities(&self) -> Capabilities;

    /// Tries to lead, once.
    fn claim<'a>(&'a self, on: &'a ElectionName, bid: &'a Bid) -> Fut<'a, Outcome<Grant>>;

    /// Renews this grant. The new grant counts from `sent`, the instant before the call.
    ///
    /// Where one heartbeat renews every grant of a session ([`Capabilities::session_bound`]), it counts from the instant before that
    /// heartbeat left, even if that was before `sent`. So a recent heartbeat answers this renewal too, and all elections of a
    /// session come to renew at the same instants.
    fn renew<'a>(&'a self, on: &'a ElectionName, grant: &'a Grant, sent: Boot) -> Fut<'a, Outcome<Grant>>;

    /// Releases exactly this grant.
    fn release<'a>(
        &'a self,
        on: &'a ElectionName,
        grant: &'a Grant,
        how: &'a ReleaseOptions,
    ) -> Fut<'a, Outcome<()>>;

    /// Reads who leads.
    fn observe<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Seen, StoreError>>;

    /// The candidates that wait for this election, in any process; `None` where the store does not know. For people: no decision
    /// depends on it.
    fn followers<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Option<Followers>, StoreError>> {
        Box::pin(async { Ok(None) })
    }

    /// Asks something of the leader. [`Outcome::Done`] means that the request was written, not that it was obeyed.
    fn request<'a>(&'a self, on: &'a ElectionName, what: &'a Request) -> Fut<'a, Outcome<()>>;

    /// Pauses the election: until the pause ends, no claim is granted, whoever makes it. It replaces an earlier pause. `None` ends the pause
    /// that is in force, if one is. A leader goes on, and its renewals and its release keep the pause.
    ///
    /// Every party counts the span on its own clock from when it first saw the pause. Refused where [`Capabilities::pauses`] is false,
    /// and under a leader that would not keep it.
    fn pause<'a>(&'a self, on: &'a ElectionName, pause: Option<&'a Pause>) -> Fut<'a, Outcome<()>> {
        Box::pin(async { Outcome::Refused(cannot_pause(self.name())) })
    }

    /// From now on, [`signals`](Backend::signals) tells of this election. Every call is undone by one of
    /// [`unfollow`](Backend::unfollow).
    fn follow(&self, on: &ElectionName);

    /// One of those who follow this election no longer does.
    fn unfollow(&self, on: &ElectionName);

    /// Why changes of this election, which is followed, are not announced at the moment, so that candidates here notice them late; `None`
    /// where they are announced, or where nothing is known. Returns at once.
    fn unwatched(&self, on: &ElectionName) -> Option<StoreError> {
        None
    }

    /// This candidate has left the election: forget it, and release what proved that it was alive.
    fn retire(&self, on: &ElectionName, who: &Candidate);

    /// News of the elections that are followed. Taken once, by whoever drives the elections, and again after
    /// [`change_runtime`](Backend::change_runtime).
    fn signals(&self) -> Notices;

    /// The runtime that drove this store's elections has ended, with every call and task in it, and another one takes over. Nobody
    /// follows anything any more.
    ///
    /// # Errors
    /// When what this store needs ended with that runtime.
    fn change_runtime(&self) -> Result<(), StoreError> {
        Err(ended_with_its_runtime(self.name()))
    }

    /// Writes a leadership into the history: after promotion, and again when it has ended.
    fn remember<'a>(&'a self, on: &'a ElectionName, past: &'a Past) -> Fut<'a, Result<(), StoreError>>;

    /// The last leaderships, oldest first; empty where the store keeps none.
    fn history<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Vec<Past>, StoreError>>;

    /// The elections that the store can list.
    fn elections(&self) -> Fut<'_, Result<Vec<ElectionName>, StoreError>>;

    /// Creates the note of this name, unless there is one: among any number of callers, one creates it, and everybody reads the same
    /// content from then on. `bytes` is UTF-8 text without NUL, at most [`ONCE_MAX_BYTES`](crate::ONCE_MAX_BYTES) long.
    ///
    /// Notes have nothing to do with elections, not even with one of the same name; nothing here replaces or removes one.
    /// Refused where [`Capabilities::create_once`] is false, and where the store would not keep the note for good.
    fn create_once<'a>(&'a self, name: &'a ElectionName, bytes: &'a [u8]) -> Fut<'a, Creation> {
        Box::pin(async { Creation::Refused(once::unsupported(self.name())) })
    }

    /// The content of the note of this name; `None` only if the store says that there is none.
    fn read_once<'a>(&'a self, name: &'a ElectionName) -> Fut<'a, Result<Option<Vec<u8>>, StoreError>> {
        Box::pin(async { Err(once::unsupported(self.name())) })
    }

    /// Checks whether the store is fit for elections: permissions, versions, durability, space. Finds nothing by default.
    fn checkup<'a>(&'a self, probing: Probing<'a>) -> Fut<'a, Vec<Finding>> {
        Box::pin(async { Vec::new() })
    }

    /// Removes an election that nobody holds from the store, with its epochs: a later election of the same name may issue them
    /// again. Only for names that are never used again, such as those made to measure a store.
    fn danger_discard<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Discarded, StoreError>> {
        Box::pin(async move { Ok(Discarded::Remains(format!("the released record of {on}"))) })
    }

    /// Duplicates of what proves that this candidate lives, for a guard process that closes them last.
    #[cfg(unix)]
    fn crash_proof(&self, on: &ElectionName, who: &Candidate) -> Vec<std::os::fd::OwnedFd> {
        Vec::new()
    }
}

/// The error of a store that cannot outlive the runtime that it was opened in; see [`Backend::change_runtime`].
pub fn ended_with_its_runtime(backend: &'static str) -> StoreError {
    let sentence = "the store's connection ended with the runtime that it was opened in: open the store again in this one";
    StoreError::new(ErrorKind::Unsupported, backend, sentence)
}

fn cannot_pause(backend: &'static str) -> StoreError {
    let sentence = "elections on this store cannot be paused: it has nothing that would keep every candidate out once the leader is gone; \
                    to keep candidates from leading, stop them";
    StoreError::new(ErrorKind::Unsupported, backend, sentence)
}
