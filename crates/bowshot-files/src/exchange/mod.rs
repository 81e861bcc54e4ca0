//! Files that statements write and read by name, in the one folder that the operator has opened for that.
//!
//! Nothing outside of the folder is reached: a path is relative to it or begins with it, has no `..` and no hidden name,
//! and what it leads to, links followed, must lie in the folder still. A file is written under a hidden name, is on disk
//! before it gets its own, and is gone if it does not get that far. Who may use the folder is decided above; what is
//! checked here holds against clients, not against somebody who changes the folder on the server itself meanwhile.

mod copy_format;
mod copy_from;
mod copy_to;
mod folder;
mod parquet_upload;
mod partial_files;

pub use copy_format::Shape;
pub use copy_from::{FileRows, Wanted};
pub use copy_to::FileWriter;
pub use folder::ExchangeFolder;
pub use partial_files::remove_unfinished;
