//! Waiting, in a task, for a descriptor to become readable.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A descriptor that a task waits for: a socket, a pipe, or a process's pidfd, which is readable once it has ended.
#[derive(Debug)]
pub struct ReadableFd(AsyncFd<OwnedFd>);

impl ReadableFd {
    /// Watches a descriptor, which has to be non-blocking if it is read from.
    ///
    /// # Errors
    /// When the descriptor cannot be watched (a plain file), or the system is out of memory for it.
    ///
    /// # Panics
    /// Outside a tokio runtime, or in one without its I/O driver.
    pub fn new(fd: OwnedFd) -> io::Result<ReadableFd> {
        // SAFETY: an `OwnedFd` stays open and the same until it is dropped, and the `AsyncFd` owns it until then.
        Ok(ReadableFd(unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE)? }))
    }

    /// Waits until there is something to read; for a pidfd, until the process has ended.
    ///
    /// # Errors
    /// When the runtime is shutting down.
    pub async fn readable(&self) -> io::Result<()> {
        // Readiness is kept, so that everybody who asks about an ended process hears it.
        self.0.readable().await.map(|mut ready| ready.retain_ready())
    }

    /// Tries again whenever there is something to read, until the answer is not "would block". Cancel-safe if `attempt` is.
    ///
    /// # Errors
    /// Whatever the attempt answered, and a runtime that is shutting down.
    pub async fn read_with<T>(
        &self,
        mut attempt: impl FnMut(BorrowedFd<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            let mut ready = self.0.readable().await?;
            if let Ok(answer) = ready.try_io(|fd| attempt(fd.get_ref().as_fd())) {
                return answer;
            }
        }
    }
}

impl AsFd for ReadableFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.get_ref().as_fd()
    }
}
