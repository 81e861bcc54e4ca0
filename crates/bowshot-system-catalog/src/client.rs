//! What the engine asks the session of a client: its settings, named statements and cursors, which live above the engine.

use bowshot_api::{Result, TransactionId};
use datafusion::config::{ConfigOptions, Dialect};
use std::sync::{Arc, OnceLock};

/// Something that `SET` can set, as `SHOW` tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Name as it is shown.
    pub name: &'static str,
    /// Value in force.
    pub value: String,
    /// What it does.
    pub text: &'static str,
}

/// A statement that `PREPARE` has given a name.
#[derive(Debug, Clone)]
pub struct NamedStatement {
    /// Its text.
    pub sql: Arc<str>,
    /// Types that its parameters are declared with, as SQL.
    pub types: Arc<Vec<String>>,
}

/// A cursor of the session.
#[derive(Debug, Clone)]
pub struct OpenCursor {
    /// Its name.
    pub name: String,
    /// The statement that has declared it.
    pub sql: Arc<str>,
    /// Whether it is there after the commit of its transaction.
    pub is_held: bool,
}

/// The session as the engine sees it.
pub trait Client: Send + Sync + std::fmt::Debug {
    /// All settings, sorted by name.
    fn settings(&self) -> Vec<Setting>;

    /// One setting, under any of its names.
    ///
    /// # Errors
    /// `NotFound`, with the names that are close.
    fn setting(&self, name: &str) -> Result<Setting>;

    /// Sets one, until the transaction ends if it is `local`.
    ///
    /// # Errors
    /// As `SET`.
    fn set(&self, name: &str, value: Option<&str>, local: bool) -> Result<()>;

    /// A statement that `PREPARE` has named.
    fn named(&self, name: &str) -> Option<NamedStatement>;

    /// All open cursors, sorted by name.
    fn cursors(&self) -> Vec<OpenCursor>;

    /// The number of the session, for clients that know sessions by numbers.
    fn number(&self) -> i32;

    /// The open transaction of the session, if there is one.
    fn transaction(&self) -> Option<TransactionId>;

    /// Whether the open transaction may change nothing.
    fn is_read_only(&self) -> bool;

    /// Cancels what another session of the user runs; whether there is one of that number.
    fn cancel_statements(&self, number: i32) -> bool;

    /// Ends a session of the user; whether there is one of that number.
    fn end_session(&self, number: i32) -> bool;

    /// Rows that the last statement has changed, or −1.
    fn changed_rows(&self) -> i64;

    /// The last number that the server gave to a row of the session's in a column that numbers itself, or 0.
    fn generated_number(&self) -> i64;

    /// Takes a number for the last one that the server gave.
    fn set_generated_number(&self, number: i64);
}

/// The client of a session, once it has told who it is. A session without one has no settings.
#[derive(Debug, Clone, Default)]
pub struct ClientSlot(Arc<OnceLock<Arc<dyn Client>>>);

impl ClientSlot {
    /// The first one stays.
    pub fn attach(&self, client: Arc<dyn Client>) {
        let _ = self.0.set(client);
    }

    pub fn get(&self) -> Option<&Arc<dyn Client>> {
        self.0.get()
    }
}

/// Whose answers the columns of an answer are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavour {
    /// DuckDB's, where nobody says otherwise.
    Bowshot,
    Postgres,
    MySql,
}

impl Flavour {
    /// That of a session with these options.
    pub fn of(options: &ConfigOptions) -> Self {
        match options.sql_parser.dialect {
            Dialect::MySQL => Self::MySql,
            Dialect::PostgreSQL => Self::Postgres,
            _ => Self::Bowshot,
        }
    }
}
