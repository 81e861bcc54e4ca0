//! Memory that the server writes and a client on the same machine maps. Its seals prevent resizing, and writing by anybody but the server,
//! which mapped it before (`F_SEAL_FUTURE_WRITE`). Pages that a client has returned are written again, four times as fast as new ones.

use crate::os::Outside;
use bytes::Bytes;
use memmap2::{Advice, MmapOptions, MmapRaw};
use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Sizes are multiples of this, so that memory fits others than its first content.
const STEP: usize = 1 << 20;
/// The memory can never be run as a program (Linux 6.3; memfd_create(2)).
const MFD_NOEXEC_SEAL: libc::c_uint = 8;

/// Memory for one reader at a time. Its bytes count as the process's own as long as it lives.
#[derive(Debug)]
pub struct SharedMemory {
    file: File,
    map: MmapRaw,
    /// Bytes whose pages this process has in its own tables.
    known: usize,
    _counted: Outside,
}

impl SharedMemory {
    /// Bytes that memory for so many takes.
    pub fn capacity_for(bytes: usize) -> usize {
        bytes.max(1).next_multiple_of(STEP)
    }

    /// New memory with these bytes, which costs one copy and the system's work for each page.
    pub fn new(pieces: &[Bytes]) -> io::Result<Self> {
        let capacity = Self::capacity_for(length(pieces));
        let file = nameless()?;
        file.set_len(capacity as u64)?;
        // Pages that are written whole need not be cleared before, as they are when a map touches them.
        write_all(&file, pieces)?;
        let map = MmapOptions::new().len(capacity).map_raw(&file)?;
        seal(&file)?;
        Ok(Self { file, map, known: 0, _counted: Outside::new(capacity) })
    }

    pub fn capacity(&self) -> usize {
        self.map.len()
    }

    /// Puts other bytes in the place of those that are there: one copy. To be called when the reader has given the memory back.
    #[expect(unsafe_code, reason = "other processes read this memory, so that there is no slice of it")]
    pub fn refill(&mut self, pieces: &[Bytes]) -> io::Result<()> {
        let length = length(pieces);
        if length > self.capacity() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the bytes do not fit the memory"));
        }
        if length > self.known {
            // Page by page, as the copy would touch them, it took twice as long: 1.6 instead of 3.1 GB a second of processor time.
            // A system that does not know this call does it so.
            let _ = self.map.advise_range(Advice::PopulateWrite, 0, length);
            self.known = length;
        }
        let mut at = 0;
        for piece in pieces {
            // SAFETY: the piece fits behind `at`, because all of them together fit. The map is writable and ours alone in this
            // process; a reader that has not given it back sees other bytes, as it was told, and cannot make us fail.
            unsafe {
                std::ptr::copy_nonoverlapping(piece.as_ptr(), self.map.as_mut_ptr().add(at), piece.len());
            }
            at += piece.len();
        }
        Ok(())
    }
}

impl AsFd for SharedMemory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn length(pieces: &[Bytes]) -> usize {
    pieces.iter().map(Bytes::len).sum()
}

#[expect(unsafe_code, reason = "no safe wrapper of `memfd_create` among the dependencies")]
fn nameless() -> io::Result<File> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // Older systems do not know the last flag.
    for flags in [flags | MFD_NOEXEC_SEAL, flags] {
        // SAFETY: the name is a text that ends with zero; the call touches no other memory.
        let descriptor = unsafe { libc::memfd_create(c"bowshot".as_ptr(), flags) };
        if descriptor >= 0 {
            // SAFETY: the descriptor is new and nobody else's.
            return Ok(File::from(unsafe { OwnedFd::from_raw_fd(descriptor) }));
        }
        if io::Error::last_os_error().raw_os_error() != Some(libc::EINVAL) {
            break;
        }
    }
    Err(io::Error::last_os_error())
}

#[expect(unsafe_code, reason = "no safe wrapper of `F_ADD_SEALS` among the dependencies")]
fn seal(file: &File) -> io::Result<()> {
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_FUTURE_WRITE | libc::F_SEAL_SEAL;
    // SAFETY: the descriptor is open; the call takes two numbers.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn write_all(mut file: &File, pieces: &[Bytes]) -> io::Result<()> {
    let mut slices: Vec<IoSlice<'_>> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
    let mut left = slices.as_mut_slice();
    // So that empty pieces at the front are no reason to write nothing.
    IoSlice::advance_slices(&mut left, 0);
    while !left.is_empty() {
        match file.write_vectored(left) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut left, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use memmap2::Mmap;
    use std::os::unix::fs::FileExt;

    fn pieces(texts: &[&'static str]) -> Vec<Bytes> {
        texts.iter().map(|text| Bytes::from_static(text.as_bytes())).collect()
    }

    /// What a client has: another descriptor of the same memory.
    fn handed_over(memory: &SharedMemory) -> File {
        File::from(memory.as_fd().try_clone_to_owned().unwrap())
    }

    #[expect(unsafe_code, reason = "a map of a file shows what others do to it")]
    fn mapped(file: &File) -> io::Result<Mmap> {
        // SAFETY: only the test writes to it, and not while it reads.
        unsafe { Mmap::map(file) }
    }

    #[test]
    fn a_reader_sees_what_was_filled_and_filled_again() {
        let mut memory = SharedMemory::new(&pieces(&["ab", "cde"])).unwrap();
        let theirs = mapped(&handed_over(&memory)).unwrap();
        assert_eq!(&theirs[..5], b"abcde");
        assert_eq!(memory.capacity(), 1 << 20);
        memory.refill(&pieces(&["x", "yz"])).unwrap();
        assert_eq!(&theirs[..5], b"xyzde");
        let long = vec![Bytes::from(vec![1; 1 << 20]), Bytes::from_static(b"!")];
        assert_eq!(memory.refill(&long).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn nobody_else_can_write_or_cut() {
        let memory = SharedMemory::new(&pieces(&["abc"])).unwrap();
        let theirs = handed_over(&memory);
        assert_eq!(theirs.write_at(b"x", 0).unwrap_err().raw_os_error(), Some(libc::EPERM));
        for length in [1, 2 << 20] {
            assert_eq!(theirs.set_len(length).unwrap_err().raw_os_error(), Some(libc::EPERM));
        }
        assert_eq!(MmapRaw::map_raw(&theirs).unwrap_err().raw_os_error(), Some(libc::EPERM));
        // Neither by way of a new descriptor.
        let path = format!("/proc/self/fd/{}", theirs.as_raw_fd());
        let again = File::options().read(true).write(true).open(path).unwrap();
        assert_eq!(again.write_at(b"x", 0).unwrap_err().raw_os_error(), Some(libc::EPERM));
    }
}
