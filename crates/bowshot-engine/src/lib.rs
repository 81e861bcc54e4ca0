//! The query engine: SQL in, record batches out. DataFusion lives here and shows nowhere above.
//!
//! One statement passes through, in this order:
//!
//! 1. [`plan`]: text → one parsed statement → logical plan, with its parameters ([`parameters`]); what changes tables is
//!    recognised on the way ([`write`]), and planned as the query that gives the rows;
//! 2. [`enforce`]: logical plan → [`AuthorizedPlan`], the only thing that can run;
//! 3. [`execute`]: parameters bound → physical plan → one [`BatchStream`](bowshot_api::BatchStream) for each partition; or
//!    [`write::apply`]: those rows into the next state of a table.
//!
//! On the way from 2 to 3, what was computed before may be read instead of computed: [`reuse`] is what the engine asks of
//! those who keep it, and [`internals`] what these may use of the engine.
//! Rows of some files are views of these: [`intact`] sees to it that what is no longer the file's never counts.
//!
//! [`engine`] is what a process has of it, [`session`] what one client has. All tables that a statement sees are those of
//! one moment ([`pinned`]), and [`commit`] makes the next one.
//!
//! Who may see and change what is decided in [`policy`], which every table of a plan and every change passes.
//!
//! The engine never talks to clients, keeps no session registry and decides nothing about who may connect. Everything
//! that costs CPU runs on its own runtime ([`runtime`]), never on the sockets' one.

mod about_files;
mod about_tables;
mod around;
mod as_of;
mod catalog;
mod checked_scan;
mod commit;
mod complexity;
mod current_user;
mod derived;
mod enforce;
mod engine;
mod error;
mod execute;
mod growth;
mod guarded;
mod intact;
mod introspect;
mod job;
mod meant;
mod metadata;
mod named_files;
mod parameters;
mod pinned;
mod plan;
mod policy;
mod progress;
mod reasons;
pub mod reuse;
mod rules;
mod runtime;
mod session;
mod short_batches;
mod state;
mod statistics;
mod stepping;
mod straight;
mod system;
mod transaction;
mod types;
mod wording;
mod write;
mod yielding;

pub use bowshot_sql::without_passwords;
pub use catalog::{DEFAULT_CATALOG, DEFAULT_SCHEMA, SYSTEM_SCHEMA};
pub use datafusion::execution::runtime_env::RuntimeEnv;
pub use enforce::{Action, AuthorizedPlan, Change, TransactionStatement};
pub use engine::{Base, Engine, EngineConfig, Sources, WeakEngine};
pub use error::Error;
pub use execute::{Execution, Parallelism};
pub use introspect::{Assignment, Client, Discarded, Killed, NamedStatement, SessionStatement, Setting};
pub use job::{Budget, Inside, Job, Planning, Stop, apart, checked, placed};
pub use pinned::{Pinned, TEMPORARY_CATALOG};
pub use plan::{Planned, parser_dialect};
pub use policy::{AccessSettings, ConfiguredUser, UsersSeen};
pub use progress::ProgressMeter;
pub use reuse::{SESSION_CACHE, SESSION_RESULTS};
pub use rules::SESSION_JOIN_ORDER;
pub use runtime::QueryRuntime;
pub use session::EngineSession;
pub use system::SystemTables;
pub use transaction::Transaction;
pub use write::returning::Returned;
pub use write::run::Written;

/// What an implementation of [`reuse::Reuse`] may use beside what everybody may.
pub mod internals {
    pub use crate::checked_scan::CheckedScan;
    pub use crate::derived::derived;
    pub use crate::error::classify;
    pub use crate::intact::{Views, watched};
    pub use crate::plan::dialect;
    pub use crate::rules::SessionJoinOrder;
    pub use crate::write::defaults::without_defaults;
    pub use crate::yielding::multiplies;
}
