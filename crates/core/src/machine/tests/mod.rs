//! The machine, told as stories in virtual time.
//!
//! [`script`] is the stage: a candidate `a` at virtual milliseconds, with the default settings unless a test
//! changes them: ttl 15 s, renewal every 5 s, retry 2 s, margin 1.5 s, call time-out 3 s.

mod script;

mod alternate;
mod bounds;
mod late;
mod releasing;
mod requests;
mod rules;
mod seed000;
mod seed002;
mod seed003;
mod seed004;
mod settle;
mod stopping;
mod witness;
