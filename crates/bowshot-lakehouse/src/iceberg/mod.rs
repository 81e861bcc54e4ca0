//! Apache Iceberg tables that others write, read-only, in format versions 1 to 3 (<https://iceberg.apache.org/spec/>): the metadata
//! file that is current decides which files and rows count. Which one is current, the names of a folder tell, or a catalog.

mod folder;
mod loading;
mod manifest;
mod metadata;
mod names;
mod partition;
mod paths;
mod rest;
mod travel;
mod types;

pub(crate) use folder::IcebergFolder;
pub use rest::{IcebergCatalog, IcebergSettings};
