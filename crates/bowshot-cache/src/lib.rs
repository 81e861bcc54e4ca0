//! Joins that are there before they are asked for, and results: their keys, where their rows are, and which come next. No DataFusion
//! and no SQL; the engine recognises joins and computes them.
//!
//! - [`JoinShape`] is what a join computes, with the exact version of each table (`shape.rs`, `range.rs`): a cached join
//!   is found by it and by nothing else, so that it can never be out of date;
//! - [`Store`] keeps the rows as Arrow in memory under one budget, and as Arrow files that are mapped back under a second
//!   (`store.rs`, `entry.rs`, `file.rs`). What it saves for each byte decides who stays. `needs.rs` tells quickly of most
//!   queries that nothing is there for them;
//! - [`ResultFiles`]: whole results as files, which survive a restart (`results.rs`);
//! - [`Flights`]: one computation at a time for each join;
//! - [`History`] remembers templates of joins (`history.rs`); [`Pattern`] knows names that count (`sequence/`), and with
//!   both the next join of a template is foretold (`forecast.rs`), or the next part of a table (`slice.rs`).
//!
//! Nothing that goes wrong here fails a query: the join is computed as if there were no cache, with a metric and a line
//! in the log.

mod entry;
mod error;
mod file;
mod flight;
mod folder;
mod forecast;
mod history;
mod near;
mod needs;
mod range;
mod results;
mod sequence;
mod shape;
mod slice;
mod store;

pub use entry::{About, CachedJoin, Loaded, Place};
pub use error::Error;
pub use flight::{Flight, Flights};
pub use folder::create as create_private;
pub use forecast::{is_later, next as next_tables};
pub use history::{History, Order, Seen, Template};
pub use near::Near;
pub use needs::{ColumnNames, Needs, identity_digest};
pub use results::{AboutResult, ResultFiles, Written, this_program};
pub use sequence::Pattern;
pub use shape::{
    ColumnRef, Content, JoinShape, Match, Member, Outer, OuterKind, TableKey, TableName, Tree, renumber,
    tables_in,
};
pub use store::{Budget, ENTRY_BYTES, Store};
