//! What the operating system offers beside files and sockets: priority and clocks of threads (`thread.rs`), and an allocator that
//! counts ([`Counting`], `memory.rs`). Memory outside of the allocator is counted by [`Outside`].

mod memory;
mod thread;

pub use memory::{Counting, Outside, process_bytes, thread_bytes};
pub use thread::{ThreadClock, lower_thread_priority, thread_time};

/// The bytes of a line such as `VmRSS: 12 kB` in a file of `/proc`.
pub fn proc_bytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}
