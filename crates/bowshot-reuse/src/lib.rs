//! Caches of whole results ([`results`]) and of joins ([`joins`]): the implementation of the engine's
//! [`Reuse`](bowshot_engine::reuse::Reuse). [`start`] makes an engine with them.
//!
//! A failure here never fails a query: it runs as if there were no cache.

mod background;
mod cache;
mod columns;
mod deep_copy;
mod joins;
mod keys;
mod lineage;
mod results;
mod reuse;
mod settings;

pub use joins::JoinCacheConfig;
pub use results::ResultCacheConfig;
pub use reuse::{ReuseConfig, start};
