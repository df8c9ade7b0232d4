//! A connection whose peer has to read: one that leaves unread what was sent to it is closed after a while, instead of holding its
//! place for good.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// Any stream of bytes.
pub(crate) trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

/// A stream on which a write fails that makes no progress for `limit`.
pub(crate) struct Patient {
    inner: Box<dyn Io>,
    limit: Duration,
    /// While a write waits.
    ends: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    pub(crate) fn new(inner: Box<dyn Io>, limit: Duration) -> Patient {
        Patient { inner, limit, ends: None }
    }

    fn bounded<T>(
        &mut self,
        context: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut Box<dyn Io>>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        match write(Pin::new(&mut self.inner), context) {
            Poll::Ready(done) => {
                self.ends = None;
                Poll::Ready(done)
            }
            Poll::Pending => {
                let ends = self.ends.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.limit)));
                ready!(ends.as_mut().poll(context));
                let error = io::Error::new(io::ErrorKind::TimedOut, "the client does not read its answer");
                Poll::Ready(Err(error))
            }
        }
    }
}

impl AsyncRead for Patient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.bounded(context, |inner, context| inner.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.bounded(context, |inner, context| inner.poll_write_vectored(context, slices))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.bounded(context, |inner, context| inner.poll_flush(context))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.bounded(context, |inner, context| inner.poll_shutdown(context))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    #[tokio::test]
    async fn a_peer_that_does_not_read_is_given_up() {
        let (ours, _theirs) = tokio::io::duplex(16);
        let mut patient = Patient::new(Box::new(ours), Duration::from_millis(20));
        patient.write_all(&[0; 16]).await.expect("there is room");
        let error = patient.write_all(&[0; 16]).await.expect_err("there is none");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
