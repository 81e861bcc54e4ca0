//! All databases that a server knows: those of the configuration, and those that admins have attached, which are forgotten when
//! it ends.

use crate::insert;
use crate::place::Place;
use crate::secrets;
use crate::settings::{DatabaseSettings, Kind, Options};
use crate::source::{Source, unknown};
use crate::table::DatabaseTable;
use async_trait::async_trait;
use bowshot_api::{Error, ErrorKind, Principal, Result};
use bowshot_engine::databases::{Attachment, Databases};
use bowshot_storage::secrets::Secrets;
use bowshot_storage::tables::EntryName;
use datafusion::arrow::array::{ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray};
use datafusion::catalog::TableProvider;
use datafusion::execution::SendableRecordBatchStream;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use tokio::runtime::Handle;

/// Most databases of one server.
const MAX_DATABASES: usize = 256;

/// See the module.
#[derive(Debug)]
pub struct OtherDatabases {
    sources: RwLock<BTreeMap<String, Arc<Source>>>,
    /// Places that may be attached.
    opened: Vec<Place>,
    drivers: BTreeMap<Kind, PathBuf>,
    secrets: Option<Arc<Secrets>>,
}

/// What one caller has of a database.
struct OfCaller {
    of: Arc<Source>,
    source: Arc<Source>,
}

impl OtherDatabases {
    /// The databases of the configuration; nobody is asked yet.
    ///
    /// # Errors
    /// `Invalid`, naming the database and the key.
    pub fn new(options: Options) -> Result<Arc<Self>> {
        let Options { databases, attach, drivers, secrets } = options;
        let opened = attach.iter().map(|uri| {
            let wrong = || Error::invalid("a place in `attach.places` is not understood")
                .with_hint("write `postgres://host:port/`, `grpc://host:port`, or the scheme and path of a folder: `sqlite:///data`");
            let kind = Place::kind(uri).ok_or_else(wrong)?;
            Place::parse(kind, uri, None).map_err(|_| wrong())
        });
        let opened = opened.collect::<Result<_>>()?;
        let these = Self { sources: RwLock::default(), opened, drivers, secrets };
        for settings in databases {
            let (name, settings) = (settings.name.clone(), these.with_driver(settings.with_password()?)?);
            these.add(&name, Source::new(settings, false))?;
        }
        Ok(Arc::new(these))
    }

    fn with_driver(&self, mut settings: DatabaseSettings) -> Result<DatabaseSettings> {
        settings.driver = settings.driver.take().or_else(|| self.drivers.get(&settings.kind).cloned());
        if settings.driver.is_some() {
            return Ok(settings);
        }
        let (name, kind) = (&settings.name, settings.kind.name());
        Err(Error::invalid(format!("no driver is named for the database `{name}`"))
            .with_hint(format!("set `driver` in its entry, or `drivers.{kind}` for all of its kind, to the path of a shared library")))
    }

    fn add(&self, name: &str, source: Arc<Source>) -> Result<()> {
        let mut sources = self.sources.write().unwrap_or_else(PoisonError::into_inner);
        if sources.contains_key(name) {
            return Err(Error::new(
                ErrorKind::AlreadyExists,
                format!("there is a database `{name}` already"),
            ));
        }
        if sources.len() >= MAX_DATABASES {
            return Err(Error::new(
                ErrorKind::LimitReached,
                format!("there are {MAX_DATABASES} databases already"),
            ));
        }
        sources.insert(name.to_owned(), source);
        Ok(())
    }

    fn sources(&self) -> RwLockReadGuard<'_, BTreeMap<String, Arc<Source>>> {
        self.sources.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// A database as it was opened.
    fn known(&self, name: &str) -> Result<Arc<Source>> {
        self.sources().get(name).cloned().ok_or_else(|| unknown(name))
    }

    /// A database with the credentials that it has now: where those of a secret are others by now, its connections are left.
    ///
    /// # Errors
    /// `Unavailable` when the secret is gone or cannot be used.
    fn source(&self, name: &str) -> Result<Arc<Source>> {
        let source = self.known(name)?;
        let Some(renewed) = secrets::renewed(&source.settings, self.secrets.as_deref())? else {
            return Ok(source);
        };
        let renewed = Source::new(renewed, source.attached);
        let mut sources = self.sources.write().unwrap_or_else(PoisonError::into_inner);
        match sources.get_mut(name) {
            Some(there) if Arc::ptr_eq(there, &source) => {
                *there = Arc::clone(&renewed);
                Ok(renewed)
            }
            // Somebody else has seen it, too.
            Some(there) => Ok(Arc::clone(there)),
            None => Err(unknown(name)),
        }
    }

    /// A database as this caller reaches it. One that is asked with the tokens of callers has connections and knowledge for each of
    /// them, which are theirs alone and go with their sessions.
    ///
    /// # Errors
    /// `Denied` for a caller without a token.
    fn source_of(&self, name: &str, caller: &Principal) -> Result<Arc<Source>> {
        let source = self.source(name)?;
        if !source.settings.forward_token {
            return Ok(source);
        }
        let own = caller.bearer.as_ref().and_then(|token| {
            let is_of_this = |own: &OfCaller| Arc::ptr_eq(&own.of, &source);
            token.kept(name, is_of_this, || OfCaller {
                of: Arc::clone(&source),
                source: Source::new(source.settings.of_caller(token), source.attached),
            })
        });
        own.map(|own| Arc::clone(&own.source)).ok_or_else(|| {
            Error::new(
                ErrorKind::Denied,
                format!("the database `{name}` is asked with the token of its caller"),
            )
            .with_hint(
                "log in with a token of an identity provider, sent as a bearer token or as the password",
            )
        })
    }
}

#[async_trait]
impl Databases for OtherDatabases {
    fn names(&self) -> Vec<String> {
        self.sources().keys().cloned().collect()
    }

    fn has(&self, database: &str) -> bool {
        self.sources().contains_key(database)
    }

    fn may_have_schema(&self, database: &str, schema: &str) -> bool {
        self.known(database).is_ok_and(|source| source.may_have_schema(schema))
    }

    fn listed(&self, database: &str, caller: &Principal) -> Arc<Vec<(String, String)>> {
        let Ok(source) = self.source_of(database, caller) else { return Arc::default() };
        match Handle::try_current() {
            Ok(runtime) => runtime.block_on(source.listed()),
            // Without a runtime there are no deadlines.
            Err(_) => Arc::default(),
        }
    }

    async fn table(&self, name: &EntryName, caller: &Principal) -> Result<Option<Arc<dyn TableProvider>>> {
        let source = self.source_of(&name.catalog, caller)?;
        if !source.may_have_schema(&name.schema) {
            return Ok(None);
        }
        let described = source.described(&name.schema, &name.name).await?;
        Ok(described.map(|described| Arc::new(DatabaseTable::new(source, name.clone(), described)) as Arc<_>))
    }

    fn check_writable(&self, database: &str) -> Result<()> {
        if !self.known(database)?.settings.read_only {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Denied, format!("the database `{database}` is only read"))
            .with_hint("the operator can set `read_only = false` in its entry"))
    }

    async fn insert(
        &self,
        name: &EntryName,
        rows: SendableRecordBatchStream,
        caller: &Principal,
    ) -> Result<u64> {
        self.check_writable(&name.catalog)?;
        insert::insert(&self.source_of(&name.catalog, caller)?, name, rows).await
    }

    async fn attach(&self, attachment: &Attachment) -> Result<()> {
        let Attachment { uri, name, options, .. } = attachment;
        let values = options.iter().map(|(key, value)| (key.clone(), vec![value.clone()])).collect();
        let settings = DatabaseSettings::attached(name, uri, &values)?;
        if !self.opened.iter().any(|opened| settings.place.is_within(opened)) {
            return Err(Error::new(ErrorKind::Denied, "no database may be attached at this place")
                .with_hint("the operator opens places with the setting `attach.places`"));
        }
        let settings = secrets::lent(settings, self.secrets.as_deref())?;
        let source = Source::new(self.with_driver(settings)?, true);
        // What cannot be reached now is told now, unless each caller reaches it by itself.
        if !source.settings.forward_token {
            crate::describe::listed(&source.pool).await.map_err(|fault| fault.of(&source.settings))?;
        }
        self.add(name, source)
    }

    fn detach(&self, name: &str) -> Result<()> {
        if !self.known(name)?.attached {
            return Err(Error::new(
                ErrorKind::Denied,
                format!("the database `{name}` is one of the configuration"),
            )
            .with_hint("take its entry out of `[[databases]]`, and start the server again"));
        }
        self.sources.write().unwrap_or_else(PoisonError::into_inner).remove(name);
        Ok(())
    }

    fn rows(&self) -> Result<RecordBatch> {
        let sources: Vec<Arc<Source>> = self.sources().values().cloned().collect();
        let text = |value: &dyn Fn(&Source) -> Option<String>| -> ArrayRef {
            Arc::new(sources.iter().map(|source| value(source)).collect::<StringArray>())
        };
        let truth = |value: &dyn Fn(&Source) -> bool| -> ArrayRef {
            Arc::new(sources.iter().map(|source| Some(value(source))).collect::<BooleanArray>())
        };
        let count = |value: &dyn Fn(&Source) -> Option<usize>| -> ArrayRef {
            let counts =
                sources.iter().map(|source| value(source).and_then(|count| i64::try_from(count).ok()));
            Arc::new(counts.collect::<Int64Array>())
        };
        let columns = [
            ("name", text(&|source| Some(source.settings.name.clone()))),
            ("kind", text(&|source| Some(source.settings.kind.name().to_owned()))),
            ("place", text(&|source| Some(source.settings.place.to_string()))),
            ("read_only", truth(&|source| source.settings.read_only)),
            ("attached", truth(&|source| source.attached)),
            ("pool", count(&|source| Some(source.settings.pool))),
            ("connections", count(&|source| Some(source.pool.open()))),
            ("tables", count(&Source::known)),
            ("problem", text(&Source::problem)),
        ];
        let columns = columns.map(|(name, column)| (name, column, true));
        RecordBatch::try_from_iter_with_nullable(columns)
            .map_err(|error| Error::internal("the databases do not fit their table").with_source(error))
    }
}
