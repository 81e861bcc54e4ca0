//! Threads that work only when nobody else does.

use std::io;

/// About a tenth of what a thread gets that competes with it. The least that there is would be a seventieth: on a machine
/// that is always busy nothing would ever come to its end.
const LOW: libc::c_int = 10;

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
