//! Data files and their formats: what a file says of its columns, and its rows as record batches.
//!
//! | ending | format |
//! |---|---|
//! | `.parquet` `.pq` | Parquet; strings come as plain Arrow strings, whatever the file asks for |
//! | `.csv` `.tsv` `.tab` `.psv`, also `.gz` `.zst` `.bz2` `.xz` `.lz4` `.br` `.zip` | how it is written is found out ([`csv`]), types from the first rows |
//! | `.json` `.jsonl` `.ndjson` `.geojson`, also compressed | objects one after the other, or one array of them |
//! | `.arrow` `.feather` `.ipc` `.arrows` | Arrow IPC; files are mapped and never copied, streams are read in sequence |
//! | `.avro` | Avro object container |
//! | `.orc` | ORC, read by `bowshot-orc` |
//! | `.xlsx` | Excel: each sheet that has cells, as a text of separated values ([`excel`]) |
//!
//! Every byte goes through [`data_file::DataFile`], which checks that the file still has the content that was looked at. Columns of
//! Parquet files that are scanned repeatedly stay in memory ([`decoded_columns`]).

pub mod arrow_ipc;
pub mod avro;
pub mod batches;
mod column_casts;
pub mod csv;
pub mod data_file;
pub mod decoded_columns;
mod digits;
pub mod excel;
pub mod extension_types;
pub mod file_metadata;
pub mod inspection;
pub mod intervals;
pub mod json;
pub mod listed_file;
mod orc;
pub mod parquet;
pub mod read_options;
pub mod rejects;
pub mod row_source;
pub mod schema;
pub mod shared_files;
pub mod snapshot_file;
pub mod snapshot_store;
pub mod table_summary;
pub mod table_version;
mod text;
mod type_union;
pub mod variants;
mod zip;
