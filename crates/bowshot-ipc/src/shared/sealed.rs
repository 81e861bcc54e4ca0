//! Memory that a client has written. It must be sealed: resizing it could end this process by SIGBUS, and writing to it could change rows
//! after they were checked.

use crate::error::{Error, Result};
use crate::truncation_guard::{self, Guard};
use bytes::Bytes;
use memmap2::Mmap;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// What memory of a client has to have, of fcntl(2): it has its size and its content for ever.
const SEALS: libc::c_int = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_WRITE;

/// A map with its place in the table of the guard, which it has to leave before it is unmapped.
struct Sealed {
    _guard: Option<Guard>,
    map: Mmap,
}

impl AsRef<[u8]> for Sealed {
    fn as_ref(&self) -> &[u8] {
        &self.map
    }
}

/// Maps the memory behind a descriptor of a client. Nothing is copied; it stays as long as somebody has a part of it.
#[expect(unsafe_code, reason = "a map of a file shows what others do to it")]
pub fn open_sealed(descriptor: OwnedFd, most: usize) -> Result<Bytes> {
    let file = File::from(descriptor);
    check_seals(&file)?;
    check_kind(&file)?;
    let metadata = file.metadata()?;
    let length = usize::try_from(metadata.len()).unwrap_or(usize::MAX);
    if length > most {
        return Err(Error::TooLarge { what: "shared memory", found: metadata.len(), limit: most as u64 });
    }
    if length == 0 {
        return Err(Error::NotSealed("it is empty"));
    }
    check_holes(&file, metadata.len())?;
    truncation_guard::install()?;
    // SAFETY: the map is only read, and the seals, which cannot be taken away, let nobody change or cut what it shows.
    let map = unsafe { Mmap::map(&file)? };
    let sealed = Sealed { _guard: truncation_guard::guard(&map), map };
    Ok(Bytes::from_owner(sealed))
}

/// Only files in memory have seals, so that this refuses all others too.
#[expect(unsafe_code, reason = "no safe wrapper of `F_GET_SEALS` among the dependencies")]
fn check_seals(file: &File) -> Result<()> {
    // SAFETY: the descriptor is open; the call takes no further argument.
    let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
    match seals {
        -1 => Err(Error::NotSealed("it is no memory that can be sealed")),
        seals if seals & SEALS == SEALS => Ok(()),
        _ => Err(Error::NotSealed("it lacks one of the seals F_SEAL_SHRINK, F_SEAL_GROW and F_SEAL_WRITE")),
    }
}

/// Pages that are not there would be taken when they are read, and from this process's share. How many blocks there are says
/// nothing of it: there may be some behind the end.
#[expect(unsafe_code, reason = "no safe wrapper of `SEEK_HOLE` among the dependencies")]
fn check_holes(file: &File, length: u64) -> Result<()> {
    // SAFETY: the descriptor is open, and nobody here reads or writes by its position.
    let first = unsafe { libc::lseek(file.as_raw_fd(), 0, libc::SEEK_HOLE) };
    match u64::try_from(first).is_ok_and(|first| first >= length) {
        true => Ok(()),
        false => Err(Error::NotSealed("it has holes")),
    }
}

/// Memory of huge pages has seals too; its pages may be missing when they are read.
#[expect(unsafe_code, reason = "no safe wrapper of `fstatfs` in the standard library")]
fn check_kind(file: &File) -> Result<()> {
    // SAFETY: the struct consists of integers, for which all zeros is a valid value.
    let mut found: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open, and the call writes to a struct that is valid for it.
    if unsafe { libc::fstatfs(file.as_raw_fd(), &raw mut found) } != 0 {
        return Err(io::Error::last_os_error().into());
    }
    match found.f_type == libc::TMPFS_MAGIC {
        true => Ok(()),
        false => Err(Error::NotSealed("it is no memory of ordinary pages")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::FromRawFd;
    use std::os::unix::fs::FileExt;

    #[expect(unsafe_code, reason = "no safe wrapper of `memfd_create` among the dependencies")]
    fn memory(content: &[u8], seals: libc::c_int) -> OwnedFd {
        // SAFETY: the name ends with zero.
        let descriptor =
            unsafe { libc::memfd_create(c"test".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) };
        // SAFETY: the descriptor is new.
        let file = File::from(unsafe { OwnedFd::from_raw_fd(descriptor) });
        file.write_at(content, 0).unwrap();
        // SAFETY: the descriptor is open.
        assert_eq!(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) }, 0);
        file.into()
    }

    fn refused(descriptor: OwnedFd) -> String {
        open_sealed(descriptor, 1 << 20).unwrap_err().to_string()
    }

    #[test]
    fn sealed_memory_is_mapped() {
        let bytes = open_sealed(memory(b"abc", SEALS), 3).unwrap();
        assert_eq!(&bytes[..], b"abc");
        assert!(matches!(open_sealed(memory(b"abc", SEALS), 2), Err(Error::TooLarge { .. })));
    }

    #[test]
    fn what_could_still_change_is_refused() {
        for seals in [
            0,
            libc::F_SEAL_WRITE,
            libc::F_SEAL_SHRINK | libc::F_SEAL_GROW,
            libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_FUTURE_WRITE,
        ] {
            assert!(refused(memory(b"abc", seals)).contains("lacks one of the seals"), "{seals}");
        }
        assert!(refused(memory(b"", SEALS)).contains("empty"));
        // On some systems temporary files are in memory too.
        assert!(refused(tempfile::tempfile().unwrap().into()).contains("is refused"));
        let (socket, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(refused(socket.into()).contains("no memory that can be sealed"));
    }

    #[test]
    #[expect(unsafe_code, reason = "as above")]
    fn memory_with_holes_is_refused() {
        let descriptor = memory(b"abc", libc::F_SEAL_SHRINK);
        let file = File::from(descriptor);
        file.set_len(1 << 20).unwrap();
        // Blocks behind the end make up for those that are not there.
        let behind = (libc::FALLOC_FL_KEEP_SIZE, 1 << 20, 1 << 20);
        // SAFETY: the descriptor is open.
        assert_eq!(unsafe { libc::fallocate(file.as_raw_fd(), behind.0, behind.1, behind.2) }, 0);
        // SAFETY: the descriptor is open.
        assert_eq!(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, SEALS) }, 0);
        assert!(refused(file.into()).contains("holes"));
    }
}
