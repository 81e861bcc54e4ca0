//! Caches of whole results ([`results`]) and of joins ([`joins`]): the implementation of the engine's
//! [`Reuse`](bowshot_engine::reuse::Reuse). [`start`] makes an engine with them.
//!
//! A failure here never fails a query: it runs as if there were no cache.

mod background;
mod cache;
mod caches;
mod columns;
mod copied;
mod joins;
mod keys;
mod lineage;
mod results;
mod settings;

pub use caches::{ReuseConfig, start};
pub use joins::JoinCacheConfig;
pub use results::ResultCacheConfig;
