//! The system's clock and timers, and whatever else needs the kernel.
//!
//! This crate owns every call that needs `unsafe`, so that no other crate has any; each is a few lines with its argument
//! beside it. It decides nothing about elections.
//!
//! - [`SystemClock`] and [`boot_now`] read the boot-time clock, which runs on while the machine sleeps.
//! - [`BootTimer`] wakes a task at an instant of that clock. Ordinary async timers stand still in suspend, and
//!   a leader that slept through its own deadline has to hear of it on waking.
//! - [`random_bits`] makes incarnations that never repeat, and [`boot_id`] tells one boot of a machine from every other.
//! - [`KernelDeadline`] is a SIGKILL to this very process at an instant, which the kernel sends even when the process is
//!   stopped.
//! - [`process`] makes and ties processes together: fork into a PID namespace, parent-death signal, orphans, signals.
//! - [`leave_pid1`] forks the program if it is process 1, where half of this does not work, and [`Pid1Deadline`] is a deadline that process
//!   1 then enforces.
//! - [`ReadableFd`] waits for a descriptor in a task, and [`TimerFd`] is a timer to poll.
//! - [`packet_socket`] sends whole frames on a network interface.
//! - [`say_without_waiting`] writes to stderr without ever blocking.
//!
//! Linux has all of it. [`COUNTS_SUSPEND`] is false where the clock stands still in suspend: there, a leader that slept past its deadline
//! believes for as long again that it leads. The others exist on Linux only; elsewhere, a function that needs one
//! returns [`Unsupported`](std::io::ErrorKind::Unsupported).

#[cfg(not(unix))]
compile_error!("bellwether-deadman needs a Unix system: it reads clocks and timers from the kernel");

mod clock;
mod deadline;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;
mod identity;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod packet_socket;
mod pid1;
pub mod process;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod readable_fd;
mod stderr;
mod timer;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod timerfd;

pub use clock::{COUNTS_SUSPEND, SystemClock, boot_now};
pub use deadline::KernelDeadline;
pub use identity::{boot_id, random_bits};
#[cfg(any(target_os = "linux", target_os = "android"))]
pub use packet_socket::packet_socket;
pub use pid1::{Pid1Deadline, Pid1Spared, leave_pid1};
#[cfg(any(target_os = "linux", target_os = "android"))]
pub use readable_fd::ReadableFd;
pub use stderr::{never_wait_for_stderr, say_without_waiting};
pub use timer::BootTimer;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub use timerfd::TimerFd;
