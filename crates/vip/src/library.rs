//! An address in a program of your own, for as long as one leadership lasts.
//!
//! One thread holds the address; one task tells it of renewals. When the leadership is over, when the handle is dropped and when the runtime
//! ends, the task is gone, and the thread removes the address. The release of the leadership is written after that.

use crate::{AddressHold, Happening, VipError, VirtualAddress, check_ttl};
use bellwether_core::Boot;
use bellwether_deadman::{TimerFd, boot_now};
use bellwether_election::{Election, Leadership, Standing, Store, WorkGuard};
use rustix::event::{PollFd, PollFlags, poll};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

/// An address that this host has until the leadership is over or the handle is dropped.
#[derive(Debug)]
pub struct HeldAddress {
    following: AbortHandle,
    released: oneshot::Receiver<()>,
}

/// Sets the address for as long as this leadership lasts.
///
/// If the process is killed, the address stays for the rest of its lifetime, which ends before anybody else may lead. On a store that proves
/// crashes somebody else may lead earlier, so such stores are refused: `bellwether run --vip` holds addresses there.
///
/// # Errors
/// Nothing is set then.
///
/// # Panics
/// Outside a tokio runtime.
pub fn hold(
    address: &VirtualAddress,
    store: &Store,
    election: &Election,
    leadership: &Leadership,
) -> Result<HeldAddress, VipError> {
    if store.backend().capabilities().crash_proof {
        return Err(VipError::NeedsGuard);
    }
    check_ttl(election.settings().timing().ttl())?;
    let open = |error| VipError::Kernel("watch over an address", error);
    let (timer, (mut wake, woken)) = (TimerFd::new().map_err(open)?, UnixStream::pair().map_err(open)?);
    woken.set_nonblocking(true).map_err(open)?;
    let work = leadership.hold().map_err(VipError::Over)?;
    let hold = AddressHold::acquire(address, boot_now(), leadership.deadline())?;
    let (orders, deadlines) = channel();
    let (done, released) = oneshot::channel();
    let keeper = Keeper { hold, deadlines, woken, timer, address: address.clone() };
    let thread = std::thread::Builder::new().name("virtual address".to_owned());
    thread.spawn(move || keeper.keep(work, done)).map_err(open)?;
    let mut standing = leadership.standing();
    let following = tokio::spawn(async move {
        while let Standing::Until(deadline) = standing.now() {
            // A byte that does not fit is not needed: the thread has not read the last one yet.
            if orders.send(deadline).is_err() || wake.write(&[0]).is_err_and(|error| !is_full(&error)) {
                return;
            }
            standing.changed().await;
        }
    });
    Ok(HeldAddress { following: following.abort_handle(), released })
}

impl HeldAddress {
    /// Removes the address, and returns when it is gone.
    pub async fn release(mut self) {
        self.following.abort();
        let _ = (&mut self.released).await;
    }
}

impl Drop for HeldAddress {
    fn drop(&mut self) {
        self.following.abort();
    }
}

struct Keeper {
    hold: AddressHold,
    deadlines: Receiver<Boot>,
    woken: UnixStream,
    timer: TimerFd,
    address: VirtualAddress,
}

impl Keeper {
    /// Until nobody sends deadlines any more.
    fn keep(mut self, work: WorkGuard, done: oneshot::Sender<()>) {
        loop {
            self.wait();
            match self.newest_deadline() {
                Ok(Some(deadline)) => {
                    if let Err(error) = self.hold.extend(boot_now(), deadline) {
                        tracing::error!("{}: {error}", self.address);
                    }
                }
                Ok(None) => {}
                Err(TryRecvError::Disconnected | TryRecvError::Empty) => break,
            }
            match self.hold.look(boot_now()) {
                Some(Happening::Restored) => {
                    tracing::warn!("{} was removed by somebody else, and was set again", self.address);
                }
                Some(Happening::NotRestored(error)) => {
                    tracing::error!("{} was removed and cannot be set again: {error}", self.address);
                }
                None => {}
            }
        }
        if let Err(error) = self.hold.release() {
            tracing::error!("{}: {error}; it is gone when its lifetime ends", self.address);
        }
        // Only now may somebody else lead.
        drop(work);
        let _ = done.send(());
    }

    fn wait(&mut self) {
        self.timer.set(self.hold.due());
        let watched = self.hold.watched();
        let mut fds = [
            PollFd::new(&self.timer, PollFlags::IN),
            PollFd::new(&watched, PollFlags::IN),
            PollFd::new(&self.woken, PollFlags::IN),
        ];
        let _ = poll(&mut fds, None);
        let mut bytes = [0; 64];
        while self.woken.read(&mut bytes).is_ok_and(|read| read > 0) {}
    }

    fn newest_deadline(&self) -> Result<Option<Boot>, TryRecvError> {
        let mut newest = None;
        loop {
            match self.deadlines.try_recv() {
                Ok(deadline) => newest = Some(deadline),
                Err(TryRecvError::Empty) => return Ok(newest),
                Err(TryRecvError::Disconnected) => return Err(TryRecvError::Disconnected),
            }
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}
