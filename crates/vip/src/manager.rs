//! Decides what becomes of one address on one interface.
//!
//! It keeps the time only as it is told, and reaches the system through its [`Executor`] alone.

use crate::announcements;
use crate::arp::{self, Operation};
use crate::error::{CAP_NET_ADMIN, CAP_NET_RAW};
use crate::ndp;
use crate::presence::{presence, shares_network};
use crate::{Executor, Link, Presence, PresentAddress, Setting, VipError, VirtualAddress, lifetime};
use bellwether_core::Boot;
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// The least time between two restorations of an address that somebody keeps removing.
const RESTORE_EVERY: Duration = Duration::from_secs(1);

/// Holds one address, on behalf of one leadership after another.
#[derive(Debug)]
pub struct Manager<E> {
    address: VirtualAddress,
    executor: E,
    held: Option<Held>,
}

/// What happened to an address while it was held. People want to know.
#[derive(Debug)]
pub enum Happening {
    /// Somebody removed it, and it was set again.
    Restored,
    /// Somebody removed it, and it could not be set again yet.
    NotRestored(VipError),
}

#[derive(Debug)]
struct Held {
    link: Link,
    with_route: bool,
    deadline: Boot,
    /// Since when it is to be announced, and how often it has been.
    since: Boot,
    sent: u32,
    state: State,
    /// Tells other processes of this host that somebody has the address.
    claim: Option<OwnedFd>,
}

/// Whether the interface has a held address, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Set {
        restored_at: Option<Boot>,
    },
    /// Removed by somebody, or by the kernel for want of a renewal. To be set again at that instant.
    Missing {
        retry_at: Boot,
    },
}

impl<E: Executor> Manager<E> {
    /// A manager of this address, which it does not have yet.
    pub fn new(address: VirtualAddress, executor: E) -> Manager<E> {
        Manager { address, executor, held: None }
    }

    /// The address and its prefix, as `10.0.0.9/24`.
    pub fn cidr(&self) -> String {
        self.address.cidr()
    }

    /// Whether the interface has the address, set by Bellwether.
    ///
    /// # Errors
    /// There is no such interface, or the kernel did not answer.
    pub fn is_acquired(&mut self) -> Result<bool, VipError> {
        let link = self.link()?;
        Ok(self.look_at(&link)?.0 == Presence::Ours)
    }

    /// Whether the address could be set now: the interface is there, the rights are there, and nobody else has the address on it.
    ///
    /// An address that is left from before a crash is removed, unless a living process of this host has it.
    ///
    /// # Errors
    /// What is missing.
    pub fn check(&mut self) -> Result<(), VipError> {
        let link = self.link()?;
        if !link.is_up {
            return Err(VipError::InterfaceDown(link.name));
        }
        self.sweep()?;
        self.prepare_sending(&link)
    }

    /// Removes an address that is left from before a crash, exactly this one and only if no living process of this host has it. True
    /// if there was one.
    ///
    /// # Errors
    /// The address is somebody else's, or the right to remove one is missing.
    pub fn sweep(&mut self) -> Result<bool, VipError> {
        let link = self.link()?;
        let (found, _) = self.look_at(&link)?;
        self.refuse_others(found)?;
        let claim = self.executor.claim(&self.address).map_err(|error| kernel("claim the address", error))?;
        if claim.is_none() {
            // It has it, or is about to.
            return Ok(false);
        }
        // Also where there is nothing to remove: the kernel looks at the right first.
        self.remove(&link)
    }

    /// Sets the address, for as long as this deadline allows, and announces it.
    ///
    /// # Errors
    /// Nothing is set then.
    pub fn acquire(&mut self, now: Boot, deadline: Boot) -> Result<(), VipError> {
        let link = self.link()?;
        self.prepare_sending(&link)?;
        // Before it is set, so that nobody who starts on this host meanwhile takes it for a leftover.
        let mut claim = self.executor.claim(&self.address).unwrap_or(None);
        let (mut found, mut neighbours) = self.look_at(&link)?;
        loop {
            self.refuse_others(found)?;
            let is_new = found == Presence::Absent;
            let with_route = !shares_network(&self.address, &neighbours);
            let lifetime_s = lifetime(now, deadline).ok_or(VipError::TooLate)?;
            match self.executor.set(&link, &self.address, Setting { lifetime_s, with_route, is_new }) {
                Ok(()) => {
                    let claim = claim.take();
                    let state = State::Set { restored_at: None };
                    self.held = Some(Held { link, with_route, deadline, since: now, sent: 0, state, claim });
                    self.announce(now);
                    return Ok(());
                }
                // Somebody set it just now: look again whose it is.
                Err(error) if is_new && error.kind() == io::ErrorKind::AlreadyExists => {
                    (found, neighbours) = self.look_at(&link)?;
                    if found == Presence::Absent {
                        return Err(kernel("set the address", error));
                    }
                }
                Err(error) => return Err(VipError::of_kernel("set the address", CAP_NET_ADMIN, error)),
            }
        }
    }

    /// The leadership was renewed: the kernel keeps the address for longer. One that is missing is set again and announced.
    ///
    /// # Errors
    /// The kernel refused. The address then goes away when its lifetime ends; the next renewal tries again.
    pub fn extend(&mut self, now: Boot, deadline: Boot) -> Result<(), VipError> {
        let Some(held) = &mut self.held else { return Ok(()) };
        held.deadline = held.deadline.max(deadline);
        if held.claim.is_none() {
            held.claim = self.executor.claim(&self.address).unwrap_or(None);
        }
        self.set_again(now)
    }

    /// Somebody removed the address. Whether it may come back at once, and so whether it is missing, is decided here.
    pub fn removed(&mut self, now: Boot) -> Option<Happening> {
        let held = self.held.as_mut()?;
        let retry_at = match held.state {
            State::Set { restored_at: Some(at) } => at + RESTORE_EVERY,
            State::Set { restored_at: None } => now,
            State::Missing { .. } => return None,
        };
        held.state = State::Missing { retry_at };
        // The kernel removes it itself when no renewal has come, and then it must not come back before one does.
        lifetime(now, held.deadline)?;
        self.restore(now)
    }

    /// When there is something to do.
    pub fn due(&self) -> Option<Boot> {
        let held = self.held.as_ref()?;
        match held.state {
            State::Set { .. } => Some(announcements::due(held.since, held.sent)),
            State::Missing { retry_at } => Some(retry_at).filter(|at| lifetime(*at, held.deadline).is_some()),
        }
    }

    /// Does what is due.
    pub fn act(&mut self, now: Boot) -> Option<Happening> {
        if self.due().is_none_or(|due| due > now) {
            return None;
        }
        match self.held.as_ref()?.state {
            State::Set { .. } => {
                self.announce(now);
                None
            }
            State::Missing { .. } => self.restore(now),
        }
    }

    /// Removes the address, if it is held. Nothing is left of it on success.
    ///
    /// # Errors
    /// The kernel refused. The address is gone when its lifetime ends.
    pub fn release(&mut self) -> Result<(), VipError> {
        let Some(held) = &self.held else { return Ok(()) };
        let link = held.link.clone();
        let removed = self.remove(&link).map(drop);
        self.held = None;
        removed
    }

    /// Removes the address for another process that held it and has died, if it is still one of Bellwether's. True if it was there.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn remove_for_another(&mut self) -> Result<bool, VipError> {
        let link = self.link()?;
        if self.look_at(&link)?.0 != Presence::Ours {
            return Ok(false);
        }
        self.remove(&link)
    }

    fn restore(&mut self, now: Boot) -> Option<Happening> {
        let held = self.held.as_mut()?;
        let State::Missing { retry_at } = held.state else { return None };
        if retry_at > now {
            return None;
        }
        match self.set_again(now) {
            Ok(()) => Some(Happening::Restored),
            Err(error) => {
                let held = self.held.as_mut()?;
                held.state = State::Missing { retry_at: now + RESTORE_EVERY };
                Some(Happening::NotRestored(error))
            }
        }
    }

    fn set_again(&mut self, now: Boot) -> Result<(), VipError> {
        // The interface may have been made anew since, under another number.
        let link = self.link()?;
        let Some(held) = &mut self.held else { return Ok(()) };
        let lifetime_s = lifetime(now, held.deadline).ok_or(VipError::TooLate)?;
        let is_other = link.index != held.link.index || link.address != held.link.address;
        held.link = link;
        let how = Setting { lifetime_s, with_route: held.with_route, is_new: false };
        self.executor
            .set(&held.link, &self.address, how)
            .map_err(|error| VipError::of_kernel("set the address", CAP_NET_ADMIN, error))?;
        let was_missing = matches!(held.state, State::Missing { .. });
        if was_missing || is_other {
            (held.since, held.sent) = (now, 0);
            held.state = State::Set { restored_at: was_missing.then_some(now) };
            self.announce(now);
        }
        Ok(())
    }

    /// Tells the neighbours. One that is not reached hears the next announcement.
    fn announce(&mut self, now: Boot) {
        let Some(held) = &mut self.held else { return };
        // After a pause, the announcements that were due meanwhile are one.
        while announcements::due(held.since, held.sent) <= now {
            held.sent = held.sent.saturating_add(1);
        }
        let link = held.link.clone();
        for frame in frames(&link, &self.address) {
            let _ = self.executor.send(&link, &frame);
        }
    }

    fn link(&mut self) -> Result<Link, VipError> {
        let name = self.address.interface();
        let read = |error| kernel("show its interfaces", error);
        match self.executor.link(name).map_err(read)? {
            Some(link) => Ok(link),
            None => Err(VipError::NoInterface(name.to_owned(), self.executor.links().map_err(read)?)),
        }
    }

    fn look_at(&mut self, link: &Link) -> Result<(Presence, Vec<PresentAddress>), VipError> {
        let (found, marks_are_shown) =
            self.executor.addresses(link).map_err(|error| kernel("show its addresses", error))?;
        Ok((presence(&self.address, &found, marks_are_shown), found))
    }

    fn refuse_others(&self, found: Presence) -> Result<(), VipError> {
        match found {
            Presence::Absent | Presence::Ours => Ok(()),
            Presence::Permanent => Err(VipError::Permanent(self.address.clone())),
            Presence::Foreign => Err(VipError::Foreign(self.address.clone())),
            Presence::OtherPrefix(prefix) => Err(VipError::OtherPrefix(self.address.clone(), prefix)),
        }
    }

    fn remove(&mut self, link: &Link) -> Result<bool, VipError> {
        let removed = self.executor.remove(link, &self.address);
        removed.map_err(|error| VipError::of_kernel("remove the address", CAP_NET_ADMIN, error))
    }

    fn prepare_sending(&mut self, link: &Link) -> Result<(), VipError> {
        let prepared = self.executor.prepare_sending(link);
        prepared.map_err(|error| VipError::of_kernel("open a socket for announcements", CAP_NET_RAW, error))
    }
}

fn kernel(what: &'static str, error: io::Error) -> VipError {
    VipError::Kernel(what, error)
}

/// What neighbours on this link are told.
fn frames(link: &Link, address: &VirtualAddress) -> Vec<Vec<u8>> {
    let Some(owner) = link.address else { return Vec::new() };
    match address.address() {
        IpAddr::V4(v4) => {
            [Operation::Request, Operation::Reply].map(|one| arp::gratuitous(one, owner, v4)).into()
        }
        IpAddr::V6(v6) => vec![ndp::unsolicited(owner, v6, link.forwards)],
    }
}

#[cfg(test)]
#[path = "manager_tests.rs"]
mod tests;
