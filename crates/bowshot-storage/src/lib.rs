//! Tables: those made of files, and in [`tables`] those that Bowshot writes.
//!
//! [`FileCatalog`] turns the sources that the operator names into the tables of schema `main`, keeps them current while
//! files come, go and change, and scans them. It never writes. The rest of this page is about files.
//!
//! # What becomes a table
//!
//! - A file is one table, named after the file without its endings: `orders.csv.gz` is `orders`. Names are lower case;
//!   what is no letter, digit or `_` becomes `_`.
//! - `NAME=FOLDER` is one table of all data files below the folder. Folders named `key=value` become columns (whole
//!   numbers, dates or text, by all their values).
//! - A folder without a name gives one table per file and per folder in it. If it has `key=value` folders itself, or
//!   only files of one format whose names differ in digits and identifiers alone (`part-0001.parquet` …), it is one
//!   table named after the folder.
//! - Hidden files, markers (`_SUCCESS`, `.crc`) and unfinished copies (`.tmp`, `.part`, `~`) are left out. A folder
//!   with a Delta log is one table, of those files and rows that its log names, and so is an Iceberg table ([`lake`]), also in an
//!   object store. A Hudi table is refused. The tables of a DuckLake are those of a catalog of its own ([`DuckLake`]).
//! - Links are followed; a folder is entered once, and a file that is linked into its own table counts once.
//!
//! # Formats
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
//! What is asked for ([`ReadOptions`]) is not found out. Statements may name files themselves ([`FileCatalog::named`]).
//!
//! Files of one table are united by column name. A column that a file lacks is null there; types are widened where no
//! value is lost; columns that cannot be reconciled make the table fail with an error that names both files.
//!
//! # Changes
//!
//! A table that is used is looked at again after [`StorageOptions::refresh`]. New, replaced and deleted files are told
//! by size, times and inode. A running query reads the files it was planned with: a file that is replaced by renaming,
//! or deleted, is read to the end as it was; a file that is overwritten or extended in place gives an error, and no
//! answer mixes two contents: rows may be views of the file until the query ends, so that the engine asks once more then
//! ([`SharedFiles`]). So writers should write beside and rename. An error belongs to the table whose file is
//! broken; the other tables go on.
//!
//! # The road of a scan
//!
//! ```text
//! sources ─ discovery ─▶ definitions ─ listing ─▶ found files ─ facts ─▶ snapshot ─ table ─▶ plan ─ source ─▶ batches
//!           (catalog)    (entry: when to look again)          (csv, json, parquet, arrow_ipc, avro, orc)
//! ```
//!
//! Every byte goes through `file::DataFile`, which checks that the file still has the content that was looked at. Columns
//! of Parquet files that are scanned repeatedly stay in memory ([`ColumnCache`]).

mod agree;
mod arrow_ipc;
mod avro;
mod batches;
mod catalog;
mod columns;
mod csv;
mod delta_decimals;
mod delta_empty_texts;
mod delta_folder;
mod delta_local;
mod delta_log;
mod delta_objects;
mod delta_paths;
mod delta_table;
mod delta_vectors;
mod digits;
mod discovery;
mod encrypted;
mod entry;
mod error;
mod excel;
pub mod exchange;
mod extension_types;
mod facts;
mod file;
mod footers;
mod foreign;
mod format;
mod intervals;
mod json;
mod lake;
mod listing;
mod name;
mod named;
mod named_files;
mod options;
mod orc;
mod page_counts;
mod parquet;
mod parquet_columns;
mod parquet_statistics;
mod partition;
pub mod portable;
pub mod private;
mod read_options;
mod rejects;
pub mod remote;
mod row_groups;
mod schema;
pub mod scratch;
pub mod secrets;
mod shared;
mod snapshot;
mod source;
mod spec;
mod store;
mod table;
mod table_folder;
pub mod tables;
mod text;
mod version;
mod zip;

pub use catalog::{FileCatalog, RejectedLine, TableSummary, file_catalog};
pub use columns::ColumnCache;
pub use error::{Error, find_error};
pub use format::Format;
pub use lake::iceberg::{IcebergCatalog, IcebergSettings};
pub use lake::{CHANGE_COLUMNS, ChangeRange, Changes, DuckLake, DuckLakePlace};
pub use options::StorageOptions;
pub use read_options::{OptionValue, ReadOptions};
pub use remote::is_remote;
pub use row_groups::RowGroups;
pub use shared::SharedFiles;
pub use spec::SourceSpec;
pub use table::FileTable;
pub use version::{TableVersion, Versioned, versioned};

#[cfg(test)]
mod tests;
