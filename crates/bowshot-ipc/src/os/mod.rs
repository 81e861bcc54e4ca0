//! What the operating system offers beside files and sockets: priority and clocks of threads (`thread.rs`), and an allocator that
//! counts ([`Counting`], `memory.rs`). Memory outside of the allocator is counted by [`Outside`].

mod memory;
mod thread;

pub use memory::{Counting, Outside, process_bytes, thread_bytes};
pub use thread::{ThreadClock, lower_thread_priority, thread_time};
