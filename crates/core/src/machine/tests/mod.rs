//! The machine, told as stories in virtual time.
//!
//! [`script`] is the stage: a candidate `a` at virtual milliseconds, with the default settings unless a test
//! changes them: ttl 15 s, renewal every 5 s, retry 2 s, margin 1.5 s, call time-out 3 s.

mod script;

mod any_order;
mod backoff;
mod bounds;
mod conflicts;
mod cooldown;
mod deadline;
mod demotion;
mod failed_renewals;
mod late_answers;
mod pausing;
mod releasing;
mod requests;
mod settling;
mod staggering;
mod stopping;
mod transitions;
mod witness;
