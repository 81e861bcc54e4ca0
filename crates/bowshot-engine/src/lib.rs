//! The query engine: SQL in, record batches out. DataFusion lives here and shows nowhere above.
//!
//! One statement passes through, in this order:
//!
//! 1. [`bowshot_sql::parse`]: text → [`bowshot_sql::Statement`];
//! 2. [`plan`]: parsed statement → logical plan, with its parameters, over the tables that [`catalog`] finds by their names;
//!    what changes tables is recognised on the way ([`write`]), and planned as the query that gives the rows;
//! 3. [`authorize`]: logical plan → [`AuthorizedPlan`], the only thing that can run;
//! 4. [`session`]: parameters bound → physical plan, by [`rules`] → [`execute`]: one
//!    [`BatchStream`](bowshot_api::BatchStream) for each partition; or [`write::apply`]: those rows into the next state of a
//!    table.
//!
//! On the way from 3 to 4, what was computed before may be read instead of computed: [`reuse`] is what the engine asks of
//! those who keep it, and [`internals`] what these may use of the engine.
//!
//! The rooms, from the lowest to the highest; each imports from those before it only (`cargo xtask tidy` looks):
//!
//! | room | what is in it |
//! |---|---|
//! | [`error`] | what an error says, and its code |
//! | [`job`] | one statement's deadline, cancel and memory, and the threads that it runs on |
//! | [`snapshot`] | the state of all tables at one moment, how the next one is made, and names that mean something |
//! | [`types`] | types of SQL |
//! | [`scheduling`] | plans and functions that let others have their turn, and end when they should |
//! | [`models`] | models that were read, and the functions that ask them |
//! | [`plan`] | text → logical plan; which plans may run, and how large they may be |
//! | [`policy`] | who may see and change what |
//! | [`rules`] | rules of the optimiser |
//! | [`portable`] | plans as bytes for other nodes |
//! | [`execute`], [`reuse`], [`distribution`], [`databases`] | physical plan → streams · what caches, a cluster and other databases are asked |
//! | [`catalog`] | the one place where names become tables: catalogs, system tables, `information_schema`, `pg_catalog` |
//! | [`write`] | statements that change tables |
//! | [`utility`] | SHOW, DESCRIBE, SUMMARIZE, PRAGMA, EXECUTE |
//! | [`authorize`] | what a statement does, and whether it may |
//! | [`session`] | the road: what a process has of the engine, and what one client has |
//!
//! The engine never talks to clients, keeps no session registry and decides nothing about who may connect. Everything
//! that costs CPU runs on its own runtime ([`job::runtime`]), never on the sockets' one.

mod authorize;
mod catalog;
pub mod databases;
pub mod distribution;
pub mod endpoints;
mod error;
mod execute;
mod job;
mod models;
mod plan;
mod policy;
pub mod portable;
pub mod reuse;
mod rules;
mod scheduling;
mod session;
mod snapshot;
mod types;
mod utility;
mod write;

pub use authorize::{Action, AuthorizedPlan, Change};
pub use bowshot_sql::{
    Assignment, CursorStatement, Dialect, DialectName, Discarded, Killed, SessionStatement,
    TransactionStatement, first_word, join_path, redact_secrets,
};
pub use catalog::client::{Client, NamedStatement, OpenCursor, Setting};
pub use catalog::search_path::{SESSION_SEARCH_PATH, explicit_schemas, split_path};
pub use catalog::system::SystemTables;
pub use datafusion::execution::runtime_env::RuntimeEnv;
pub use error::Error;
pub use execute::progress::ProgressMeter;
pub use execute::{Execution, Parallelism, rows_of};
pub use job::runtime::QueryRuntime;
pub use job::{Budget, Inside, Job, Planning, Stop, apart, checked, placed};
pub use models::load_onnx_runtime;
pub use plan::{Planned, parser_dialect};
pub use policy::{AccessSettings, CatalogUsers, ConfiguredUser, UsersSeen};
pub use reuse::{SESSION_CACHE, SESSION_RESULTS};
pub use rules::SESSION_JOIN_ORDER;
pub use session::EngineSession;
pub use session::copy_rows::sent_parquet;
pub use session::engine::{Base, Engine, EngineConfig, Sources, WeakEngine};
pub use session::judging::KeptRights;
pub use session::transaction::Transaction;
pub use session::write::Written;
pub use snapshot::input::StreamedTable;
pub use snapshot::names::{DEFAULT_CATALOG, DEFAULT_SCHEMA, SYSTEM_SCHEMA, TEMPORARY_CATALOG};
pub use snapshot::{Isolation, Pinned};
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
    pub use crate::rules::SessionJoinOrder;
    pub use crate::scheduling::multiplies;
    pub use crate::session::template::builder_from;
}
