//! The guide: four decisions, in the order in which you meet them.
//!
//! 1. [Choose a store](choose_a_store): where the election is held.
//! 2. [Choose timings](choose_timings): how long a silent leader keeps others waiting, and what that costs.
//! 3. [Fence your writes](fence_your_writes): what the epoch is for.
//! 4. [Run in production](run_in_production): ids, shutdown, health, what to watch.

#[doc = include_str!("../docs/choose-a-store.md")]
pub mod choose_a_store {}

#[doc = include_str!("../docs/choose-timings.md")]
pub mod choose_timings {}

#[doc = include_str!("../docs/fence-your-writes.md")]
pub mod fence_your_writes {}

#[doc = include_str!("../docs/run-in-production.md")]
pub mod run_in_production {}
