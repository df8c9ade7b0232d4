//! The address that a command has, on the guard's side.
//!
//! The guard sets it before COMMAND starts, refreshes it with every renewal, and removes it when the tree is gone, before it closes the proofs.
//! If supervisor and guard are killed together, the address would stay while the proof is given. Without a namespace, init outlives the guard
//! and removes it. With one, init dies with the guard; so the guard makes a *keeper*, a process that only waits for the guard's end, removes
//! the address, and keeps the proofs until then.

use super::Station;
use super::init_process::InitProcess;
use crate::address::remove_by;
use crate::channel;
use crate::guard_protocol::StartOrder;
use crate::{Containment, advised};
use bellwether_core::Boot;
use bellwether_deadman::boot_now;
use bellwether_deadman::process::{self, Namespace, Pid, Signal};
use bellwether_vip::{AddressHold, Happening, VirtualAddress};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::DupFlags;
use rustix::process::{PidfdFlags, WaitOptions, pidfd_open, pidfd_send_signal};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The address that a command is to have.
pub(super) struct WantedAddress {
    address: VirtualAddress,
    deadline: Boot,
    /// Only to be tried whether it could be held.
    rehearsal: bool,
}

impl WantedAddress {
    pub(super) fn of(order: &StartOrder) -> Option<WantedAddress> {
        let (deadline, rehearsal) = (Boot::from_nanos(order.deadline), order.rehearsal);
        order.address.clone().map(|address| WantedAddress { address, deadline, rehearsal })
    }
}

/// An address that the host has until it is released.
pub(super) struct GuardedAddress {
    address: VirtualAddress,
    hold: AddressHold,
    deadline: Boot,
    keeper: Option<AddressKeeper>,
}

impl GuardedAddress {
    /// Sets the address, if one is wanted, for a command that does not run yet; or says why it cannot be set. Whoever outlives this process,
    /// init or a keeper, is there before that.
    pub(super) fn take(
        station: &mut Station,
        init: &mut InitProcess,
        report: Option<&mut OwnedFd>,
        wanted: Option<WantedAddress>,
    ) -> Result<Option<GuardedAddress>, String> {
        let Some(WantedAddress { address, deadline, rehearsal }) = wanted else { return Ok(None) };
        if rehearsal {
            return AddressHold::check(&address).map(|()| None).map_err(|error| error.to_string());
        }
        let keeper =
            match init.containment {
                Containment::Namespace => {
                    let keeper = AddressKeeper::start(station, init, report, &address, deadline);
                    Some(keeper.map_err(|error| {
                        format!("no process to keep it could be made: {}", advised(&error))
                    })?)
                }
                Containment::Sweep => None,
            };
        let hold = AddressHold::acquire(&address, boot_now(), deadline).map_err(|error| error.to_string())?;
        Ok(Some(GuardedAddress { address, hold, deadline, keeper }))
    }

    pub(super) fn watched(&self) -> BorrowedFd<'_> {
        self.hold.watched()
    }

    pub(super) fn due(&self) -> Option<Boot> {
        self.hold.due()
    }

    /// The leadership was renewed. What people should know, if it could not be refreshed.
    pub(super) fn extend(&mut self, deadline: Boot) -> Option<String> {
        self.deadline = self.deadline.max(deadline);
        if let Some(keeper) = &self.keeper {
            keeper.tell(self.deadline);
        }
        let error = self.hold.extend(boot_now(), self.deadline).err()?;
        Some(format!(
            "{} could not be refreshed, and goes away when its lifetime ends: {error}",
            self.address
        ))
    }

    /// Does what is due. What people should know, if somebody removed the address.
    pub(super) fn look(&mut self, now: Boot) -> Option<String> {
        let address = &self.address;
        match self.hold.look(now)? {
            Happening::Restored => {
                Some(format!("{address} was removed from the interface by somebody else, and was set again"))
            }
            Happening::NotRestored(error) => Some(format!(
                "{address} was removed from the interface by somebody else, and cannot be set again: {error}"
            )),
        }
    }

    /// Removes the address, and ends the keeper only then. Returns when the address is gone.
    pub(super) fn release(self) {
        let GuardedAddress { address, hold, deadline, keeper } = self;
        if hold.release().is_err() {
            remove_by(&address, deadline);
        }
        drop(keeper);
    }
}

/// A process that removes the address if the guard dies. Dropping it kills it.
struct AddressKeeper {
    pid: Pid,
    pidfd: OwnedFd,
    control: OwnedFd,
}

impl AddressKeeper {
    /// Makes the process. It has copies of the proofs, as it has of everything that this process has open, except for the ends of channels
    /// whose other side waits for the guard's end.
    fn start(
        station: &mut Station,
        init: &mut InitProcess,
        report: Option<&mut OwnedFd>,
        address: &VirtualAddress,
        deadline: Boot,
    ) -> io::Result<AddressKeeper> {
        let (mut control, theirs) = channel::pair()?;
        let pid = process::fork(Namespace::Same, || {
            let nothing = &station.nothing;
            let forget = [&mut station.socket, &mut control, &mut init.control].into_iter().chain(report);
            for fd in forget {
                if rustix::io::dup3(nothing, fd, DupFlags::CLOEXEC).is_err() {
                    return 1;
                }
            }
            process::set_name(c"bellw-address");
            keep(&theirs, address, deadline)
        })?;
        let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
        Ok(AddressKeeper { pid, pidfd, control })
    }

    fn tell(&self, deadline: Boot) {
        // One that does not read has been stopped; it looks at the clock when it goes on.
        let _ = channel::send(self.control.as_fd(), &deadline.as_nanos().to_ne_bytes(), &[]);
    }
}

impl Drop for AddressKeeper {
    fn drop(&mut self) {
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
        let _ = rustix::process::waitpid(Some(self.pid), WaitOptions::empty());
    }
}

/// The whole life of a keeper; returns its exit code, which means nothing. The proofs are closed by its end.
fn keep(control: &OwnedFd, address: &VirtualAddress, mut deadline: Boot) -> i32 {
    loop {
        let _ = poll(&mut [PollFd::new(control, PollFlags::IN)], None);
        match channel::receive(control.as_fd()) {
            Ok(Some(packet)) => {
                if let Ok(nanos) = packet.bytes.try_into() {
                    deadline = deadline.max(Boot::from_nanos(u64::from_ne_bytes(nanos)));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(None) | Err(_) => break,
        }
    }
    remove_by(address, deadline);
    0
}
