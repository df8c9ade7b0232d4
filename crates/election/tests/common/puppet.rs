//! A store on strings: each kind of call does what the story says, from the next call on.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bellwether_backend::{Backend, Capabilities, Fut, Notice, Notices, Past};
use bellwether_core::{
    Bid, Boot, Candidate, ElectionName, Error, ErrorKind, Grant, Outcome, Parting, Request, Seen, Signal,
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
}

impl Op {
    pub const ALL: [Op; 5] = [Op::Claim, Op::Renew, Op::Release, Op::Observe, Op::Remember];
}

/// What becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Does what the store below does.
    Pass,
    /// Does not reach the store before the rule is changed.
    Hang,
    /// Reaches the store; its answer is kept back until the rule is changed.
    Late,
    /// Does not reach the store, and says so as something that may pass.
    Fail,
    /// Is refused for good.
    Refuse,
    Panic,
}

/// A backend that obeys the story. Writes every call into its log when it reaches the store.
#[derive(Clone)]
pub struct Puppet {
    inner: Arc<dyn Backend>,
    rules: Arc<watch::Sender<HashMap<Op, Rule>>>,
    signals: broadcast::Sender<Notice>,
    deaf: Arc<AtomicBool>,
    pub log: Log,
}

impl Puppet {
    pub fn new(inner: Arc<dyn Backend>) -> Puppet {
        let rules = Arc::new(watch::Sender::new(HashMap::new()));
        let deaf = Arc::new(AtomicBool::new(false));
        Puppet { inner, rules, signals: broadcast::channel(64).0, deaf, log: Log::default() }
    }

    pub fn set(&self, op: Op, rule: Rule) {
        self.rules.send_modify(|rules| {
            rules.insert(op, rule);
        });
    }

    pub fn set_all(&self, rule: Rule) {
        self.rules.send_modify(|rules| rules.extend(Op::ALL.map(|op| (op, rule))));
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
        self.rules.borrow().get(&op).copied().unwrap_or(Rule::Pass)
    }

    async fn until_not(&self, op: Op, rule: Rule) {
        let mut rules = self.rules.subscribe();
        let changed = rules.wait_for(|rules| rules.get(&op).copied().unwrap_or(Rule::Pass) != rule).await;
        drop(changed);
    }

    /// `Err` when the call does not reach the store.
    async fn play<T>(&self, op: Op, line: String, call: impl Future<Output = T>) -> Result<T, Denial> {
        self.log.put(format!("called {line}"));
        if self.rule(op) == Rule::Hang {
            self.until_not(op, Rule::Hang).await;
        }
        match self.rule(op) {
            Rule::Fail => {
                return Err(Denial::Later(Error::new(ErrorKind::Unavailable, "puppet", "not now")));
            }
            Rule::Refuse => {
                let error = Error::new(ErrorKind::PermissionDenied, "puppet", "not you");
                return Err(Denial::Never(error));
            }
            Rule::Panic => panic!("a planned panic in the backend"),
            Rule::Pass | Rule::Hang | Rule::Late => {}
        }
        self.log.put(line.clone());
        let answer = call.await;
        if self.rule(op) == Rule::Late {
            self.until_not(op, Rule::Late).await;
        }
        self.log.put(format!("answered {line}"));
        Ok(answer)
    }
}

enum Denial {
    Later(Error),
    Never(Error),
}

impl Denial {
    fn outcome<T>(self) -> Outcome<T> {
        match self {
            Denial::Later(error) => Outcome::Unknown(error),
            Denial::Never(error) => Outcome::Refused(error),
        }
    }

    fn error(self) -> Error {
        match self {
            Denial::Later(error) | Denial::Never(error) => error,
        }
    }
}

impl Backend for Puppet {
    fn name(&self) -> &'static str {
        "puppet"
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn claim<'a>(&'a self, on: &'a ElectionName, bid: &'a Bid) -> Fut<'a, Outcome<Grant>> {
        Box::pin(async move {
            let call = self.inner.claim(on, bid);
            let line = format!("claim {}", bid.who.id);
            self.play(Op::Claim, line, call).await.unwrap_or_else(Denial::outcome)
        })
    }

    fn renew<'a>(&'a self, sent: Boot, held: &'a [(ElectionName, Grant)]) -> Fut<'a, Vec<Outcome<Grant>>> {
        Box::pin(async move {
            let call = self.inner.renew(sent, held);
            let line = format!("renew {}", held[0].1.epoch);
            self.play(Op::Renew, line, call).await.unwrap_or_else(|denial| vec![denial.outcome()])
        })
    }

    fn release<'a>(
        &'a self,
        on: &'a ElectionName,
        grant: &'a Grant,
        how: &'a Parting,
    ) -> Fut<'a, Outcome<()>> {
        Box::pin(async move {
            let call = self.inner.release(on, grant, how);
            let line = format!("release {}", grant.epoch);
            self.play(Op::Release, line, call).await.unwrap_or_else(Denial::outcome)
        })
    }

    fn observe<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Seen, Error>> {
        Box::pin(async move {
            let call = self.inner.observe(on);
            self.play(Op::Observe, "observe".into(), call).await.unwrap_or_else(|denial| Err(denial.error()))
        })
    }

    fn request<'a>(&'a self, on: &'a ElectionName, what: &'a Request) -> Fut<'a, Outcome<()>> {
        self.inner.request(on, what)
    }

    fn follow(&self, on: &ElectionName, interested: bool) {
        self.inner.follow(on, interested);
    }

    fn retire(&self, on: &ElectionName, who: &Candidate) {
        self.log.put(format!("retire {}", who.id));
        self.inner.retire(on, who);
    }

    fn signals(&self) -> Notices {
        let told = stream::unfold(self.signals.subscribe(), |mut told| async {
            let notice = told.recv().await.ok()?;
            Some((notice, told))
        });
        let deaf = Arc::clone(&self.deaf);
        let heard = self.inner.signals().filter(move |_| std::future::ready(!deaf.load(Ordering::Relaxed)));
        Box::pin(stream::select(Box::pin(told), heard))
    }

    fn remember<'a>(&'a self, on: &'a ElectionName, past: &'a Past) -> Fut<'a, Result<(), Error>> {
        Box::pin(async move {
            let call = self.inner.remember(on, past);
            let line = format!("remember {}", past.epoch);
            self.play(Op::Remember, line, call).await.unwrap_or_else(|denial| Err(denial.error()))
        })
    }

    fn history<'a>(&'a self, on: &'a ElectionName) -> Fut<'a, Result<Vec<Past>, Error>> {
        self.inner.history(on)
    }

    fn elections(&self) -> Fut<'_, Result<Vec<ElectionName>, Error>> {
        self.inner.elections()
    }
}
