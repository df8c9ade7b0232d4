//! What `deploy/kubernetes` holds, on a real API server: every object is accepted, and its rights and command lines are enough to
//! lead, no more and no less. And leaders that fall silent, or share a Lease with candidates of client-go.

mod chart;
#[cfg(target_os = "linux")]
mod exclusion;
mod manifests;
mod place;
mod rights;
mod sidecar;
