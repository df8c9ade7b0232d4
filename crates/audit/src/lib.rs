//! Did two candidates ever lead at once? The verdict on recorded event lines.
//!
//! ```text
//!  lines ──▶ Line ──▶ Journal of each candidate ──▶ Leadership: begin, end ──▶ Verdict: violations, doubts, gaps
//! ```
//!
//! Candidates write a line for every event (`bellwether run --events`). An [`Audit`] reads the lines of any number of processes and
//! elections, in any order, and its [`Verdict`] says whether
//!
//! - leaderships never overlapped,
//! - epochs strictly increased,
//! - each epoch had one owner,
//! - promotion and demotion of each candidate alternated.
//!
//! **A leadership lasts for as long as its candidate may believe in it**: from `acquired` or `resumed` to the first of its deadline and
//! its recorded end. Lines of renewals move the deadline. Without them, a leadership without a recorded end is known only up to its first
//! deadline, and one that was overtaken after that is a [`Doubt`], not a clean verdict.
//!
//! **A log that just stops proves neither a crash nor a life.** If another candidate led before the last deadline of such a leadership, the
//! candidate may have been killed before, or may have led beside the other. That is a doubt too, unless a `killed` line says when the
//! process was killed, or one of its own later lines shows that it lived.
//!
//! **Clocks of two machines are never compared.** Lines carry the boot-time clock of their machine, and the boot that it counts from.
//! Leaderships of different boots are ordered by their epochs only, and the verdict says so.
//!
//! Nothing here reads a clock or a file.

mod doubt;
mod figures;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;
mod journal;
mod leadership;
mod line;
mod picture;
mod timeline;
mod verdict;
mod violation;

pub use doubt::Doubt;
pub use figures::{Figures, Gap, Gaps};
pub use leadership::{Leadership, Owner, Until, overlap};
pub use line::{Line, What};
pub use picture::svg;
pub use timeline::timeline;
pub use verdict::{Audit, Judgement, Verdict};
pub use violation::Violation;
