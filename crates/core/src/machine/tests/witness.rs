//! A witness: hears everything that goes into a machine and comes out of it, and knows what must never be.

use std::collections::BTreeSet;

use super::script::ms;
use crate::{Boot, CALLS_MAX, Call, Core, CoreEvent, Epoch, Input, Output, StateName, StoreCall};

/// Most outputs that one input may cause. What it is matters little; that there is one does.
const OUTPUTS_MAX: usize = 24;

/// What users have heard of this candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    Idle,
    Leading(Epoch),
    Suspended(Epoch),
}

#[derive(Debug)]
pub(super) struct Witness {
    heard: Heard,
    /// The epoch last believed in, and until when.
    believed: Option<(Epoch, Boot)>,
    /// Work was told to stop.
    ended: BTreeSet<Epoch>,
    /// Work that may be running.
    pub(super) working: Option<Epoch>,
    /// The work whose end the present input reports: it may come just as time runs out.
    reported: Option<Epoch>,
    /// The claim under way, unless it was given up with the attempt.
    claim: Option<(Call, Boot)>,
    releases: BTreeSet<Call>,
    /// How often anything was led, so that a test can tell whether it tested anything.
    pub(super) leaderships: u64,
}

impl Witness {
    pub(super) fn new() -> Witness {
        Witness {
            heard: Heard::Idle,
            believed: None,
            ended: BTreeSet::new(),
            working: None,
            reported: None,
            claim: None,
            releases: BTreeSet::new(),
            leaderships: 0,
        }
    }

    /// Before the machine hears it.
    pub(super) fn input(&mut self, input: &Input) {
        self.reported = None;
        match input {
            Input::Claimed(call, _) if self.claim.is_some_and(|(claim, _)| claim == *call) => {
                self.claim = None
            }
            Input::WorkEnded(epoch) => {
                self.reported = Some(*epoch);
                if self.working == Some(*epoch) && self.ended.contains(epoch) {
                    self.working = None;
                }
            }
            _ => {}
        }
        match input {
            Input::Claimed(call, _) | Input::Renewed(call, _) => self.releases.remove(call),
            Input::Released(call, _) | Input::Requested(call, _) => self.releases.remove(call),
            Input::Observed(call, _) => self.releases.remove(call),
            _ => false,
        };
    }

    /// After the machine has heard it.
    pub(super) fn outputs(&mut self, now: Boot, outputs: &[Output]) {
        assert!(outputs.len() <= OUTPUTS_MAX, "{} outputs for one input", outputs.len());
        for output in outputs {
            self.output(now, output);
        }
    }

    fn output(&mut self, now: Boot, output: &Output) {
        match output {
            Output::Call(call, StoreCall::Claim(bid)) => {
                assert_eq!(self.working, None, "claims while the work of an earlier leadership runs");
                if let Some((earlier, sent)) = self.claim {
                    assert!(now >= sent + ms(3_000), "{call:?} while {earlier:?} is under way");
                }
                let led = self.believed.map_or(Epoch::ZERO, |(epoch, _)| epoch);
                assert!(bid.floor >= led, "bids below what it has led");
                self.claim = Some((*call, bid.sent));
            }
            Output::Call(call, StoreCall::Release(grant, _)) => {
                // For what was led: not before its work is over. For what was not: not if it took the place
                // of something that is worked under.
                let safe = self.working.is_none_or(|working| grant.epoch < working);
                assert!(safe, "releases {:?} while {:?} is worked under", grant.epoch, self.working);
                self.releases.insert(*call);
            }
            Output::Believe { epoch, until } => self.believe(now, *epoch, *until),
            Output::EndWork { epoch, .. } => {
                assert!(self.believed.is_some_and(|(believed, _)| believed == *epoch), "ends {epoch:?}");
                self.ended.insert(*epoch);
                if self.reported == Some(*epoch) {
                    self.working = None;
                }
            }
            Output::Event { what, .. } => self.event(what),
            Output::Call(_, StoreCall::Renew { grant, .. }) => {
                // The end of its work may be reported at the very instant of a renewal.
                let stops = [self.working, self.reported].contains(&Some(grant.epoch));
                assert!(stops || !self.ended.contains(&grant.epoch), "renews what is over");
            }
            Output::ExtendStop { epoch, by } => {
                assert!(self.ended.contains(epoch), "{epoch:?} has not been told to stop");
                assert!([self.working, self.reported].contains(&Some(*epoch)), "nothing is left to stop");
                assert!(*by > now && *by <= now + ms(13_500), "from {now:?} until {by:?}");
            }
            Output::Call(_, StoreCall::Observe | StoreCall::Request(_)) => {}
        }
    }

    fn believe(&mut self, now: Boot, epoch: Epoch, until: Boot) {
        assert!(until > now && until <= now + ms(13_500), "believes from {now:?} until {until:?}");
        assert!(!self.ended.contains(&epoch), "believes in {epoch:?}, which is over");
        match self.believed {
            Some((led, earlier)) if led == epoch => assert!(until > earlier, "belief shrinks"),
            led => {
                assert!(led.is_none_or(|(led, _)| led < epoch), "{epoch:?} after {led:?}");
                assert_eq!(self.working, None, "leads while the work of an earlier leadership runs");
                self.working = Some(epoch);
                self.claim = None;
                self.leaderships += 1;
            }
        }
        self.believed = Some((epoch, until));
    }

    fn event(&mut self, event: &CoreEvent) {
        let heard = self.heard;
        let out_of_place = || panic!("{event:?} after {heard:?}");
        self.heard = match (event, heard) {
            (CoreEvent::Acquired { epoch, .. }, Heard::Idle) => Heard::Leading(*epoch),
            (CoreEvent::Resumed { epoch, .. }, Heard::Suspended(_)) => Heard::Leading(*epoch),
            (CoreEvent::Suspended { epoch, .. }, Heard::Leading(led)) if led == *epoch => {
                Heard::Suspended(led)
            }
            (CoreEvent::Released { epoch, .. }, Heard::Leading(led)) if led == *epoch => Heard::Idle,
            (CoreEvent::Lost { epoch, .. }, Heard::Leading(led) | Heard::Suspended(led)) if led == *epoch => {
                Heard::Idle
            }
            (CoreEvent::Stopped, Heard::Idle | Heard::Suspended(_)) => {
                self.claim = None;
                Heard::Idle
            }
            (CoreEvent::Danger { epoch, .. }, Heard::Leading(led)) if led == *epoch => heard,
            (
                CoreEvent::AcquireFailed { .. }
                | CoreEvent::LeaderChanged { .. }
                | CoreEvent::Error(_)
                | CoreEvent::StateChanged { .. },
                _,
            ) => heard,
            _ => out_of_place(),
        };
    }

    /// When all is drained.
    pub(super) fn look_at(&self, core: &Core, now: Boot) {
        if let Some(due) = core.poll_timeout() {
            assert!(due > now, "a timer that is already over: a hot loop");
        }
        let bounded = core.calls_unanswered() - self.releases.len();
        assert!(bounded <= CALLS_MAX, "{bounded} calls unanswered");
        let leads = matches!(self.heard, Heard::Leading(_)) && core.state() != StateName::Releasing;
        assert_eq!(core.state() == StateName::Leader, leads, "{:?} in {:?}", self.heard, core.state());
        assert_eq!(core.state() == StateName::Reconnecting, matches!(self.heard, Heard::Suspended(_)));
        if let Some((epoch, deadline)) = core.leadership() {
            assert_eq!(Some((epoch, deadline)), self.believed);
            assert!(deadline > now, "leads past its deadline");
            assert_eq!(core.leader(), Some(&core.who().id), "leads, and says that another does");
        }
        assert!(!core.is_quiet() || self.working.is_none(), "quiet while work runs");
    }
}
