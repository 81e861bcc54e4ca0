//! Files that COPY reads and writes in the exchange folder, which the operator names. Paths must stay in it, links followed, without
//! `..` and hidden names. Who may use the folder is decided above. This holds against clients, not against other programs on the machine.

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
