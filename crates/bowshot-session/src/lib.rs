//! Sessions, admission, running results and the query log: the layer between the front ends and the engine.
//! [`Bowshot`] implements the server API.
//!
//! Start with [`query`]: one function runs a statement. Then:
//!
//! - `session_registry`/`session`/`options`/`prepared`: the state of one client;
//! - `request_task`/`running_statements`: each call as a task with deadline and entry in `system.queries`;
//! - `setting_lookup`/`settings_view`/`session_statements`/`sql_prepared`: SET, SHOW, PREPARE, KILL and the like;
//! - `admission`: how many statements run and wait;
//! - `started`: the rows of a small result at once, else
//! - `result_registry`/`result`/`cursors`: started queries, until they are read, cancelled or expire;
//! - `partition`/`spill`: the bounded buffer between a query and a reader;
//! - `write`/`transactions`/`row_locking`: statements that change tables;
//! - `query_log`: the rows of `system.queries`;
//! - `refresh_views`/`suggest_views`: what the server does about materialized views and pipes by itself.

mod access_metrics;
mod admission;
mod cursors;
mod decoded_size_limit;
mod endpoints;
mod exchange;
mod ingest_stream;
mod login_limiter;
mod options;
mod parquet_upload;
mod partition;
mod prepared;
mod query;
mod query_log;
mod refresh_views;
mod request_task;
mod result;
mod result_registry;
mod row_locking;
mod row_locks;
mod running_statements;
mod server;
mod session;
mod session_registry;
mod session_statements;
mod setting_lookup;
mod settings_view;
mod spill;
mod sql_prepared;
mod started;
mod suggest_views;
mod task;
mod tensor_exchange;
#[cfg(test)]
mod tests;
mod transaction_scope;
mod transactions;
mod write;

pub use query_log::{QueryLog, QueryLogOptions};
pub use server::{Bowshot, Drained};
