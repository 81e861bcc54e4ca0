//! All databases of a server: those of the configuration, and those that administrators attached, which last until it stops.

use crate::ducklake::{self, Lake, Lakes};
use crate::iceberg::Catalogs;
use crate::insert;
use crate::kind::Kind;
use crate::location::Location;
use crate::options::Options;
use crate::secret_credentials;
use crate::settings::DatabaseSettings;
use crate::source::{Source, not_found};
use crate::status::DatabaseStatus;
use crate::table::DatabaseTable;
use async_trait::async_trait;
use bowshot_api::{Error, ErrorKind, Principal, Result};
use bowshot_engine::databases::{Attachment, DatabaseDefinition, Databases, TableRewrite};
use bowshot_files::FileCatalog;
use bowshot_formats::table_version::AsOf;
use bowshot_object_store::secrets::Secrets;
use bowshot_tables::EntryName;
use datafusion::arrow::array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
use datafusion::catalog::TableProvider;
use datafusion::execution::SendableRecordBatchStream;
use futures::{StreamExt, TryStreamExt};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::runtime::Handle;

/// Most databases of one server.
const MAX_DATABASES: usize = 256;

#[derive(Debug)]
pub struct ExternalDatabases {
    catalogs: Catalogs,
    sources: RwLock<BTreeMap<String, Arc<Source>>>,
    /// Places that may be attached.
    opened: Vec<Location>,
    drivers: BTreeMap<Kind, PathBuf>,
    lakes: Lakes,
    secrets: Option<Arc<Secrets>>,
}

/// The connections of one caller to a database.
struct CallerSource {
    of: Arc<Source>,
    source: Arc<Source>,
}

enum New {
    Source(Arc<Source>),
    Lake(Arc<Lake>),
}

impl ExternalDatabases {
    /// The databases of the configuration, without a connection yet. Files of lakes are read as those of `files` are.
    ///
    /// # Errors
    /// `Invalid`, naming the database and the key.
    pub fn new(options: Options, files: Arc<FileCatalog>) -> Result<Arc<Self>> {
        let Options { databases, lakes, catalogs, attach, drivers, secrets } = options;
        let opened = attach.iter().filter(|uri| !ducklake::is_lake(uri)).map(|uri| {
            let wrong = || Error::invalid("invalid location in `attach.places`")
                .with_hint("write `postgres://host:port/`, `mysql://host:port/`, `grpc://host:port`, or the scheme and path of a folder: `sqlite:///data`");
            let kind = Location::kind(uri).ok_or_else(wrong)?;
            Location::parse(kind, uri, None).map_err(|_| wrong())
        });
        let opened = opened.collect::<Result<_>>()?;
        let (catalogs, lakes_of_server) = (Catalogs::new(catalogs)?, Lakes::new(files, &attach)?);
        let sources = RwLock::default();
        let these = Self { catalogs, sources, opened, drivers, lakes: lakes_of_server, secrets };
        for settings in databases {
            let (name, settings) = (settings.name.clone(), these.with_driver(settings.with_password()?)?);
            these.add(&name, New::Source(Source::new(settings, false)))?;
        }
        for settings in lakes {
            let lake = these.lakes.configured(settings);
            these.add(lake.open().name(), New::Lake(Arc::clone(&lake)))?;
        }
        Ok(Arc::new(these))
    }

    /// Opens the catalogs of Iceberg tables, whose files are read like those that are served. Until then they
    /// have no tables.
    ///
    /// # Errors
    /// `Invalid` for settings that cannot be used.
    pub fn open_catalogs(&self, files: &FileCatalog) -> Result<()> {
        self.catalogs.open(files)
    }

    fn with_driver(&self, mut settings: DatabaseSettings) -> Result<DatabaseSettings> {
        if settings.kind == Kind::Mysql {
            return match settings.driver {
                None => Ok(settings),
                Some(_) => Err(Error::invalid(format!("the database `{}` needs no driver", settings.name))
                    .with_hint("remove `driver` from its entry: the server has its own client of MySQL")),
            };
        }
        settings.driver = settings.driver.take().or_else(|| self.drivers.get(&settings.kind).cloned());
        if settings.driver.is_some() {
            return Ok(settings);
        }
        let (name, kind) = (&settings.name, settings.kind.name());
        Err(Error::invalid(format!("the database `{name}` has no driver")).with_hint(format!(
            "set `driver` in its entry, or `drivers.{kind}`, to the path of a shared library"
        )))
    }

    fn add(&self, name: &str, new: New) -> Result<()> {
        let mut sources = self.sources.write();
        if sources.contains_key(name) || self.catalogs.has(name) || self.lakes.get(name).is_some() {
            return Err(Error::new(
                ErrorKind::AlreadyExists,
                format!("the database `{name}` already exists"),
            ));
        }
        if sources.len() + self.lakes.names().len() >= MAX_DATABASES {
            return Err(Error::new(
                ErrorKind::LimitReached,
                format!("there are already {MAX_DATABASES} databases"),
            ));
        }
        match new {
            New::Source(source) => drop(sources.insert(name.to_owned(), source)),
            New::Lake(lake) => self.lakes.add(lake),
        }
        Ok(())
    }

    /// A database as it was opened.
    fn find_source(&self, name: &str) -> Result<Arc<Source>> {
        self.sources.read().get(name).cloned().ok_or_else(|| not_found(name))
    }

    /// A database with its current credentials. If its secret was replaced, its connections are dropped.
    ///
    /// # Errors
    /// `Unavailable` when the secret is gone or cannot be used.
    fn source(&self, name: &str) -> Result<Arc<Source>> {
        let source = self.find_source(name)?;
        let Some(renewed) = secret_credentials::refresh(&source.settings, self.secrets.as_deref())? else {
            return Ok(source);
        };
        let renewed = Source::new(renewed, source.attached);
        let mut sources = self.sources.write();
        match sources.get_mut(name) {
            Some(there) if Arc::ptr_eq(there, &source) => {
                *there = Arc::clone(&renewed);
                Ok(renewed)
            }
            // Another thread replaced it.
            Some(there) => Ok(Arc::clone(there)),
            None => Err(not_found(name)),
        }
    }

    /// A database for this caller. One that gets the tokens of callers has connections and cached tables for each of
    /// them, which end with their sessions.
    ///
    /// # Errors
    /// `Denied` for a caller without a token.
    fn source_of(&self, name: &str, caller: &Principal) -> Result<Arc<Source>> {
        let source = self.source(name)?;
        if !source.settings.forward_token {
            return Ok(source);
        }
        let own = caller.bearer.as_ref().and_then(|token| {
            let is_of_this = |own: &CallerSource| Arc::ptr_eq(&own.of, &source);
            token.cached(name, is_of_this, || CallerSource {
                of: Arc::clone(&source),
                source: Source::new(source.settings.for_caller(token), source.attached),
            })
        });
        own.map(|own| Arc::clone(&own.source)).ok_or_else(|| {
            Error::new(ErrorKind::Denied, format!("the database `{name}` needs the token of its caller"))
                .with_hint(
                    "log in with a token of an identity provider, sent as a bearer token or as the password",
                )
        })
    }
}

#[async_trait]
impl Databases for ExternalDatabases {
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            self.sources.read().keys().cloned().chain(self.catalogs.names()).collect();
        names.extend(self.lakes.names());
        names.sort_unstable();
        names
    }

    fn has(&self, database: &str) -> bool {
        self.sources.read().contains_key(database)
            || self.catalogs.has(database)
            || self.lakes.get(database).is_some()
    }

    fn may_have_schema(&self, database: &str, schema: &str) -> bool {
        if let Some(catalog) = self.catalogs.find(database) {
            return catalog.may_have_schema(schema);
        }
        match self.lakes.get(database) {
            Some(lake) => lake.may_have_schema(schema),
            None => self.find_source(database).is_ok_and(|source| source.may_have_schema(schema)),
        }
    }

    fn listed(&self, database: &str, caller: &Principal) -> Arc<Vec<(String, String)>> {
        if let Some(lake) = self.lakes.get(database) {
            return lake.listed();
        }
        // Deadlines need a runtime.
        let Ok(runtime) = Handle::try_current() else { return Arc::default() };
        if let Some(catalog) = self.catalogs.find(database) {
            return runtime.block_on(catalog.listed());
        }
        let Ok(source) = self.source_of(database, caller) else { return Arc::default() };
        runtime.block_on(source.listed())
    }

    async fn table(&self, name: &EntryName, caller: &Principal) -> Result<Option<Arc<dyn TableProvider>>> {
        if let Some(lake) = self.lakes.get(&name.catalog) {
            return lake_table(&lake, name, None).await;
        }
        if let Some(catalog) = self.catalogs.find(&name.catalog) {
            return catalog.table(&name.schema, &name.name, None).await;
        }
        let source = self.source_of(&name.catalog, caller)?;
        if !source.may_have_schema(&name.schema) {
            return Ok(None);
        }
        let described = source.described(&name.schema, &name.name).await?;
        Ok(described.map(|described| Arc::new(DatabaseTable::new(source, name.clone(), described)) as Arc<_>))
    }

    async fn rewritable(
        &self,
        name: &EntryName,
        caller: &Principal,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        match self.catalogs.find(&name.catalog) {
            Some(catalog) => catalog.table_with_lineage(&name.schema, &name.name).await,
            None => self.table(name, caller).await,
        }
    }

    async fn newest_state(&self, database: &str) -> Result<Option<AsOf>> {
        match self.lakes.get(database) {
            Some(lake) => lake.record(lake.open().newest().await).map(Some),
            None => Ok(None),
        }
    }

    async fn table_as_of(
        &self,
        name: &EntryName,
        as_of: AsOf,
        _caller: &Principal,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        if let Some(lake) = self.lakes.get(&name.catalog) {
            return lake_table(&lake, name, Some(as_of)).await;
        }
        match self.catalogs.find(&name.catalog) {
            Some(catalog) => catalog.table(&name.schema, &name.name, Some(as_of)).await,
            None => Ok(None),
        }
    }

    async fn referenced_state(
        &self,
        name: &EntryName,
        reference: &str,
        _caller: &Principal,
    ) -> Result<Option<u64>> {
        match self.catalogs.find(&name.catalog) {
            Some(catalog) => catalog.referenced_state(&name.schema, &name.name, reference).await,
            None => Ok(None),
        }
    }

    fn check_writable(&self, database: &str) -> Result<()> {
        if self.lakes.get(database).is_some() {
            return Err(ducklake::only_read(database));
        }
        let read_only = match self.catalogs.find(database) {
            Some(catalog) => catalog.is_read_only(),
            None => self.find_source(database)?.settings.read_only,
        };
        if !read_only {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Denied, format!("the database `{database}` is read-only"))
            .with_hint("the operator can set `read_only = false` in its entry"))
    }

    async fn insert(
        &self,
        name: &EntryName,
        rows: SendableRecordBatchStream,
        caller: &Principal,
    ) -> Result<u64> {
        self.check_writable(&name.catalog)?;
        if let Some(catalog) = self.catalogs.find(&name.catalog) {
            let rows = rows.map_err(insert::query_error).boxed();
            return catalog.insert(&name.schema, &name.name, rows).await;
        }
        insert::insert(&self.source_of(&name.catalog, caller)?, name, rows).await
    }

    fn has_definitions(&self, database: &str) -> bool {
        self.catalogs.has(database)
    }

    async fn define(&self, change: &DatabaseDefinition) -> Result<bool> {
        self.catalogs.define(change).await
    }

    async fn rewrite(&self, name: &EntryName) -> Result<Box<dyn TableRewrite>> {
        self.catalogs.rewrite(name).await
    }

    async fn attach(&self, attachment: &Attachment) -> Result<()> {
        let Attachment { uri, name, options, .. } = attachment;
        let is_type =
            |(key, value): &(String, String)| key == "type" && value.eq_ignore_ascii_case("ducklake");
        if ducklake::is_lake(uri) || options.iter().any(is_type) {
            return self.add(name, New::Lake(self.lakes.attached(attachment).await?));
        }
        let values = options.iter().map(|(key, value)| (key.clone(), vec![value.clone()])).collect();
        let settings = DatabaseSettings::attached(name, uri, &values)?;
        if !self.opened.iter().any(|opened| settings.place.is_within(opened)) {
            return Err(Error::new(ErrorKind::Denied, "cannot attach a database at this location")
                .with_hint("the operator can allow locations with the setting `attach.places`"));
        }
        let settings = secret_credentials::resolve(settings, self.secrets.as_deref())?;
        let source = Source::new(self.with_driver(settings)?, true);
        // Checks the connection at once, unless each caller has its own.
        if !source.settings.forward_token {
            crate::metadata::list_tables(&source.pool)
                .await
                .map_err(|fault| fault.into_public(&source.settings))?;
        }
        self.add(name, New::Source(source))
    }

    fn detach(&self, name: &str) -> Result<()> {
        let lake = self.lakes.get(name);
        let attached = match &lake {
            Some(lake) => lake.attached,
            None => !self.catalogs.has(name) && self.find_source(name)?.attached,
        };
        if !attached {
            return Err(Error::new(
                ErrorKind::Denied,
                format!("the database `{name}` belongs to the configuration"),
            )
            .with_hint("remove its entry from `[[databases]]` and restart the server"));
        }
        match lake {
            Some(_) => self.lakes.remove(name),
            None => drop(self.sources.write().remove(name)),
        }
        Ok(())
    }

    fn rows(&self) -> Result<RecordBatch> {
        let sources: Vec<Arc<Source>> = self.sources.read().values().cloned().collect();
        let mut rows: Vec<DatabaseStatus> =
            sources.iter().map(|source| source.status()).chain(self.catalogs.statuses()).collect();
        rows.extend(self.lakes.statuses());
        rows.sort_by(|one, other| one.name.cmp(&other.name));
        let text = |value: &dyn Fn(&DatabaseStatus) -> Option<String>| -> ArrayRef {
            Arc::new(rows.iter().map(value).collect::<StringArray>())
        };
        let truth = |value: &dyn Fn(&DatabaseStatus) -> bool| -> ArrayRef {
            Arc::new(rows.iter().map(|row| Some(value(row))).collect::<BooleanArray>())
        };
        let count = |value: &dyn Fn(&DatabaseStatus) -> Option<usize>| -> ArrayRef {
            let counts = rows.iter().map(|row| value(row).and_then(|count| i64::try_from(count).ok()));
            Arc::new(counts.collect::<Int64Array>())
        };
        let columns = [
            ("name", text(&|row| Some(row.name.clone()))),
            ("kind", text(&|row| Some(row.kind.to_owned()))),
            ("place", text(&|row| Some(row.place.clone()))),
            ("read_only", truth(&|row| row.read_only)),
            ("attached", truth(&|row| row.attached)),
            ("pool", count(&|row| row.pool)),
            ("connections", count(&|row| row.connections)),
            ("tables", count(&|row| row.tables)),
            ("problem", text(&|row| row.problem.clone())),
        ];
        let columns = columns.map(|(name, column)| (name, column, true));
        RecordBatch::try_from_iter_with_nullable(columns)
            .map_err(|error| Error::internal("cannot make the table of databases").with_source(error))
    }
}

/// A table of a lake, now or at an earlier state.
async fn lake_table(
    lake: &Lake,
    name: &EntryName,
    at: Option<AsOf>,
) -> Result<Option<Arc<dyn TableProvider>>> {
    if !lake.may_have_schema(&name.schema) {
        return Ok(None);
    }
    lake.record(lake.open().table(&name.schema, &name.name, at).await)
}
