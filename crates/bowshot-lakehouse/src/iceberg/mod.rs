//! Apache Iceberg tables in format versions 1 to 3 (<https://iceberg.apache.org/spec/>): the metadata file that is current decides
//! which files and rows count. Which one is current, the names of a folder tell, or a catalog. Tables of the
//! versions 2 and 3 are written whose catalog commits that.

mod folder;
mod loading;
mod manifest;
mod metadata;
mod name_mapping;
mod partition;
mod paths;
mod rest;
mod time_travel;
mod types;
mod write;

pub(crate) use folder::IcebergFolder;
pub use rest::{IcebergCatalog, IcebergRewrite, IcebergSettings};
pub use write::{ColumnChange, NewPartition, NewTable, PartitionChange, ReferenceChange, TableAlteration};
