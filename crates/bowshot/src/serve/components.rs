//! The parts below the front ends, put together: users, sources, engine, sessions.

use super::banner::Served;
use super::databases;
use super::memory;
use super::secrets;
use super::system_tables::ServerTables;
use crate::config::Config;
use crate::usage::Usage;
use anyhow::{Context, Result, bail};
use bowshot_access::{AuditLog, AuditOptions, Authenticator, HttpPolicyDecisionPoint};
use bowshot_api::ErrorKind;
use bowshot_api::catalog_names::{DEFAULT_CATALOG, DEFAULT_SCHEMA};
use bowshot_cluster::membership::Cluster;
use bowshot_cluster::{Placement, QueryStages};
use bowshot_engine::{Engine, RuntimeEnv, Sources};
use bowshot_files::FileCatalog;
use bowshot_formats::decoded_columns::ColumnCache;
use bowshot_formats::table_summary::TableSummary;
use bowshot_object_store::Remotes;
use bowshot_object_store::secrets::Secrets;
use bowshot_session::{Bowshot, QueryLog, QueryLogOptions};
use bowshot_system_catalog::system::SystemTables;
use bowshot_tables::{StoreOptions, TableStore, TablesPlace};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

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
    tables: Arc<TableStore>,
    log: Arc<QueryLog>,
}

impl Parts {
    /// Opens everything in the configuration, and the durable tables of an unused folder. A
    /// broken file is no error here, a missing one is.
    pub(crate) async fn open(
        config: &Config,
        data: Option<&Path>,
        spill: Option<&Path>,
        cluster: Option<Cluster>,
    ) -> Result<Self> {
        let mut engine_config = config.engine();
        engine_config.spill_folder = spill.map(Path::to_path_buf).or(engine_config.spill_folder);
        engine_config.process_bytes = memory::budget(config.limits.memory_bytes);
        let mut reuse = config.reuse.clone();
        let cache = &mut reuse.joins.folder;
        *cache = cache.take().or_else(|| data.map(|folder| folder.join("join_cache")));
        reuse.results.folder = data.map(|folder| folder.join("result_cache"));
        let environment = Engine::environment(&engine_config)?;
        let secrets = secrets::open(config, data)?;
        engine_config.secrets = Some(Arc::clone(&secrets));
        let remotes = remotes(config, &secrets, data.or(spill))?;
        engine_config.remotes = Some(Arc::clone(&remotes));
        let (sources, mut storage) = (config.sources.clone(), config.storage.clone());
        let place = place_of_tables(config, &remotes)?;
        storage.remotes = Some(remotes);
        let columns = memory::share(
            "storage.column_cache_bytes",
            config.column_cache_bytes,
            config.limits.memory_bytes,
        );
        let columns = ColumnCache::new(columns);
        // Before the sources, which may need its secrets.
        let tables = match data {
            Some(folder) => open_tables(folder, config, &environment, (Arc::clone(&columns), place)).await?,
            None => TableStore::in_memory(DEFAULT_CATALOG, DEFAULT_SCHEMA, config.table_bytes),
        };
        secrets.read_from(tables.newest_texts());
        let (runtime, found) = (Arc::clone(&environment), Arc::clone(&columns));
        let opened =
            tokio::task::spawn_blocking(move || FileCatalog::open(sources, storage, &runtime, &found)).await;
        let catalog = opened.context("opening the sources failed")?.map_err(Usage::from)?;
        let databases = databases::opened(config, &secrets, &catalog).map_err(Usage::from)?;
        engine_config.databases = Some(Arc::clone(&databases) as _);
        let (log, stages) = (Arc::new(query_log(config)?), QueryStages::default());
        let others: Arc<dyn SystemTables> = Arc::<QueryLog>::clone(&log);
        let of_server = ServerTables { others, cluster: cluster.clone(), stages: stages.clone(), databases };
        let system: Arc<dyn SystemTables> = Arc::new(of_server);
        let sources =
            Sources { main: catalog.schema_provider(), system: Some(system), tables: Arc::clone(&tables) };
        let shared = Arc::clone(&environment);
        let engine = bowshot_reuse::start(&reuse, (&engine_config, environment), sources).map_err(mistake)?;
        let decider = HttpPolicyDecisionPoint::new(&config.decider);
        if let Some(decider) = decider.map_err(|error| Usage::from(bowshot_api::Error::from(error)))? {
            engine.decide_by(Arc::new(decider));
        }
        if let Some(cluster) = &cluster {
            let placement = Placement {
                bytes_per_thread: usize::try_from(config.cluster.bytes_per_thread).unwrap_or(usize::MAX),
                max_open_files: config.storage.max_open_files,
            };
            bowshot_cluster::join(cluster, &engine, (&shared, &columns), (placement, &stages))?;
        }
        Ok(Self { catalog, engine, tables, log })
    }

    /// Reads headers and footers of all sources.
    pub(crate) async fn served(&self) -> Result<Vec<Served>> {
        let catalog = Arc::clone(&self.catalog);
        let summaries = tokio::task::spawn_blocking(move || catalog.describe()).await;
        Ok(summaries.context("reading the sources failed")?.into_iter().map(served).collect())
    }

    /// The same within `patience`, so that the server is ready soon. The rest
    /// continues in the background until the check is dropped.
    pub(crate) async fn served_within(&self, patience: Duration) -> Result<(Vec<Served>, SourceCheck)> {
        let deadline = Instant::now() + patience;
        let (look, catalog) = (SourceCheck::default(), Arc::clone(&self.catalog));
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let stopped = Arc::clone(&look.0);
        tokio::task::spawn_blocking(move || look_at_all(&catalog, &sender, &stopped));
        let mut known = HashMap::new();
        let complete = loop {
            match timeout_at(deadline, receiver.recv()).await {
                Ok(Some(summary)) => known.insert(summary.name.clone(), served(summary)),
                Ok(None) => break true,
                Err(_) => break false,
            };
        };
        // Later findings go to the log.
        receiver.close();
        while let Ok(summary) = receiver.try_recv() {
            known.insert(summary.name.clone(), served(summary));
        }
        let catalog = Arc::clone(&self.catalog);
        let names = tokio::task::spawn_blocking(move || catalog.list()).await;
        let names = names.context("listing the sources failed")?;
        if complete && known.is_empty() && !names.is_empty() {
            bail!("reading the sources failed");
        }
        let of_one = |(name, path): (String, PathBuf)| {
            known.remove(&name).unwrap_or_else(|| Served::not_looked_at(name, &path))
        };
        Ok((names.into_iter().map(of_one).collect(), look))
    }

    /// Files in served folders that are no table.
    pub(crate) async fn left_out(&self) -> Result<Vec<PathBuf>> {
        let catalog = Arc::clone(&self.catalog);
        tokio::task::spawn_blocking(move || catalog.left_out()).await.context("listing the sources failed")
    }

    pub(crate) fn tables(&self) -> Arc<TableStore> {
        Arc::clone(&self.tables)
    }

    /// The implementation of the server API.
    pub(crate) fn server(&self, config: &Config, authenticator: Authenticator) -> Arc<Bowshot> {
        Bowshot::new(self.engine.clone(), authenticator, config.limits.clone(), Arc::clone(&self.log))
    }
}

/// The object stores. Their block cache is beside the tables if these have a folder, else it lasts as long as the
/// server lives.
fn remotes(config: &Config, secrets: &Arc<Secrets>, folder: Option<&Path>) -> Result<Arc<Remotes>> {
    let mut options = config.remote.clone();
    options.secrets = Some(Arc::clone(secrets));
    let beside = folder.map(|folder| folder.join("object_cache"));
    options.cache_folder = options.cache_folder.or(beside);
    Ok(Remotes::new(options).map_err(Usage::from)?)
}

/// The log behind `system.queries`.
fn query_log(config: &Config) -> Result<QueryLog> {
    let (slow_after, count_tags) = (config.logged.slow_after, config.logged.count_tags);
    Ok(QueryLog::new(QueryLogOptions { audit: audit(config)?, slow_after, count_tags }))
}

/// The audit trail, if one is asked for.
fn audit(config: &Config) -> Result<Option<AuditLog>> {
    let Some(file) = config.audit_file.clone() else { return Ok(None) };
    let (max_bytes, required) = (config.audit_max_bytes, config.audit_required);
    let opened = AuditLog::open(AuditOptions { file: file.clone(), max_bytes, required });
    opened.map(Some).with_context(|| {
        format!("cannot continue the audit trail `{}`; move it away to begin a new one", file.display())
    })
}

/// The location of files of durable tables, if it is not the data folder.
fn place_of_tables(config: &Config, remotes: &Remotes) -> Result<Option<TablesPlace>> {
    let (address, cache_bytes) = (&config.tables.address, config.tables.cache_bytes);
    if address.is_empty() {
        return Ok(None);
    }
    let folder = remotes.folder(address).map_err(|error| {
        let usage = Usage::new(format!("`storage.tables` cannot be used: {}", error.message()));
        match error.hint() {
            Some(hint) => usage.with_hint(hint),
            None => usage,
        }
    })?;
    Ok(Some(TablesPlace { folder, cache_bytes }))
}

async fn open_tables(
    folder: &Path,
    config: &Config,
    runtime: &Arc<RuntimeEnv>,
    (columns, place): (Arc<ColumnCache>, Option<TablesPlace>),
) -> Result<Arc<TableStore>> {
    let options = StoreOptions {
        default_catalog: DEFAULT_CATALOG.to_owned(),
        default_schema: DEFAULT_SCHEMA.to_owned(),
        memory_bytes: config.table_bytes,
        max_open_files: config.storage.max_open_files,
        columns,
        place,
    };
    let (folder, runtime) = (folder.to_path_buf(), Arc::clone(runtime));
    let opened = tokio::task::spawn_blocking(move || TableStore::open(&folder, &options, &runtime)).await;
    Ok(opened.context("opening the data folder failed")?.map_err(bowshot_api::Error::from)?)
}

/// An unusable configured folder is a usage error; other errors are not.
fn mistake(error: bowshot_api::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::Invalid => Usage::from(error).into(),
        _ => error.into(),
    }
}

/// The background check of tables. Dropping it ends it after the current table.
#[derive(Debug, Default)]
pub(crate) struct SourceCheck(Arc<AtomicBool>);

impl Drop for SourceCheck {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Sends the summary of each table; when nobody listens any more, problems go to the log.
fn look_at_all(catalog: &FileCatalog, listener: &mpsc::UnboundedSender<TableSummary>, stopped: &AtomicBool) {
    let mut late = 0_usize;
    catalog.describe_each(|summary| {
        if stopped.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        if let Err(mpsc::error::SendError(summary)) = listener.send(summary) {
            late += 1;
            if let Some(problem) = &summary.problem {
                tracing::warn!(table = %summary.name, path = %summary.path.display(), %problem, "table cannot be read");
            }
        }
        ControlFlow::Continue(())
    });
    if late > 0 && !stopped.load(Ordering::Relaxed) {
        tracing::info!(tables = late, "the remaining tables were read");
    }
}

fn served(summary: TableSummary) -> Served {
    Served {
        looked_at: true,
        name: summary.name,
        format: summary.format.to_owned(),
        files: summary.files,
        bytes: summary.bytes,
        path: summary.path.display().to_string(),
        read_as: summary.read_as,
        problem: summary.problem,
    }
}
