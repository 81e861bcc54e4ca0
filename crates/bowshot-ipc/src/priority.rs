//! Threads that work only when nobody else does.

use std::io;
use std::time::Duration;

/// The least that there is, about a seventieth of what a thread gets that competes with it: a second of work then takes a
/// minute on a machine that is always busy. With a tenth the slowest of a hundred short queries took 1.5 times as long
/// beside such a thread as without it, with this 1.2 to 1.4 times (two cores, medians of eight series that scatter by a
/// third). The scheduler's class for idle times was no better (1.6), and may hold up others for seconds while the thread
/// has a lock.
const LOW: libc::c_int = 19;

/// Leaves the processor to other threads for the most part when they want it, also for the threads that the calling one
/// starts. On Linux; elsewhere priorities belong to processes, and nothing happens.
///
/// # Errors
/// When the system refuses, which it never does to a thread that asks for less.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no safe wrapper of `setpriority`")]
pub fn lower_thread_priority() -> io::Result<()> {
    // SAFETY: the call takes three numbers and touches no memory. 0 means the calling thread on Linux.
    let answer = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, LOW) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// See the other one.
///
/// # Errors
/// None.
#[cfg(not(target_os = "linux"))]
pub fn lower_thread_priority() -> io::Result<()> {
    Ok(())
}

/// What the calling thread has had of processors so far.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no safe wrapper of `clock_gettime` among the dependencies")]
pub fn thread_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes the time to the place that it is given, which is valid for writes and of the right type.
    let answer = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    if answer != 0 {
        return Duration::ZERO;
    }
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

/// See the other one. Unknown here: the time that has passed.
#[cfg(not(target_os = "linux"))]
pub fn thread_time() -> Duration {
    static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed()
}
