//! What was computed before is not computed again: whole results ([`results`]) and joins ([`joins`]).
//!
//! This is one implementation of [`Reuse`](bowshot_engine::reuse::Reuse), which the engine calls on the road of a query and
//! which is all that it knows of caches; [`caches`] has it, and [`start`] gives an engine with it. Without it the engine gives
//! the same answers.
//!
//! - [`keys`]: which rows a table has, as exactly as a cache needs it. What has no key is not cached;
//! - [`settings`]: what of a session's settings counts;
//! - [`background`]: threads for work that nobody waits for, and how it leaves the processor to queries;
//! - [`control`]: statements about the caches.
//!
//! Keys, budgets, files, history and forecasts, as far as they need no DataFusion, are `bowshot-cache`'s.
//!
//! Whatever goes wrong here, the query runs as if there were no cache.

mod background;
mod caches;
mod columns;
mod control;
mod copied;
mod joins;
mod keys;
mod lineage;
mod results;
mod settings;

pub use caches::{ReuseConfig, start};
pub use joins::JoinCacheConfig;
pub use results::ResultCacheConfig;
