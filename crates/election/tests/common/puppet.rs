//! A store on strings: each kind of call does what the story says, from the next call on.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bellwether_backend::{Backend, Forward, Fut, Notice, Notices, Past, ended_with_its_runtime};
use bellwether_core::{
    Bid, Boot, Candidate, ElectionName, ErrorKind, Grant, Outcome, ReleaseOptions, Seen, Signal, StoreError,
};
use futures_util::{StreamExt, stream};
use tokio::sync::{broadcast, watch};

use super::Log;

/// A kind of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    Claim,
    Renew,
    Release,
    Observe,
    Remember,
    /// Not a call to the store; it can only pass or panic.
    Follow,
    /// Not a call either: what happens when news comes.
    News,
}

impl Op {
    pub const ALL: [Op; 5] = [Op::Claim, Op::Renew, Op::Release, Op::Observe, Op::Remember];
}

/// What becomes of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// Does what the store below does.
    #[default]
    Pass,
    /// Does not reach the store before it is freed.
    Hang,
    /// Reaches the store; its answer is kept back until it is freed.
    Late,
    /// Does not reach the store, and says so as something that may pass.
    Fail,
    /// Is refused for good.
    Refuse,
    Panic,
    /// Blocks the thread that it is polled in, as no store should, until another rule is set.
    Block,
}

/// How a kind of call stands: what becomes of it, and how many were ever held up and freed.
#[derive(Default)]
struct Strings {
    rule: Rule,
    held_up: u64,
    freed: u64,
}

/// A backend that obeys the story. Writes every call into its log when it reaches the store.
#[derive(Clone)]
pub struct Puppet {
    inner: Arc<dyn Backend>,
    strings: Arc<watch::Sender<HashMap<Op, Strings>>>,
    signals: broadcast::Sender<Notice>,
    deaf: Arc<AtomicBool>,
    pub log: Log,
}

impl Puppet {
    pub fn new(inner: Arc<dyn Backend>) -> Puppet {
        let strings = Arc::new(watch::Sender::new(HashMap::new()));
        let deaf = Arc::new(AtomicBool::new(false));
        Puppet { inner, strings, signals: broadcast::channel(64).0, deaf, log: Log::default() }
    }

    /// From now on; calls that were held up go on.
    pub fn set(&self, op: Op, rule: Rule) {
        self.pull(op, |strings| {
            strings.rule = rule;
            strings.freed = strings.held_up;
        });
    }

    pub fn set_all(&self, rule: Rule) {
        for op in Op::ALL {
            self.set(op, rule);
        }
    }

    /// For calls to come; those that are held up stay so.
    pub fn set_next(&self, op: Op, rule: Rule) {
        self.pull(op, |strings| strings.rule = rule);
    }

    /// The call that was held up first goes on, and no other.
    pub fn free_oldest(&self, op: Op) {
        self.pull(op, |strings| strings.freed += 1);
    }

    /// News that the store below did not send.
    pub fn signal(&self, signal: Signal) {
        self.signals.send(Notice { election: None, signal }).unwrap();
    }

    /// From now on, no news of the store below is passed on.
    pub fn deafen(&self) {
        self.deaf.store(true, Ordering::Relaxed);
    }

    fn rule(&self, op: Op) -> Rule {
        self.strings.borrow().get(&op).map_or(Rule::Pass, |strings| strings.rule)
    }

    fn pull(&self, op: Op, how: impl FnOnce(&mut Strings)) {
        self.strings.send_modify(|all| how(all.entry(op).or_default()));
    }

    async fn until_freed(&self, op: Op) {
        let mut ticket = 0;
        self.pull(op, |strings| {
            strings.held_up += 1;
            ticket = strings.held_up;
        });
        let mut strings = self.strings.subscribe();
        drop(strings.wait_for(|all| all[&op].freed >= ticket).await);
    }

    /// `Err` when the call does not reach the store.
    async fn play<T>(&self, op: Op, line: String, call: impl Future<Output = T>) -> Result<T, Denial> {
        self.log.put(format!("called {line}"));
        if self.rule(op) == Rule::Hang {
            self.until_freed(op).await;
        }
        while self.rule(op) == Rule::Block {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        match self.rule(op) {
            Rule::Fail => {
                return Err(Denial::Later(StoreError::new(ErrorKind::Unavailable, "puppet", "not now")));
            }
            Rule::Refuse => {
                let error = StoreError::new(ErrorKind::PermissionDenied, "puppet", "not you");
                return Err(Denial::Never(error));
            }
            Rule::Panic => panic!("a planned panic in the backend"),
            Rule::Pass | Rule::Hang | Rule::Late | Rule::Block => {}
        }
        let late = self.rule(op) == Rule::Late;
        self.log.put(line.clone());
        let answer = call.await;
        if late {
            self.until_freed(op).await;
        }
        self.log.put(format!("answered {line}"));
        Ok(answer)
    }
}

enum Denial {
    Later(StoreError),
    Never(StoreError),
}

impl Denial {
    fn outcome<T>(self) -> Outcome<T> {
        match self {
            Denial::Later(error) => Outcome::Unknown(error),
            Denial::Never(error) => Outcome::Refused(error),
        }
    }

    fn error(self) -> StoreError {
        match self {
            Denial::Later(error) | Denial::Never(error) => error,
        }
    }
}

impl Forward for Puppet {
    fn inner(&self) -> &dyn Backend {
        &*self.inner
    }

    fn name(&self) -> &'static str {
        "puppet"
    }

    fn claim<'a>(&'a self, on: &'a ElectionName, bid: &'a Bid) -> Fut<'a, Outcome<Grant>> {
        Box::pin(async move {
            let call = self.inner.claim(on, bid);
            let line = format!("claim {}", bid.who.id);
            self.play(Op::Claim, line, call).await.unwrap_or_else(Denial::outcome)
        })
    }

    fn renew<'a>(&'a self, on: &'a ElectionName, grant: &'a Grant, sent: Boot) -> Fut<'a, Outcome<Grant>> {
        Box::pin(async move {
            let call = self.inner.renew(on, grant, sent);
            let line = format!("renew {}", grant.epoch);
            self.play(Op::Renew, line, call).await.unwrap_or_else(Denial::outcome)
        })
    }

    fn release<'a>(
        &'a self,
        on: &'a ElectionName,
        grant: &'a Grant,
        how: &'a ReleaseOptions,
    ) -> Fut<'a, Outcome<()>> {
        Box::pin(async move {
            let call = self.inner.release(on, grant, how);
            let line = format!("release {}", grant.epoch);
            self.play(Op::Release, line, call).await.unwrap_or_else(Denial::outcome)
        })
    }

    fn observe<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Seen, StoreError>> {
        Box::pin(async move {
            let call = self.inner.observe(on);
            self.play(Op::Observe, "observe".into(), call).await.unwrap_or_else(|denial| Err(denial.error()))
        })
    }

    fn follow(&self, on: &ElectionName) {
        assert!(self.rule(Op::Follow) != Rule::Panic, "a planned panic in the backend");
        self.inner.follow(on);
    }

    fn unfollow(&self, on: &ElectionName) {
        assert!(self.rule(Op::Follow) != Rule::Panic, "a planned panic in the backend");
        self.inner.unfollow(on);
    }

    fn retire(&self, on: &ElectionName, who: &Candidate) {
        self.log.put(format!("retire {}", who.id));
        self.inner.retire(on, who);
    }

    fn signals(&self) -> Notices {
        let puppet = self.clone();
        let told = stream::unfold((self.signals.subscribe(), puppet), |(mut told, puppet)| async {
            let notice = told.recv().await.ok()?;
            assert!(puppet.rule(Op::News) != Rule::Panic, "a planned panic in the backend");
            Some((notice, (told, puppet)))
        });
        let deaf = Arc::clone(&self.deaf);
        let heard = self.inner.signals().filter(move |_| std::future::ready(!deaf.load(Ordering::Relaxed)));
        Box::pin(stream::select(Box::pin(told), heard))
    }

    /// As a store that has a connection in its runtime.
    fn change_runtime(&self) -> Result<(), StoreError> {
        Err(ended_with_its_runtime("puppet"))
    }

    fn remember<'a>(&'a self, on: &'a ElectionName, past: &'a Past) -> Fut<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let call = self.inner.remember(on, past);
            let line = format!("remember {}", past.epoch);
            self.play(Op::Remember, line, call).await.unwrap_or_else(|denial| Err(denial.error()))
        })
    }
}
