//! Bytes over a Unix socket, with descriptors beside them (unix(7), `SCM_RIGHTS`). Sockets that would block say so.

use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Descriptors that may come with one call.
const MOST: usize = 4;
/// Pieces that the system takes at once (`IOV_MAX`).
const PIECES: usize = 1024;

/// Room for the headers and the descriptors of [`MOST`], as aligned as the system wants it.
type Control = [u64; 8];

/// Bytes that one descriptor takes.
const ONE: u32 = size_of::<RawFd>() as u32;

/// Sends pieces of bytes, as many as fit, and a descriptor with the first of them.
///
/// # Errors
/// `WouldBlock`, and what else the system says; a reader that is gone is `BrokenPipe` and no signal.
#[expect(unsafe_code, reason = "no safe wrapper of `sendmsg` with descriptors among the dependencies")]
pub fn send(
    socket: BorrowedFd<'_>,
    pieces: &[IoSlice<'_>],
    descriptor: Option<BorrowedFd<'_>>,
) -> io::Result<usize> {
    let pieces = pieces.get(..PIECES).unwrap_or(pieces);
    let mut control: Control = [0; 8];
    // SAFETY: the struct consists of integers and pointers, for which all zeros is a valid value.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    // A slice of the standard library is laid out as the system's `iovec` on Unix. The system only reads through it.
    message.msg_iov = pieces.as_ptr().cast_mut().cast();
    message.msg_iovlen = pieces.len();
    if let Some(descriptor) = descriptor {
        message.msg_control = (&raw mut control).cast();
        // SAFETY: both calls compute with numbers.
        let (space, length) = unsafe { (libc::CMSG_SPACE(ONE), libc::CMSG_LEN(ONE)) };
        message.msg_controllen = space as usize;
        // SAFETY: `control` has room for one header with one descriptor and is aligned for it, so that the first header is
        // there and its data too.
        unsafe {
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = length as usize;
            libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(descriptor.as_raw_fd());
        }
    }
    // SAFETY: everything that the message points to lives across the call.
    let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Receives bytes, and the descriptors that came with them. No bytes mean the end.
///
/// # Errors
/// `WouldBlock`, and what else the system says; `InvalidData` for more descriptors than anybody needs.
#[expect(unsafe_code, reason = "no safe wrapper of `recvmsg` with descriptors among the dependencies")]
pub fn receive(socket: BorrowedFd<'_>, bytes: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut control: Control = [0; 8];
    let mut place = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    // SAFETY: as above.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut place;
    message.msg_iovlen = 1;
    message.msg_control = (&raw mut control).cast();
    // SAFETY: the call computes with numbers.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(ONE * MOST as u32) } as usize;
    // SAFETY: everything that the message points to lives across the call and is as large as it says.
    let came = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) };
    let came = usize::try_from(came).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the system has just filled the message in.
    let descriptors = unsafe { taken(&message) };
    if message.msg_flags & libc::MSG_CTRUNC != 0 {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "too many descriptors at once"));
    }
    Ok((came, descriptors))
}

/// The descriptors of a message.
///
/// # Safety
/// The system has filled the message in, and its control buffer lives.
#[expect(unsafe_code, reason = "headers of control messages are walked through with pointers")]
unsafe fn taken(message: &libc::msghdr) -> Vec<OwnedFd> {
    let mut found = Vec::new();
    // SAFETY: by the caller's word the headers are the system's, so that each is within the buffer and as long as it says, and
    // descriptors in them are new and nobody else's.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while !header.is_null() {
            if (*header).cmsg_level == libc::SOL_SOCKET && (*header).cmsg_type == libc::SCM_RIGHTS {
                let bytes = (*header).cmsg_len.saturating_sub(libc::CMSG_LEN(0) as usize);
                let data = libc::CMSG_DATA(header).cast::<RawFd>();
                for index in 0..bytes / size_of::<RawFd>() {
                    found.push(OwnedFd::from_raw_fd(data.add(index).read_unaligned()));
                }
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read, Seek, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn bytes_and_descriptors_arrive() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"content").unwrap();
        file.rewind().unwrap();
        let pieces = [IoSlice::new(b"ab"), IoSlice::new(b"cde")];
        assert_eq!(send(ours.as_fd(), &pieces, Some(file.as_fd())).unwrap(), 5);
        assert_eq!(send(ours.as_fd(), &[IoSlice::new(b"f")], None).unwrap(), 1);
        let mut bytes = [0; 16];
        let (came, mut descriptors) = receive(theirs.as_fd(), &mut bytes).unwrap();
        assert_eq!((&bytes[..came], descriptors.len()), (&b"abcde"[..], 1));
        let mut text = String::new();
        File::from(descriptors.remove(0)).read_to_string(&mut text).unwrap();
        assert_eq!(text, "content");
        assert!(matches!(receive(theirs.as_fd(), &mut bytes), Ok((1, none)) if none.is_empty()));
        drop(ours);
        assert!(matches!(receive(theirs.as_fd(), &mut bytes), Ok((0, none)) if none.is_empty()));
    }

    #[test]
    fn a_reader_that_is_gone_is_an_error_and_no_signal() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        let failed = send(ours.as_fd(), &[IoSlice::new(b"a")], None).unwrap_err();
        assert_eq!(failed.kind(), io::ErrorKind::BrokenPipe);
    }
}
