//! Apache Iceberg tables that others write, read-only, in format versions 1 and 2, and 3 without deletion vectors
//! (<https://iceberg.apache.org/spec/>): the metadata file that is current decides which files and rows count.

mod folder;
mod manifest;
mod metadata;
mod paths;
mod types;

pub(crate) use folder::IcebergFolder;
