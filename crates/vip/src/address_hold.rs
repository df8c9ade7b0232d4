//! An address that is held, between renewals: announced, watched and restored.
//!
//! For whoever has a loop of its own: poll [`AddressHold::watched`], wake at [`AddressHold::due`], and call [`AddressHold::look`] then.

use crate::{AddressWatch, Happening, Manager, Netlink, VipError, VirtualAddress};
use bellwether_core::Boot;
use std::os::fd::{AsFd, BorrowedFd};

/// An address that this host has until it is released, or until the deadline that was last told.
///
/// Dropping it leaves the address to its lifetime.
#[derive(Debug)]
pub struct AddressHold {
    manager: Manager<Netlink>,
    watch: AddressWatch,
}

impl AddressHold {
    /// Sets the address and announces it.
    ///
    /// # Errors
    /// Nothing is set then.
    pub fn acquire(address: &VirtualAddress, now: Boot, deadline: Boot) -> Result<AddressHold, VipError> {
        let open = |error| VipError::Kernel("open a socket for addresses", error);
        // First: a removal must not go unheard.
        let watch = AddressWatch::new(address.clone()).map_err(open)?;
        let mut manager = Manager::new(address.clone(), Netlink::new().map_err(open)?);
        manager.acquire(now, deadline)?;
        Ok(AddressHold { manager, watch })
    }

    /// The leadership was renewed.
    ///
    /// # Errors
    /// Those of [`Manager::extend`].
    pub fn extend(&mut self, now: Boot, deadline: Boot) -> Result<(), VipError> {
        self.manager.extend(now, deadline)
    }

    /// Readable when there is something to look at.
    pub fn watched(&self) -> BorrowedFd<'_> {
        self.watch.as_fd()
    }

    /// When there is something to do at the latest.
    pub fn due(&self) -> Option<Boot> {
        self.manager.due()
    }

    /// Does what is due, and restores an address that somebody removed.
    pub fn look(&mut self, now: Boot) -> Option<Happening> {
        if self.watch.was_removed() && !self.manager.is_acquired().unwrap_or(false) {
            return self.manager.removed(now);
        }
        self.manager.act(now)
    }

    /// Removes the address.
    ///
    /// # Errors
    /// Those of [`Manager::release`].
    pub fn release(mut self) -> Result<(), VipError> {
        self.manager.release()
    }

    /// Removes the address for a process that held it and has died. True if it was there.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn remove_for_another(address: &VirtualAddress) -> Result<bool, VipError> {
        let netlink =
            Netlink::new().map_err(|error| VipError::Kernel("open a socket for addresses", error))?;
        Manager::new(address.clone(), netlink).remove_for_another()
    }

    /// Checks whether the address could be held here, and removes one that is left from before a crash: see [`Manager::check`].
    ///
    /// # Errors
    /// What is missing.
    pub fn check(address: &VirtualAddress) -> Result<(), VipError> {
        let netlink =
            Netlink::new().map_err(|error| VipError::Kernel("open a socket for addresses", error))?;
        Manager::new(address.clone(), netlink).check()
    }
}
