//! Handles SIGBUS, which a read beyond the end of a truncated mapped file raises: lost pages of our maps are replaced by zeros and the map is
//! marked as damaged, so that only its table fails. Other SIGBUS go to the previous handler. A signal handler may neither lock nor
//! allocate, so the maps are in a fixed-size table of atomics.

use std::ffi::c_int;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

pub(crate) const MAX_MAPS: usize = 16_384;

struct Slot {
    /// First address; [`FREE`] and [`TAKEN`] are no addresses of maps.
    start: AtomicUsize,
    /// First address after it, a multiple of the page size.
    end: AtomicUsize,
    damaged: AtomicBool,
}

const FREE: usize = 0;
const TAKEN: usize = 1;

static SLOTS: [Slot; MAX_MAPS] = [const {
    Slot { start: AtomicUsize::new(FREE), end: AtomicUsize::new(0), damaged: AtomicBool::new(false) }
}; MAX_MAPS];

/// The action that SIGBUS had before, for faults that are not ours.
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

/// Size of a page, asked for before the handler can need it.
static PAGE_BYTES: AtomicUsize = AtomicUsize::new(4096);

/// A registered range; dropping it takes the range out of the table, which must happen before it is unmapped.
#[derive(Debug)]
pub(crate) struct Guard {
    slot: usize,
}

impl Guard {
    /// Whether pages of this range were lost since it was registered.
    pub(crate) fn is_damaged(&self) -> bool {
        SLOTS[self.slot].damaged.load(Ordering::Acquire)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        SLOTS[self.slot].start.store(FREE, Ordering::Release);
    }
}

/// Registers a range of addresses; none if the table is full.
pub(crate) fn guard(range: &[u8]) -> Option<Guard> {
    let slot = SLOTS.iter().position(|slot| {
        slot.start.compare_exchange(FREE, TAKEN, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    })?;
    let start = range.as_ptr().addr();
    let page = PAGE_BYTES.load(Ordering::Relaxed);
    SLOTS[slot].damaged.store(false, Ordering::Relaxed);
    SLOTS[slot].end.store((start + range.len()).next_multiple_of(page), Ordering::Release);
    SLOTS[slot].start.store(start, Ordering::Release);
    Some(Guard { slot })
}

pub(crate) fn install() -> io::Result<()> {
    static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();
    let failure = |code: i32| io::Error::from_raw_os_error(code);
    let install = || install_now().map_err(|error| error.raw_os_error().unwrap_or(libc::EINVAL));
    INSTALLED.get_or_init(install).map_err(failure)
}

#[expect(unsafe_code, reason = "signal actions exist only in the C library")]
fn install_now() -> io::Result<()> {
    // SAFETY: `sysconf` reads a constant of the system and takes no pointer.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    if let Ok(page) = usize::try_from(page)
        && page.is_power_of_two()
    {
        PAGE_BYTES.store(page, Ordering::Relaxed);
    }
    // SAFETY: `sigaction` is a struct of integers and an optional pointer; all zeros is a valid value of it.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_bus_error;
    action.sa_sigaction = handler as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
    // SAFETY: as for `action` above.
    let mut previous: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: both structs live across the call; the handler has the signature that SA_SIGINFO asks for.
    if unsafe { libc::sigaction(libc::SIGBUS, &raw const action, &raw mut previous) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // A second value cannot come: `install` runs this function once.
    let _ = PREVIOUS.set(previous);
    Ok(())
}

/// The handler. Calls only what is safe in one: atomics and plain system calls.
#[expect(unsafe_code, reason = "signal handlers deal in raw pointers")]
extern "C" fn on_bus_error(_signal: c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: with SA_SIGINFO the kernel passes a valid `siginfo_t`, and for SIGBUS it holds an address.
    let address = unsafe { (*info).si_addr() }.addr();
    // SAFETY: the pointer is this thread's own `errno`, which lives as long as the thread.
    let errno = unsafe { *errno_place() };
    if !repair(address) {
        pass_on();
    }
    // SAFETY: as above. The interrupted code must not see that the handler made system calls.
    unsafe { *errno_place() = errno };
}

/// Puts zeros from the lost page to the end of its map. False if the address is in none of our maps.
#[expect(unsafe_code, reason = "mapping over an address exists only in the C library")]
fn repair(address: usize) -> bool {
    for slot in &SLOTS {
        let start = slot.start.load(Ordering::Acquire);
        let end = slot.end.load(Ordering::Acquire);
        // Reading the start twice makes sure that the end belongs to it and not to a map that took the slot over.
        let steady = slot.start.load(Ordering::Acquire) == start;
        if start <= TAKEN || !steady || address < start || address >= end {
            continue;
        }
        let page = address & !(PAGE_BYTES.load(Ordering::Relaxed) - 1);
        // The mark comes first: whoever reads the zeros can see that they are not the file's.
        slot.damaged.store(true, Ordering::Release);
        // SAFETY: the range from `page` to `end` lies in a map of ours, because slots are freed before their maps
        // are unmapped and the faulting read proves that this map is in use. It is read-only, so replacing its
        // pages by zeros changes values that readers see, as the truncation did already, and no ownership.
        let placed = unsafe {
            libc::mmap(
                std::ptr::without_provenance_mut(page),
                end - page,
                libc::PROT_READ,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                -1,
                0,
            )
        };
        return placed != libc::MAP_FAILED;
    }
    false
}

/// Gives SIGBUS back to its former action; the faulting instruction runs again and reaches that.
#[expect(unsafe_code, reason = "signal actions exist only in the C library")]
fn pass_on() {
    if let Some(previous) = PREVIOUS.get() {
        // SAFETY: `previous` came from `sigaction` itself and lives forever; the call is safe in a handler.
        unsafe { libc::sigaction(libc::SIGBUS, std::ptr::from_ref(previous), std::ptr::null_mut()) };
    } else {
        // SAFETY: a plain system call with constants, safe in a handler.
        unsafe { libc::signal(libc::SIGBUS, libc::SIG_DFL) };
    }
}

#[cfg(any(target_os = "linux", target_os = "emscripten"))]
#[expect(unsafe_code, reason = "errno is a place in the C library")]
unsafe fn errno_place() -> *mut c_int {
    // SAFETY: the function has no preconditions.
    unsafe { libc::__errno_location() }
}

#[cfg(any(target_vendor = "apple", target_os = "freebsd"))]
#[expect(unsafe_code, reason = "errno is a place in the C library")]
unsafe fn errno_place() -> *mut c_int {
    // SAFETY: the function has no preconditions.
    unsafe { libc::__error() }
}
