//! Sessions, admission, running results and the query log: what stands between the front ends and the engine.
//! [`Bowshot`] implements the door.
//!
//! Read [`query`] first: one function is the road of a statement. Then:
//!
//! - `sessions`/`session`/`options`/`prepared`: the state of one client, and nothing process-wide;
//! - `work`/`live`: each call of a client with its job, deadline and place in `system.queries`;
//! - `cursors`: queries that stay open, and are read by FETCH;
//! - `known`/`shown`/`statements`/`named`: what SET and SHOW know, and the statements about the session itself;
//! - `admission`: how many statements run, how many wait;
//! - `results`/`result`: started queries, claimed or waiting, until they are read, cancelled or expire;
//! - `partition`/`spill`: the bounded buffer between the engine's work and a reader;
//! - `write`/`transactions`: statements that change tables, and what they are kept in;
//! - `query_log`: what `system.queries` shows.

mod access_metrics;
mod admission;
mod arriving;
mod bowshot;
mod cursors;
mod endpoints;
mod exchange;
mod expanded;
mod known;
mod live;
mod logins;
mod named;
mod options;
mod partition;
mod prepared;
mod query;
mod query_log;
mod result;
mod results;
mod retained;
mod rooms;
mod sent_file;
mod session;
mod sessions;
mod shown;
mod spill;
mod statements;
mod task;
#[cfg(test)]
mod tests;
mod transactions;
mod work;
mod write;

pub use bowshot::{Bowshot, Drained};
pub use query_log::QueryLog;
