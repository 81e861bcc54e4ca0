//! The stores of cached joins and results: keys, budgets, files, history and predictions. No plans, no SQL and no DataFusion.
//!
//! A failure here never fails a query: the join is computed as if there were no cache, with a metric and a line in the log.

mod cache_folder;
mod entry;
mod error;
mod file;
mod history;
mod implication;
mod mismatch;
mod needs;
mod prediction;
mod results;
mod sequence;
mod shape;
mod slice;
mod store;

pub(crate) use cache_folder::create as create_private_file;
pub(crate) use entry::{CachedJoin, JoinInfo, Loaded, RowLocation};
pub(crate) use error::Error;
pub(crate) use history::{History, Order, Template};
pub(crate) use mismatch::Mismatch;
pub(crate) use needs::{ColumnNames, Needs, identity_digest};
pub(crate) use prediction::{is_later, next as next_tables};
pub(crate) use results::{ResultFiles, ResultInfo, Written, this_program};
pub(crate) use sequence::Pattern;
pub(crate) use shape::{
    ColumnRef, Content, JoinShape, Match, Member, Outer, OuterKind, TableKey, TableName, Tree, renumber,
};
pub(crate) use store::{Budget, ENTRY_BYTES, Store};
