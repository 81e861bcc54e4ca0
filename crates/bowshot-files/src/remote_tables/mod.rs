//! Tables in object stores, and files in them that statements name: which tables a source gives, and which files a table has.

mod discovery;
mod listing;
mod patterns;

pub(crate) use discovery::definitions;
pub(crate) use listing::list_whole;
pub(crate) use patterns::NamedObjects;
