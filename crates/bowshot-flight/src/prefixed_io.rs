//! A stream whose first bytes were read to detect the protocol, and are returned again.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Gives the bytes that were read before it gives those of the connection.
#[derive(Debug)]
pub(crate) struct PrefixedIo<T> {
    read: &'static [u8],
    connection: T,
}

impl<T> PrefixedIo<T> {
    /// `read` are the bytes that the connection has given already.
    pub(crate) fn new(read: &'static [u8], connection: T) -> Self {
        Self { read, connection }
    }

    pub(crate) fn connection(&self) -> &T {
        &self.connection
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for PrefixedIo<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.read.is_empty() {
            return Pin::new(&mut self.connection).poll_read(context, buffer);
        }
        let (now, later) = self.read.split_at(self.read.len().min(buffer.remaining()));
        buffer.put_slice(now);
        self.read = later;
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for PrefixedIo<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_write_vectored(context, slices)
    }

    bowshot_api::delegate! { connection: fn is_write_vectored(&self) -> bool; }
}
