//! The tables of an open transaction, among the options of its statements: functions see what the transaction has made.

use bowshot_policy::snapshot::Pinned;
use datafusion::common::config::{ConfigEntry, ConfigExtension, ExtensionOptions};
use datafusion::common::config_err;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use std::any::Any;

/// See the module. Options without it are those of statements that see the newest tables. No client can set or read it.
#[derive(Debug, Clone)]
pub struct StatementTables(Pinned);

impl StatementTables {
    pub fn new(pinned: &Pinned) -> Self {
        Self(pinned.clone().with_input(None))
    }

    /// The tables as they are, whoever asks.
    pub fn find(options: &ConfigOptions) -> Option<&Pinned> {
        options.extensions.get::<Self>().map(|tables| &tables.0)
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
