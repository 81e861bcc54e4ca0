//! The store of cached joins and results: keys, budgets, files, history and predictions. No plans, no SQL and no DataFusion.
//!
//! A failure here never fails a query: the join is computed as if there were no cache, with a metric and a line in the log.

mod cache_folder;
mod entry;
mod error;
mod file;
mod history;
mod implication;
mod joins;
mod prediction;
mod sequence;
mod shape;
mod slice;
mod store;

pub(crate) use cache_folder::replace as replace_private_file;
pub(crate) use entry::{Entry, EntryInfo, Loaded};
pub(crate) use error::Error;
pub(crate) use history::{History, Order, Template};
pub(crate) use joins::{CachedJoin, JoinInfo, JoinStore, Mismatch};
pub(crate) use prediction::{is_later, next as next_tables};
pub(crate) use sequence::Pattern;
pub(crate) use shape::{
    ColumnRef, Content, JoinShape, Match, Member, Outer, OuterKind, TableKey, TableName, Tree,
    identity_digest, renumber, short_names,
};
pub(crate) use store::{Budget, Cacheable, Place, Sizes, Store};
