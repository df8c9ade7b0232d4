//! What `deploy/kubernetes` holds, on a real API server: every object is accepted, and its rights and command lines are enough to
//! lead, no more and no less.

mod chart;
mod manifests;
mod place;
mod rights;
mod sidecar;
