//! What the operating system does and tells beside files and sockets, for whoever needs it.
//!
//! - [`lower_thread_priority`], [`thread_time`], [`ThreadClock`]: threads that work only when nobody else does, and what a
//!   thread has had of processors (`thread.rs`).
//! - [`Counting`]: an allocator that says how much it has given; [`process_bytes`] and [`thread_bytes`] tell, and what lies
//!   [`Outside`] of it counts too (`memory.rs`).
//!
//! It takes calls that need `unsafe`, which no crate but this one and `bowshot-ipc` may hold. It knows nothing of ours.

mod memory;
mod thread;

pub use memory::{Counting, Outside, process_bytes, thread_bytes};
pub use thread::{ThreadClock, lower_thread_priority, thread_time};
