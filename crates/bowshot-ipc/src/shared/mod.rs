//! Memory that two processes of one machine share, so that rows need not go through a socket: files without a name
//! (memfd_create(2)) with seals (fcntl(2), `F_ADD_SEALS`), handed over as descriptors (unix(7), `SCM_RIGHTS`).
//!
//! - [`SharedMemory`]: what the server fills and its client maps (`memory.rs`).
//! - [`open_sealed`]: what a client has filled, checked and mapped (`sealed.rs`).
//! - [`send`], [`receive`]: bytes and descriptors over a Unix socket (`descriptors.rs`).
//! - [`whole_stream`], [`Encapsulated`]: what stands in such memory, one Arrow stream (`stream.rs`).

mod descriptors;
mod memory;
mod sealed;
mod stream;

pub use descriptors::{receive, send};
pub use memory::SharedMemory;
pub use sealed::open_sealed;
pub use stream::{Encapsulated, whole_stream};
