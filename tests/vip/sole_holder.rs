//! A judge of who has the address: never both hosts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bellwether_support::netns::Node;
use bellwether_vip::{Manager, Netlink, VirtualAddress};

use crate::hosts::Hosts;

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_micros(200);

/// Looks at both hosts again and again, by netlink.
pub(crate) struct SoleHolder {
    ended: Arc<AtomicBool>,
    looks: Arc<AtomicU64>,
    looking: Option<JoinHandle<u64>>,
}

impl SoleHolder {
    pub(crate) fn watch(hosts: &Hosts) -> SoleHolder {
        let address = &hosts.address;
        let open = |node: &Node, address: &VirtualAddress| {
            Manager::new(address.clone(), node.inside(Netlink::new).expect("a socket"))
        };
        let mut one = open(&hosts.hosts[0], address);
        let mut two = open(&hosts.hosts[1], address);
        let (ended, looks) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (end, count) = (Arc::clone(&ended), Arc::clone(&looks));
        let looking = thread::spawn(move || {
            let mut both = 0;
            while !end.load(Ordering::Acquire) {
                let has = |manager: &mut Manager<Netlink>| manager.is_acquired().expect("the kernel answers");
                // The first is asked again: if it has the address before and after the second has it, both have it then.
                if has(&mut one) && has(&mut two) && has(&mut one) {
                    both += 1;
                }
                count.fetch_add(1, Ordering::Relaxed);
                thread::sleep(LOOK_EVERY);
            }
            both
        });
        SoleHolder { ended, looks, looking: Some(looking) }
    }

    /// How often both hosts had the address.
    pub(crate) fn end(mut self) -> u64 {
        self.ended.store(true, Ordering::Release);
        let both = self.looking.take().expect("once").join().expect("it does not panic");
        println!(
            "looked at both hosts {} times; both had the address {both} times",
            self.looks.load(Ordering::Relaxed)
        );
        both
    }
}

impl Drop for SoleHolder {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
    }
}
