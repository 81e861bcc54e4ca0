//! The stores of cached joins and results: keys, budgets, files, history and predictions. No plans, no SQL and no DataFusion.
//!
//! A failure here never fails a query: the join is computed as if there were no cache, with a metric and a line in the log.

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

pub(crate) use entry::{About, CachedJoin, Loaded, Place};
pub(crate) use error::Error;
pub(crate) use flight::{Flight, Flights};
pub(crate) use folder::create as create_private;
pub(crate) use forecast::{is_later, next as next_tables};
pub(crate) use history::{History, Order, Seen, Template};
pub(crate) use near::Near;
pub(crate) use needs::{ColumnNames, Needs, identity_digest};
pub(crate) use results::{AboutResult, ResultFiles, Written, this_program};
pub(crate) use sequence::Pattern;
pub(crate) use shape::{
    ColumnRef, Content, JoinShape, Match, Member, Outer, OuterKind, TableKey, TableName, Tree, renumber,
    tables_in,
};
pub(crate) use store::{Budget, ENTRY_BYTES, Store};
