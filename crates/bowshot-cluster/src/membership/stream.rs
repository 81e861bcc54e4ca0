//! An authenticated connection between two nodes.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::{fmt, io};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tonic::transport::server::Connected;
use uuid::Uuid;

/// A connection for work. Dropping it closes it.
#[derive(Debug)]
pub struct WorkStream {
    wire: Wire,
    peer: Uuid,
}

impl WorkStream {
    pub(crate) fn new(wire: Wire, peer: Uuid) -> Self {
        Self { wire, peer }
    }

    /// The member at the other end.
    pub fn peer(&self) -> Uuid {
        self.peer
    }
}

/// The bytes below: as they are between nodes of one machine, else encrypted.
pub(crate) trait Socket: AsyncRead + AsyncWrite + fmt::Debug + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + fmt::Debug + Send + Unpin> Socket for S {}

pub(crate) type Wire = Box<dyn Socket>;

impl Connected for WorkStream {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for WorkStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().wire).poll_read(cx, buf)
    }
}

impl AsyncWrite for WorkStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().wire).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().wire).poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.wire.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().wire).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().wire).poll_shutdown(cx)
    }
}
