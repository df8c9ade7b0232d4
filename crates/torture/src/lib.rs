//! Candidates on a real store, under faults, and a verdict on them.
//!
//! ```text
//!            seed ──▶ plan: what, when, to whom
//!                       │
//!  candidates ◀── kill, stop, cut, … ── run ◀── event lines ── candidates
//!      │                                 │
//!  witness: lock, writes ──▶ files ──────┴──▶ report: overlaps, fencing, gaps, what was left behind
//! ```
//!
//! [`torture`] runs `bellwether run` processes in an election of their own, with a witness as their command, of which there must never be two.
//! The [plan](plan()) of faults is a pure function of the seed. Afterwards the [`Report`] judges what the candidates wrote (by `bellwether-audit`),
//! what their witnesses saw, and whether anything was left behind.
//!
//! It assumes that `main` calls [`role_main_if_asked`] first, since candidates and witnesses are this program again, and that the program has
//! `run` and `step-down` as `bellwether` has. It leaves to the caller what is asked for, what is printed, and how a URL leads by way of other
//! addresses.
//!
//! Nothing that it starts outlives it: the kernel kills candidates with it, and they take their commands along. It signals only
//! processes that it started or that came of those.
//!
//! The whole is for Linux. Elsewhere, there are the [plan](plan()) and the [`proxy`].

#![cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only runs on Linux use it"))]

mod fault;
pub mod limits;
mod plan;
pub mod proxy;

#[cfg(target_os = "linux")]
mod event_files;
#[cfg(target_os = "linux")]
mod processes;
#[cfg(target_os = "linux")]
mod protected;
#[cfg(target_os = "linux")]
mod report;
#[cfg(target_os = "linux")]
mod roles;
#[cfg(target_os = "linux")]
mod run;
#[cfg(target_os = "linux")]
mod seat;
#[cfg(target_os = "linux")]
mod settings;
#[cfg(target_os = "linux")]
mod wall_clock;
#[cfg(target_os = "linux")]
mod witness;

pub use fault::{Fault, Kind};
pub use plan::{Aim, PlanOptions, Step, plan};
#[cfg(target_os = "linux")]
pub use protected::Fencing;
#[cfg(target_os = "linux")]
pub use report::{FaultFigures, Report};
#[cfg(target_os = "linux")]
pub use roles::role_main_if_asked;
#[cfg(target_os = "linux")]
pub use run::{Progress, TortureError, torture};
#[cfg(target_os = "linux")]
pub use settings::{Places, Settings, Through, Way};
#[cfg(target_os = "linux")]
pub use wall_clock::clock_library;

/// Does nothing: on this system, no process has a role.
#[cfg(not(target_os = "linux"))]
pub fn role_main_if_asked() {}
