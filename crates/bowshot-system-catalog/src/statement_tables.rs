//! The tables of an open transaction, among the options of its statements: functions see what the transaction has made.

use bowshot_policy::snapshot::Pinned;
use datafusion::common::config::{ConfigEntry, ConfigExtension, ExtensionOptions};
use datafusion::common::config_err;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use std::any::Any;
use std::sync::Arc;

/// The open transaction's tables, an extension of the session options. Options without it are those of statements that see the newest tables. No client can set or read it.
#[derive(Debug, Clone)]
pub struct StatementTables {
    tables: Pinned,
    /// The options of the session, of which these are a copy.
    of_session: Arc<ConfigOptions>,
}

impl StatementTables {
    pub fn new(pinned: &Pinned, of_session: Arc<ConfigOptions>) -> Self {
        Self { tables: pinned.clone().with_input(None), of_session }
    }

    /// The tables as they are, whoever asks.
    pub fn find(options: &ConfigOptions) -> Option<&Pinned> {
        options.extensions.get::<Self>().map(|found| &found.tables)
    }

    /// The options of the session, if these are a copy of them with the tables of a statement.
    pub fn session_options(options: &ConfigOptions) -> Option<&Arc<ConfigOptions>> {
        options.extensions.get::<Self>().map(|found| &found.of_session)
    }
}

impl ConfigExtension for StatementTables {
    const PREFIX: &'static str = "bowshot_statement_tables";
}

impl ExtensionOptions for StatementTables {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, _value: &str) -> Result<()> {
        config_err!("`{key}` cannot be set")
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        Vec::new()
    }
}
