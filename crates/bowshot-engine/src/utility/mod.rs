//! The answers of statements that ask about the server and the session: SHOW, DESCRIBE, SUMMARIZE, PRAGMA, EXECUTE. Each is
//! answered by a query over `information_schema` and `system`, or over rows that are known already.
//!
//! Nothing here changes a table, and nothing of it applies to scratch sessions.

mod check_tables;
pub(crate) mod describe;
pub(crate) mod pragma;
pub(crate) mod prepare;
pub(crate) mod show;
mod show_keys;
mod show_names;
mod show_server;
mod show_tables;
pub(crate) mod summarize;
mod utility_context;

pub(crate) use check_tables::check_tables;
pub(crate) use utility_context::UtilityContext;
