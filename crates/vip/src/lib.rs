//! A virtual IP address that a host holds only while it leads.
//!
//! ```text
//!            acquire            extend (each renewal)          release, or the kernel when its lifetime ends
//!  absent ───────────▶ held ─────────────────────────▶ held ────────────────────────────────────▶ absent
//!                       └ announced to the neighbours at once, a few times, then now and then
//! ```
//!
//! The contract:
//!
//! - The address never outlasts the leadership's deadline. It is set with a lifetime in the kernel ([`lifetime`]) that ends at least a second
//!   before the deadline and that each renewal moves. So it vanishes by itself if every process that knows of it is stopped.
//! - Only the address that was asked for is ever removed: exactly this address and prefix, on this interface, and only if Bellwether set it.
//!   An address without a lifetime, or with another program's mark, is somebody else's ([`Presence`]).
//! - Neighbours learn the leader's link address at once: gratuitous ARP requests and replies for IPv4 ([`arp`]), unsolicited neighbour
//!   advertisements for IPv6 ([`ndp`]).
//!
//! [`Manager`] decides, and reaches the kernel through an [`Executor`]; [`Netlink`] is the real one. It speaks netlink, never the `ip` command,
//! and blocks for a system call at most. [`AddressHold`] adds what happens between renewals: announcements, and restoring an address that
//! somebody removed.
//!
//! **Crashes.** On a store that can prove the death of a process, a successor leads milliseconds after it. The lifetime in the kernel does
//! not end that early, so somebody has to outlive the leader and remove the address before the proof is given. `bellwether run --vip` has a
//! guard process for that (`bellwether-supervise`). [`hold`], for use in a program of your own, has none and refuses such stores.
//!
//! Linux only: elsewhere there is nothing that could set an address, and the functions that would are missing.

mod address;
pub mod announcements;
pub mod arp;
mod error;
mod executor;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;
mod lifetime;
mod manager;
pub mod ndp;
mod presence;

#[cfg(target_os = "linux")]
mod address_hold;
#[cfg(target_os = "linux")]
mod address_watch;
#[cfg(target_os = "linux")]
mod library;
#[cfg(target_os = "linux")]
mod netlink;

pub use address::{BadAddress, VirtualAddress};
#[cfg(target_os = "linux")]
pub use address_hold::AddressHold;
#[cfg(target_os = "linux")]
pub use address_watch::AddressWatch;
pub use error::VipError;
pub use executor::{Executor, Link, Setting};
#[cfg(target_os = "linux")]
pub use library::{HeldAddress, hold};
pub use lifetime::{TTL_MIN, check_ttl, lifetime};
pub use manager::{Happening, Manager};
#[cfg(target_os = "linux")]
pub use netlink::Netlink;
pub use presence::{MARK, Presence, PresentAddress, presence};
