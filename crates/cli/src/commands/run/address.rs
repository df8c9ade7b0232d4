//! `--vip`: whether this host can hold the address, before it competes.

use bellwether::Options;
use bellwether_vip::{VipError, VirtualAddress, check_ttl};

use crate::exit::{Exit, Failure};

/// Fails with what is missing. Removes the address if it is left from before a crash.
pub(super) fn check(address: &VirtualAddress, options: &Options) -> Result<(), Failure> {
    check_ttl(options.timing.rounded_ttl()).map_err(failure)?;
    on_this_host(address)
}

#[cfg(target_os = "linux")]
fn on_this_host(address: &VirtualAddress) -> Result<(), Failure> {
    bellwether_vip::AddressHold::check(address).map_err(failure)
}

#[cfg(not(target_os = "linux"))]
fn on_this_host(_: &VirtualAddress) -> Result<(), Failure> {
    let sentence = "--vip works on Linux only: this system has no addresses that end by themselves; leave it out, and set the address in a \
                    --hook";
    Err(Failure::new(Exit::Usage, sentence))
}

fn failure(error: VipError) -> Failure {
    let exit = match &error {
        VipError::Bad(_) | VipError::TtlTooShort(_) => Exit::Usage,
        VipError::Denied(_) => Exit::Permission,
        _ => Exit::Misconfigured,
    };
    Failure::new(exit, format!("--vip: {error}"))
}
