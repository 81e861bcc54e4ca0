//! Found files as tables.
//!
//! [`FileCatalog`] turns the sources that the operator names into the tables of schema `main`, keeps them current while
//! files come, go and change, and scans them. It never writes.
//!
//! # What becomes a table
//!
//! - A file is one table, named after the file without its endings: `orders.csv.gz` is `orders`. Names are lower case;
//!   what is no letter, digit or `_` becomes `_`.
//! - `NAME=FOLDER` is one table of all data files below the folder. Folders named `key=value` become columns (whole
//!   numbers, dates or text, by all their values).
//! - A folder without a name gives one table per file and per folder in it. If it has `key=value` folders itself, or
//!   only files of one format whose names differ in digits and identifiers alone (`part-0001.parquet` …), it is one
//!   table named after the folder. Which of both is chosen when it first has data, and stays while it is served.
//! - Hidden files, markers (`_SUCCESS`, `.crc`) and unfinished copies (`.tmp`, `.part`, `~`) are left out. A folder
//!   with a Delta log is one table, of those files and rows that its log names, and so is an Iceberg table (`bowshot-lakehouse`), also
//!   in an object store. A Hudi table is refused. The tables of a DuckLake are those of a catalog of its own (`DuckLake`).
//! - Links are followed; a folder is entered once, and a file that is linked into its own table counts once.
//!
//! # Formats
//!
//! Those of `bowshot-formats`, told by the endings of names. What is asked for (`ReadOptions`) is not found out. Statements may
//! name files themselves ([`FileCatalog::named`]).
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
//! (`SharedFiles`). So writers should write beside and rename. An error belongs to the table whose file is
//! broken; the other tables go on.
//!
//! # The way of a scan
//!
//! ```text
//! sources ─ discovery ─▶ definitions ─ listing ─▶ found files ─ inspection ─▶ snapshot ─ table ─▶ plan ─ row source ─▶ batches
//!           (catalog)    (entry: when to look again)          (bowshot-formats)                         (bowshot-formats)
//! ```

mod ad_hoc_files;
mod catalog;
mod csv_agreement;
mod discovery;
mod entry;
pub mod exchange;
mod listing;
mod name;
mod options;
mod partition;
pub mod plan_codec;
mod remote_tables;
mod snapshot;
mod source_spec;
mod table;

pub use catalog::{FileCatalog, file_catalog};
pub use options::StorageOptions;
pub use source_spec::SourceSpec;
pub use table::{FileTable, versioned};

#[cfg(test)]
mod tests;
