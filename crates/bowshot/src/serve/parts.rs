//! The parts below the front ends, put together: users, sources, engine, sessions.

use super::banner::Served;
use crate::config::Config;
use crate::usage::Usage;
use anyhow::{Context, Result};
use bowshot_access::Authenticator;
use bowshot_engine::{DEFAULT_CATALOG, DEFAULT_SCHEMA, Engine, SystemTables};
use bowshot_session::{Bowshot, QueryLog};
use bowshot_storage::tables::TableStore;
use bowshot_storage::{FileCatalog, TableSummary};
use std::sync::Arc;

/// Who may come in.
///
/// # Errors
/// [`Usage`] for users or tokens that are not fully understood.
pub(crate) fn authenticator(config: &Config) -> Result<Authenticator> {
    let authenticator = Authenticator::new(config.access.clone(), &config.access_options);
    Ok(authenticator.map_err(|error| Usage::from(bowshot_api::Error::from(error)))?)
}

/// Sources and engine, opened but not yet served.
#[derive(Debug)]
pub(crate) struct Parts {
    catalog: Arc<FileCatalog>,
    engine: Engine,
    log: Arc<QueryLog>,
}

impl Parts {
    /// Opens everything that the configuration names. A broken file is no error here, a missing one is.
    pub(crate) async fn open(config: &Config) -> Result<Self> {
        let engine_config = config.engine();
        let environment = Engine::environment(&engine_config)?;
        let (sources, storage) = (config.sources.clone(), config.storage.clone());
        let runtime = Arc::clone(&environment);
        let opened = tokio::task::spawn_blocking(move || FileCatalog::open(sources, storage, &runtime)).await;
        let catalog = opened.context("opening the sources broke down")?.map_err(Usage::from)?;
        let log = Arc::new(QueryLog::default());
        let system: Arc<dyn SystemTables> = Arc::<QueryLog>::clone(&log);
        let tables = TableStore::in_memory(DEFAULT_CATALOG, DEFAULT_SCHEMA, config.table_bytes);
        let engine =
            Engine::new(&engine_config, environment, catalog.schema_provider(), Some(system), tables)?;
        Ok(Self { catalog, engine, log })
    }

    /// Reads headers and footers of all sources and says what is there.
    pub(crate) async fn served(&self) -> Result<Vec<Served>> {
        let catalog = Arc::clone(&self.catalog);
        let summaries = tokio::task::spawn_blocking(move || catalog.describe()).await;
        Ok(summaries.context("reading the sources broke down")?.into_iter().map(served).collect())
    }

    /// The server below the door.
    pub(crate) fn server(&self, config: &Config, authenticator: Authenticator) -> Arc<Bowshot> {
        Bowshot::new(self.engine.clone(), authenticator, config.limits.clone(), Arc::clone(&self.log))
    }
}

fn served(summary: TableSummary) -> Served {
    Served {
        name: summary.name,
        format: summary.format.map(|format| format.to_string()).unwrap_or_default(),
        files: summary.files,
        bytes: summary.bytes,
        path: summary.path.display().to_string(),
        problem: summary.problem,
    }
}
