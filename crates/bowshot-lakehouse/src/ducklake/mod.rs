//! Catalogs of DuckLake that others write, read-only (<https://ducklake.select/docs/stable/specification/introduction>): a
//! database of SQLite says which tables there are, which Parquet files they have, and which rows of these are gone; some
//! rows are in the database itself.
//!
//! ```text
//! SQLite ─ catalog ─▶ one state ─ metadata ─▶ what a table is made of ─ load ─▶ snapshot of a lake's table
//!                                             types, names, paths, row_positions, inlined
//! ```
//!
//! Each statement asks the catalog which state is the newest; what was read of a table counts as long as the catalog says the
//! same of it. A catalog is data that somebody else has written, who need not be allowed to read what the server can: its files are
//! looked for below the places that the operator has named, and views in it are not asked.

mod catalog;
mod inlined;
mod lake;
mod load;
mod metadata;
mod name_mapping;
mod paths;
mod query_deadline;
mod row_positions;
#[cfg(test)]
mod tests;
mod types;

pub use lake::{DuckLake, DuckLakePlace};
