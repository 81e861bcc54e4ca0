//! Memory shared by two processes of one machine instead of a socket: anonymous files (memfd_create(2)) with seals (`F_ADD_SEALS`), passed as
//! descriptors (unix(7), `SCM_RIGHTS`).

mod descriptors;
mod memory;
mod sealed;
mod stream;

pub use descriptors::{receive, send};
pub use memory::SharedMemory;
pub use sealed::open_sealed;
pub use stream::{Encapsulated, whole_stream};
