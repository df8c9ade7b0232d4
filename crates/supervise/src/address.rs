//! Removing an address whose holder has died.

use bellwether_core::Boot;
use bellwether_deadman::boot_now;
use bellwether_vip::{AddressHold, VirtualAddress};
use std::time::Duration;

/// Between two attempts to remove an address.
const ATTEMPT_EVERY: Duration = Duration::from_millis(10);

/// Removes an address that was held under a leadership with this deadline. Returns when it is gone.
///
/// Past the deadline nothing is done: its lifetime has ended, and if the host has it again, it is a later leader's.
pub(crate) fn remove_by(address: &VirtualAddress, deadline: Boot) {
    while boot_now() < deadline && AddressHold::remove_for_another(address).is_err() {
        std::thread::sleep(ATTEMPT_EVERY);
    }
}
