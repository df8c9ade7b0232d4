//! A backend around another one.

use bellwether_core::{
    Bid, Boot, Candidate, ElectionName, Grant, Outcome, Pause, ReleaseOptions, Request, Seen, StoreError,
};

use crate::{Backend, Capabilities, Creation, Discarded, Finding, Followers, Fut, Notices, Past, Probing};

/// A [`Backend`] that passes every call on to [`inner`](Forward::inner), except those that it overrides.
///
/// A wrapper that times, logs or disturbs calls implements this trait, and with it `Backend`.
pub trait Forward: Send + Sync + 'static {
    /// The backend that the calls are passed on to.
    fn inner(&self) -> &dyn Backend;

    /// See [`Backend::name`].
    fn name(&self) -> &'static str {
        self.inner().name()
    }

    /// See [`Backend::claim`].
    fn claim<'a>(&'a self, on: &'a ElectionName, bid: &'a Bid) -> Fut<'a, Outcome<Grant>> {
        self.inner().claim(on, bid)
    }

    /// See [`Backend::renew`].
    fn renew<'a>(&'a self, on: &'a ElectionName, grant: &'a Grant, sent: Boot) -> Fut<'a, Outcome<Grant>> {
        self.inner().renew(on, grant, sent)
    }

    /// See [`Backend::release`].
    fn release<'a>(
        &'a self,
        on: &'a ElectionName,
        grant: &'a Grant,
        how: &'a ReleaseOptions,
    ) -> Fut<'a, Outcome<()>> {
        self.inner().release(on, grant, how)
    }

    /// See [`Backend::observe`].
    fn observe<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Seen, StoreError>> {
        self.inner().observe(on)
    }

    /// See [`Backend::followers`].
    fn followers<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Option<Followers>, StoreError>> {
        self.inner().followers(on)
    }

    /// See [`Backend::request`].
    fn request<'a>(&'a self, on: &'a ElectionName, what: &'a Request) -> Fut<'a, Outcome<()>> {
        self.inner().request(on, what)
    }

    /// See [`Backend::pause`].
    fn pause<'a>(&'a self, on: &'a ElectionName, pause: Option<&'a Pause>) -> Fut<'a, Outcome<()>> {
        self.inner().pause(on, pause)
    }

    /// See [`Backend::follow`].
    fn follow(&self, on: &ElectionName) {
        self.inner().follow(on);
    }

    /// See [`Backend::unfollow`].
    fn unfollow(&self, on: &ElectionName) {
        self.inner().unfollow(on);
    }

    /// See [`Backend::retire`].
    fn retire(&self, on: &ElectionName, who: &Candidate) {
        self.inner().retire(on, who);
    }

    /// See [`Backend::signals`].
    fn signals(&self) -> Notices {
        self.inner().signals()
    }

    /// See [`Backend::change_runtime`].
    ///
    /// # Errors
    /// When what this store needs ended with that runtime.
    fn change_runtime(&self) -> Result<(), StoreError> {
        self.inner().change_runtime()
    }

    /// See [`Backend::remember`].
    fn remember<'a>(&'a self, on: &'a ElectionName, past: &'a Past) -> Fut<'a, Result<(), StoreError>> {
        self.inner().remember(on, past)
    }

    /// See [`Backend::history`].
    fn history<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Vec<Past>, StoreError>> {
        self.inner().history(on)
    }

    /// See [`Backend::elections`].
    fn elections(&self) -> Fut<'_, Result<Vec<ElectionName>, StoreError>> {
        self.inner().elections()
    }

    /// See [`Backend::create_once`].
    fn create_once<'a>(&'a self, name: &'a ElectionName, bytes: &'a [u8]) -> Fut<'a, Creation> {
        self.inner().create_once(name, bytes)
    }

    /// See [`Backend::read_once`].
    fn read_once<'a>(&'a self, name: &'a ElectionName) -> Fut<'a, Result<Option<Vec<u8>>, StoreError>> {
        self.inner().read_once(name)
    }
}

impl<F: Forward> Backend for F {
    fn name(&self) -> &'static str {
        Forward::name(self)
    }

    fn capabilities(&self) -> Capabilities {
        self.inner().capabilities()
    }

    fn claim<'a>(&'a self, on: &'a ElectionName, bid: &'a Bid) -> Fut<'a, Outcome<Grant>> {
        Forward::claim(self, on, bid)
    }

    fn renew<'a>(&'a self, on: &'a ElectionName, grant: &'a Grant, sent: Boot) -> Fut<'a, Outcome<Grant>> {
        Forward::renew(self, on, grant, sent)
    }

    fn release<'a>(
        &'a self,
        on: &'a ElectionName,
        grant: &'a Grant,
        how: &'a ReleaseOptions,
    ) -> Fut<'a, Outcome<()>> {
        Forward::release(self, on, grant, how)
    }

    fn observe<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Seen, StoreError>> {
        Forward::observe(self, on)
    }

    fn followers<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Option<Followers>, StoreError>> {
        Forward::followers(self, on)
    }

    fn request<'a>(&'a self, on: &'a ElectionName, what: &'a Request) -> Fut<'a, Outcome<()>> {
        Forward::request(self, on, what)
    }

    fn pause<'a>(&'a self, on: &'a ElectionName, pause: Option<&'a Pause>) -> Fut<'a, Outcome<()>> {
        Forward::pause(self, on, pause)
    }

    fn follow(&self, on: &ElectionName) {
        Forward::follow(self, on);
    }

    fn unfollow(&self, on: &ElectionName) {
        Forward::unfollow(self, on);
    }

    fn unwatched(&self, on: &ElectionName) -> Option<StoreError> {
        self.inner().unwatched(on)
    }

    fn retire(&self, on: &ElectionName, who: &Candidate) {
        Forward::retire(self, on, who);
    }

    fn signals(&self) -> Notices {
        Forward::signals(self)
    }

    fn change_runtime(&self) -> Result<(), StoreError> {
        Forward::change_runtime(self)
    }

    fn remember<'a>(&'a self, on: &'a ElectionName, past: &'a Past) -> Fut<'a, Result<(), StoreError>> {
        Forward::remember(self, on, past)
    }

    fn history<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Vec<Past>, StoreError>> {
        Forward::history(self, on)
    }

    fn elections(&self) -> Fut<'_, Result<Vec<ElectionName>, StoreError>> {
        Forward::elections(self)
    }

    fn create_once<'a>(&'a self, name: &'a ElectionName, bytes: &'a [u8]) -> Fut<'a, Creation> {
        Forward::create_once(self, name, bytes)
    }

    fn read_once<'a>(&'a self, name: &'a ElectionName) -> Fut<'a, Result<Option<Vec<u8>>, StoreError>> {
        Forward::read_once(self, name)
    }

    fn checkup<'a>(&'a self, probing: Probing<'a>) -> Fut<'a, Vec<Finding>> {
        self.inner().checkup(probing)
    }

    fn danger_discard<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Discarded, StoreError>> {
        self.inner().danger_discard(on)
    }

    #[cfg(unix)]
    fn crash_proof(&self, on: &ElectionName, who: &Candidate) -> Vec<std::os::fd::OwnedFd> {
        self.inner().crash_proof(on, who)
    }
}
