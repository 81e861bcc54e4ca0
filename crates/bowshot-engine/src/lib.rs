//! The query engine: SQL in, record batches out, on DataFusion. A statement is parsed ([`bowshot_sql::parse`]), planned over the tables that
//! [`catalog`] finds ([`plan`], [`write`]), authorized ([`authorize`]: only an [`AuthorizedPlan`] can run), optimized and executed
//! ([`session`], [`execute`]). The engine never talks to clients, has no registry of sessions, and does not decide who may connect.

mod authorize;
mod catalog;
pub mod databases;
pub mod distribution;
pub mod endpoints;
mod error;
mod execute;
mod materialized;
mod models;
mod pipes;
mod plan;
pub mod plan_codec;
pub mod reuse;
mod secured_scan;
mod session;
mod utility;
mod write;

pub use authorize::{Action, AuthorizedPlan, Change};
pub use bowshot_sql::{
    Assignment, CursorStatement, Dialect, DialectName, Discarded, Killed, RowLock, SessionStatement,
    TransactionStatement, first_word, join_path, redact_secrets,
};
pub use catalog::search_path::{SESSION_SEARCH_PATH, explicit_schemas, split_path};
pub use datafusion::execution::runtime_env::RuntimeEnv;
pub use error::Error;
pub use execute::progress::ProgressMeter;
pub use execute::{Execution, Parallelism, rows_of};
pub use models::load_onnx_runtime;
pub use plan::parser_dialect;
pub use plan::planned_statement::Planned;
pub use reuse::{
    SESSION_CACHE, SESSION_KEY_LOOKUPS, SESSION_PLANS, SESSION_RESULTS, SESSION_STALENESS, SESSION_VIEWS,
};
pub use session::EngineSession;
pub use session::authorization::KeptRights;
pub use session::copy_rows::sent_parquet;
pub use session::engine::{
    Base, DueLoad, DuePipe, DueRefresh, Engine, EngineConfig, LoggedQuery, QueryText, SERVER_NAME, Sources,
    SuggestedView, ViewOptions, ViewSuggester, WeakEngine,
};
pub use session::key_lookup::is_key_lookup;
pub use session::literal_query::answers_at_once;
pub use session::row_keys::{RowKey, WatchList, WatchedRows};
pub use session::transaction::Transaction;
pub use session::write::Written;
pub use write::returning::Returned;

/// What an implementation of [`reuse::Reuse`] may use beside what everybody may.
pub mod internals {
    pub use crate::catalog::defaults::without_defaults;
    pub use crate::catalog::search_path::SearchPath;
    pub use crate::error::classify;
    pub use crate::execute::checked_scan::CheckedScan;
    pub use crate::execute::file_views::{FileViews, watched};
    pub use crate::models::asks_model;
    pub use crate::plan::dialect;
    pub use crate::session::template::builder_from;
}
