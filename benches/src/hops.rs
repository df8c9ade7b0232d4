//! The hops of a handover, seen from outside: when a call reaches a backend, when it is answered, and when news reach the driver.
//!
//! ```text
//!  stop() ──▶ release called ──▶ notice at the follower ──▶ claim called ──▶ claim answered ──▶ leadership
//!                   └──▶ release answered
//! ```

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bellwether::backend::{Backend, Bid, Forward, Fut, Grant, Notices, Outcome, ReleaseOptions, Signal};
use bellwether::{Boot, Election, ElectionName, boot_now};
use futures_util::StreamExt;

use crate::{judged, median, percentile, report};

/// A backend that notes when it is called, when it answers, and when it brings news.
pub struct Stamped<B> {
    /// The backend that is called.
    pub inner: B,
    /// Where the instants are noted.
    pub stamps: Stamps,
}

/// What one candidate's backend noted since the last handover began.
#[derive(Clone, Default)]
pub struct Stamps(Arc<Mutex<Vec<(Moment, Boot)>>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    ReleaseCalled,
    ReleaseAnswered,
    /// Nobody leads any more.
    Noticed,
    ClaimCalled,
    ClaimAnswered,
}

impl Stamps {
    fn note(&self, moment: Moment) {
        let now = boot_now();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((moment, now));
    }

    fn forget(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn first(&self, moment: Moment) -> Boot {
        let stamps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = stamps.iter().find(|(noted, _)| *noted == moment);
        found.unwrap_or_else(|| panic!("no {moment:?} in {stamps:?}")).1
    }

    fn last(&self, moment: Moment) -> Boot {
        let stamps = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = stamps.iter().rfind(|(noted, _)| *noted == moment);
        found.unwrap_or_else(|| panic!("no {moment:?} in {stamps:?}")).1
    }
}

impl<B: Backend> Forward for Stamped<B> {
    fn inner(&self) -> &dyn Backend {
        &self.inner
    }

    fn claim<'a>(&'a self, on: &'a ElectionName, bid: &'a Bid) -> Fut<'a, Outcome<Grant>> {
        Box::pin(async move {
            self.stamps.note(Moment::ClaimCalled);
            let outcome = self.inner.claim(on, bid).await;
            self.stamps.note(Moment::ClaimAnswered);
            outcome
        })
    }

    fn release<'a>(
        &'a self,
        on: &'a ElectionName,
        grant: &'a Grant,
        how: &'a ReleaseOptions,
    ) -> Fut<'a, Outcome<()>> {
        Box::pin(async move {
            self.stamps.note(Moment::ReleaseCalled);
            let outcome = self.inner.release(on, grant, how).await;
            self.stamps.note(Moment::ReleaseAnswered);
            outcome
        })
    }

    fn signals(&self) -> Notices {
        let stamps = self.stamps.clone();
        Box::pin(self.inner.signals().inspect(move |notice| {
            if matches!(&notice.signal, Signal::Changed(seen) if seen.holder.is_none()) {
                stamps.note(Moment::Noticed);
            }
        }))
    }
}

/// A candidate and what its backend notes.
pub struct Stamping {
    /// The candidate.
    pub election: Election,
    /// Its backend's instants.
    pub stamps: Stamps,
}

/// The same handover without an election: by two clients and the fewest operations.
pub struct RawHandover {
    /// From before the release was sent to its notice at the other client.
    pub release: Duration,
    /// From that notice to the answer of the claim.
    pub claim: Duration,
}

/// Handovers and raw ones, in turn on the same server.
#[derive(Default)]
pub struct Hops {
    handovers: Vec<Handover>,
    raws: Vec<RawHandover>,
}

/// How long each hop took.
struct Handover {
    to_release: Duration,
    to_notice: Duration,
    to_claim: Duration,
    to_answer: Duration,
    to_leadership: Duration,
    release: Duration,
}

impl Handover {
    fn total(&self) -> Duration {
        self.to_release + self.to_notice + self.to_claim + self.to_answer + self.to_leadership
    }
}

impl Hops {
    /// Stops the leader, waits until the follower leads, and notes how long that took.
    pub async fn hand_over(&mut self, from: &Stamping, to: &Stamping) {
        from.stamps.forget();
        to.stamps.forget();
        let stop_called = boot_now();
        let led = async {
            to.election.wait_for_leadership().await.expect("a leadership");
            boot_now()
        };
        let (stopped, led) = tokio::join!(from.election.stop(), led);
        stopped.expect("a release");
        let release_called = from.stamps.first(Moment::ReleaseCalled);
        let noticed = to.stamps.first(Moment::Noticed);
        // A claim that came too early is followed by another: the time until then is part of the hop before it.
        let claim_called = to.stamps.last(Moment::ClaimCalled);
        let claim_answered = to.stamps.last(Moment::ClaimAnswered);
        self.handovers.push(Handover {
            to_release: release_called.since(stop_called),
            to_notice: noticed.since(release_called),
            to_claim: claim_called.since(noticed),
            to_answer: claim_answered.since(claim_called),
            to_leadership: led.since(claim_answered),
            release: from.stamps.first(Moment::ReleaseAnswered).since(release_called),
        });
    }

    /// Notes a raw handover.
    pub fn note_raw(&mut self, raw: RawHandover) {
        self.raws.push(raw);
    }

    /// The median of the handovers, whole.
    pub fn median(&self) -> Duration {
        median(self.handovers.iter().map(Handover::total).collect())
    }

    /// The median of the raw ones, whole.
    pub fn raw_median(&self) -> Duration {
        median(self.raws.iter().map(|raw| raw.release + raw.claim).collect())
    }

    /// Holds the slowest of a hundred handovers against its limit.
    pub fn judge_p99(&self, place: &str, limit: Duration) {
        let p99 = percentile(self.handovers.iter().map(Handover::total).collect(), 0.99);
        judged(&format!("{place}stop() to the next leadership, p99"), p99, limit);
    }

    /// Prints the ratio, the median of each hop beside the raw operation's, and what the medians of the hops leave over.
    pub fn report(&self, place: &str, limit: Duration) {
        let of = |span: fn(&Handover) -> Duration| median(self.handovers.iter().map(span).collect());
        let raw = |span: fn(&RawHandover) -> Duration| median(self.raws.iter().map(span).collect());
        let (total, raw_total) = (of(Handover::total), raw(|raw| raw.release + raw.claim));
        let times = |took: Duration, raw: Duration| took.as_secs_f64() / raw.as_secs_f64();
        let ratio = times(total, raw_total);
        report(
            &format!("{place}handover, ratio to the raw one"),
            &format!("{ratio:.2}"),
            &format!("raw: {raw_total:.2?}"),
        );
        let count = self.handovers.len();
        judged(&format!("{place}stop() to the next leadership, median of {count}"), total, limit);
        let beside =
            |took, what: &str, raw| format!("{:.2} times the raw {what}, {raw:.1?}", times(took, raw));
        let (to_notice, to_answer) = (of(|hop| hop.to_notice), of(|hop| hop.to_answer));
        let hops = [
            ("stop() to its release", of(|hop| hop.to_release), String::new()),
            (
                "release to its notice at the follower",
                to_notice,
                beside(to_notice, "notice", raw(|raw| raw.release)),
            ),
            ("notice to the claim", of(|hop| hop.to_claim), String::new()),
            ("claim to its answer", to_answer, beside(to_answer, "claim", raw(|raw| raw.claim))),
            ("answer to the leadership", of(|hop| hop.to_leadership), String::new()),
        ];
        for (what, took, beside) in &hops {
            report(&format!("  {what}"), &format!("{took:.1?}"), beside);
        }
        let sum: Duration = hops.iter().map(|(_, took, _)| *took).sum();
        let rest = (total.as_secs_f64() - sum.as_secs_f64()) * 1e6;
        report("  rest", &format!("{rest:+.1}µs"), "the median of sums less the sum of medians");
        report(
            "  meanwhile: release to its answer",
            &format!("{:.1?}", of(|hop| hop.release)),
            "the follower does not wait for it",
        );
    }
}
