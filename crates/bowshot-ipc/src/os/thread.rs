//! Threads of the lowest priority, and processor time of threads.

use std::io;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// The least that there is, about a seventieth of what a thread gets that competes with it: a second of work then takes a
/// minute on a machine that is always busy, and who uses such a thread has to see to that. With a tenth the slowest of a hundred short queries took 1.5 times as long
/// beside such a thread as without it, with this 1.2 to 1.4 times (two cores, medians of eight series that scatter by a
/// third). The scheduler's class for idle times was no better (1.6), and may hold up others for seconds while the thread
/// has a lock.
const LOW: i32 = 19;

/// How long such a thread may run before the others have their turn, the most that there is. Linux takes the processor from
/// a running thread before its turn is over only for one whose own turn is shorter, and that of all others is (0.7 to 3 ms,
/// by the number of processors). Without it one that wakes waits up to a whole turn, or to the next tick of the clock (4 ms),
/// however low the priority: the slowest of a hundred short queries took 1.20 times as long beside such a thread as alone,
/// with it 1.13 times (two cores, medians of five turns). From Linux 6.12 on (`PREEMPT_SHORT` in `kernel/sched/fair.c`);
/// before, no such number is read.
const TURN: Duration = Duration::from_millis(100);

/// Leaves the processor to other threads, also for threads that the caller starts. Elsewhere than on Linux nothing happens.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no safe wrapper of `sched_setattr`")]
pub fn lower_thread_priority() -> io::Result<()> {
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        nice: LOW,
        runtime: TURN.as_nanos() as u64,
        ..Attributes::default()
    };
    // SAFETY: the call reads as many bytes of `attributes` as its first field tells. 0 means the calling thread.
    let answer = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if answer == 0 { Ok(()) } else { lower_by_nice() }
}

/// The priority alone, where sandboxes do not have the newer call.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no safe wrapper of `setpriority`")]
fn lower_by_nice() -> io::Result<()> {
    // SAFETY: the call takes three numbers and touches no memory. 0 means the calling thread on Linux.
    let answer = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, LOW) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// What sched_setattr(2) is told, in its first version. Policy 0 is that of ordinary threads.
#[cfg(target_os = "linux")]
#[repr(C)]
#[derive(Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

#[cfg(not(target_os = "linux"))]
pub fn lower_thread_priority() -> io::Result<()> {
    Ok(())
}

/// What the calling thread has had of processors so far. Where that is unknown, the time that has passed.
pub fn thread_time() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    ThreadClock::of_this_thread().and_then(ThreadClock::time).unwrap_or_else(|| START.elapsed())
}

/// Tells what a thread has had of processors, others too.
#[derive(Debug, Clone, Copy)]
pub struct ThreadClock(#[cfg(target_os = "linux")] libc::clockid_t);

#[cfg(target_os = "linux")]
impl ThreadClock {
    /// The clock of the calling thread.
    #[expect(unsafe_code, reason = "no safe wrapper of `pthread_getcpuclockid` among the dependencies")]
    pub fn of_this_thread() -> Option<Self> {
        let mut clock = 0;
        // SAFETY: the thread is the calling one, so it is there; the call writes one number to a place that is valid for it.
        let answer = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut clock) };
        (answer == 0).then_some(Self(clock))
    }

    /// What its thread has had so far; `None` when that has ended.
    #[expect(unsafe_code, reason = "no safe wrapper of `clock_gettime` among the dependencies")]
    pub fn time(self) -> Option<Duration> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the call writes the time to a place that is valid for it. The number of a clock may be any.
        let answer = unsafe { libc::clock_gettime(self.0, &raw mut time) };
        (answer == 0).then_some(())?;
        Some(Duration::new(time.tv_sec.try_into().ok()?, time.tv_nsec.try_into().ok()?))
    }
}

#[cfg(not(target_os = "linux"))]
impl ThreadClock {
    /// None: unknown here.
    pub fn of_this_thread() -> Option<Self> {
        None
    }

    pub fn time(self) -> Option<Duration> {
        None
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{Attributes, LOW, TURN, ThreadClock, lower_thread_priority, thread_time};
    use std::time::Duration;

    #[expect(unsafe_code, reason = "no safe wrapper of `sched_getattr`")]
    fn of_this_thread() -> Attributes {
        let mut attributes = Attributes::default();
        let size = size_of::<Attributes>();
        // SAFETY: the call writes at most `size` bytes to `attributes`, which has as many.
        let answer = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
        assert_eq!(answer, 0, "{}", std::io::Error::last_os_error());
        attributes
    }

    #[test]
    fn a_thread_and_those_that_it_starts_have_the_least() {
        let found = std::thread::spawn(|| {
            lower_thread_priority().unwrap();
            std::thread::spawn(of_this_thread).join().unwrap()
        });
        let found = found.join().unwrap();
        assert_eq!(found.nice, LOW);
        // Zero before Linux 6.12, which knows no turns.
        assert!([0, TURN.as_nanos() as u64].contains(&found.runtime), "{} ns", found.runtime);
        assert_eq!(of_this_thread().nice, 0, "this thread is another one");
    }

    #[test]
    fn a_clock_tells_others_what_its_thread_has_had() {
        let before = thread_time();
        let (sender, receiver) = std::sync::mpsc::channel();
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || {
            let begun = thread_time();
            while thread_time() < begun + Duration::from_millis(20) {
                std::hint::spin_loop();
            }
            sender.send(ThreadClock::of_this_thread().unwrap()).unwrap();
            let _ = stopped.recv();
        });
        let clock = receiver.recv().unwrap();
        assert!(clock.time().unwrap() >= Duration::from_millis(20));
        assert!(thread_time() - before < Duration::from_millis(15), "waiting is no work");
        drop(stop);
        other.join().unwrap();
    }
}
