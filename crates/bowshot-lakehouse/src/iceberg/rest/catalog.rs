//! One catalog over time: what it has said of its tables is believed for a while, and what it could not say for a moment.

use super::super::folder::{Given, IcebergFolder};
use super::super::write::TableState;
use super::allowed_locations::{Spot, spot};
use super::exact_names::ExactNames;
use super::fault::CatalogFault;
use super::names::{is_name, parts};
use super::responses::LoadedTable;
use super::service::Service;
use super::settings::IcebergSettings;
use crate::LakeTable;
use crate::table_folder::TableFolder;
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_formats::inspection::Workshop;
use bowshot_formats::table_version::AsOf;
use bowshot_object_store::{Remotes, Vended};
use datafusion::catalog::TableProvider;
use object_store::aws::AwsCredential;
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const MAX_KNOWN: usize = 4_096;
/// How long a failure is believed: by who lists the tables of all databases, and by who asks for one.
const FAILURE: Duration = Duration::from_secs(30);
const FAILURE_OF_ONE: Duration = Duration::from_secs(1);

type Names = Arc<Vec<(String, String)>>;
type Slots = HashMap<(String, String), Arc<tokio::sync::Mutex<Slot>>>;

#[derive(Debug)]
pub struct IcebergCatalog {
    settings: Arc<IcebergSettings>,
    service: Service,
    remotes: Arc<Remotes>,
    workshop: Arc<Workshop>,
    max_files: usize,
    /// One asks at a time, and the others take what it was told.
    listing: tokio::sync::Mutex<Option<(Instant, std::result::Result<Names, String>)>>,
    tables: Mutex<Slots>,
    spellings: ExactNames,
    problem: Mutex<Option<String>>,
}

/// A table to be written to, as it is now.
#[derive(Debug)]
pub(super) struct Writable {
    pub(super) folder: TableFolder,
    pub(super) workshop: Arc<Workshop>,
    pub(super) state: TableState,
    known: Arc<Known>,
    given: Given,
}

impl Writable {
    pub(super) async fn read(&self, table: &str) -> Result<LakeTable> {
        let found = self.known.folder.table_of(table, Some(self.given.clone()), None).await;
        Ok(found.map_err(|error| error.of_table(table))?)
    }
}

#[derive(Debug, Default)]
struct Slot {
    known: Option<(Instant, Arc<Known>, Given)>,
    failed: Option<(Instant, Error)>,
}

#[derive(Debug)]
struct Known {
    location: String,
    folder: IcebergFolder,
    vended: Option<Arc<Vended>>,
}

impl IcebergCatalog {
    /// Nothing is asked yet.
    ///
    /// # Errors
    /// `Invalid` for settings that cannot be used.
    pub fn new(
        settings: IcebergSettings,
        (remotes, workshop): (&Arc<Remotes>, &Arc<Workshop>),
        max_files: usize,
    ) -> Result<Arc<Self>> {
        let settings = Arc::new(settings);
        let service = Service::new(Arc::clone(&settings), remotes)?;
        Ok(Arc::new(Self {
            spellings: ExactNames::new(settings.cache_ttl),
            settings,
            service,
            remotes: Arc::clone(remotes),
            workshop: Arc::clone(workshop),
            max_files,
            listing: tokio::sync::Mutex::default(),
            tables: Mutex::default(),
            problem: Mutex::default(),
        }))
    }

    pub fn name(&self) -> &str {
        &self.settings.name
    }

    /// Where it is, without credentials.
    pub fn place(&self) -> String {
        self.settings.uri.to_string()
    }

    pub fn is_read_only(&self) -> bool {
        self.settings.read_only
    }

    pub(super) fn service(&self) -> &Service {
        &self.service
    }

    /// What went wrong last, until something has gone right.
    pub fn problem(&self) -> Option<String> {
        self.problem.lock().clone()
    }

    /// How many tables were listed last, if they were.
    pub fn known(&self) -> Option<usize> {
        let listing = self.listing.try_lock().ok()?;
        listing.as_ref().and_then(|(_, known)| known.as_ref().ok()).map(|names| names.len())
    }

    /// Whether a namespace may have tables, as far as that is known without asking.
    pub fn may_have_schema(&self, schema: &str) -> bool {
        let allowed = &self.settings.schemas;
        parts(schema).is_some() && (allowed.is_empty() || allowed.iter().any(|allowed| allowed == schema))
    }

    /// Namespaces and tables, sorted; none where it does not answer.
    pub async fn listed(&self) -> Names {
        let mut listing = self.listing.lock().await;
        if let Some((since, known)) = listing.as_ref() {
            let believed = if known.is_ok() { self.settings.cache_ttl } else { FAILURE };
            if since.elapsed() < believed {
                return known.clone().unwrap_or_default();
            }
        }
        let listed = self.noted(self.service.names().await).map(Arc::new);
        if let Err(error) = &listed {
            tracing::warn!(catalog = %self.settings.name, %error, "the tables of a catalog cannot be listed");
        }
        let known = listed.map_err(|error| error.to_string());
        let names = known.clone().unwrap_or_default();
        *listing = Some((Instant::now(), known));
        names
    }

    /// A table by its exact name, as it is now or was in an earlier state.
    ///
    /// # Errors
    /// `Unavailable` and `Timeout` for a catalog that does not answer, `Denied` for a table that lies in none of the places, and
    /// what its files say.
    pub async fn table(
        &self,
        schema: &str,
        table: &str,
        as_of: Option<AsOf>,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(self.lake_table(schema, table, as_of).await?.map(|found| Arc::new(found) as Arc<_>))
    }

    /// The same with the lineage of its rows as columns, if they have one: for whoever writes them again.
    pub async fn table_with_lineage(
        &self,
        schema: &str,
        table: &str,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        let found = self.lake_table(schema, table, None).await?;
        Ok(found.map(|found| Arc::new(found.with_lineage().unwrap_or(found)) as Arc<_>))
    }

    pub async fn referenced_state(&self, schema: &str, table: &str, name: &str) -> Result<Option<u64>> {
        let found = self.known_table(schema, table).await?;
        Ok(found.and_then(|(_, given)| given.metadata.referenced_state(name)))
    }

    async fn known_table(&self, schema: &str, table: &str) -> Result<Option<(Arc<Known>, Given)>> {
        if !self.may_have_schema(schema) || !is_name(table) {
            return Ok(None);
        }
        let slot = self.slot(schema, table);
        let found = {
            let mut slot = slot.lock().await;
            self.look(&mut slot, schema, table).await?
        };
        if found.is_none() {
            self.tables.lock().remove(&(schema.to_owned(), table.to_owned()));
        }
        Ok(found)
    }

    async fn lake_table(&self, schema: &str, table: &str, as_of: Option<AsOf>) -> Result<Option<LakeTable>> {
        let Some((known, given)) = self.known_table(schema, table).await? else { return Ok(None) };
        let found = known.folder.table_of(table, Some(given), as_of).await;
        Ok(Some(found.map_err(|error| error.of_table(table))?))
    }

    /// What the catalog says of a table, now or lately.
    async fn look(&self, slot: &mut Slot, schema: &str, table: &str) -> Result<Option<(Arc<Known>, Given)>> {
        if let Some((since, known, given)) = &slot.known
            && since.elapsed() < self.settings.cache_ttl
        {
            return Ok(Some((Arc::clone(known), given.clone())));
        }
        if let Some((since, error)) = &slot.failed
            && since.elapsed() < FAILURE_OF_ONE
        {
            return Err(error.duplicate());
        }
        match self.noted(self.found(schema, table).await) {
            Ok(Some(loaded)) => self.remember(slot, loaded, (schema, table)).map(Some),
            Ok(None) => {
                *slot = Slot::default();
                Ok(None)
            }
            Err(error) => {
                slot.failed = Some((Instant::now(), error.duplicate()));
                Err(error)
            }
        }
    }

    /// What the catalog says of a table now, whatever it has said lately; readers see that from now on.
    pub(super) async fn writable(&self, schema: &str, table: &str) -> Result<Option<Writable>> {
        if !self.may_have_schema(schema) || !is_name(table) {
            return Ok(None);
        }
        let slot = self.slot(schema, table);
        let mut slot = slot.lock().await;
        let Some((loaded, whole)) = self.noted(self.found_whole(schema, table).await)? else {
            *slot = Slot::default();
            return Ok(None);
        };
        let (known, given) = self.remember(&mut slot, loaded, (schema, table))?;
        Ok(Some(Writable {
            folder: known.folder.place().clone(),
            workshop: Arc::clone(&self.workshop),
            state: TableState::new(whole, Path::new(&given.location))?,
            known,
            given,
        }))
    }

    pub(super) async fn forget(&self, schema: &str, table: &str) {
        *self.slot(schema, table).lock().await = Slot::default();
    }

    /// Whether the catalog lists a table by exactly this name.
    pub(super) async fn has_table(&self, schema: &str, table: &str) -> Result<bool> {
        self.noted(self.spellings.has(&self.service, schema, table).await)
    }

    pub(super) async fn forget_names(&self, schema: &str) {
        self.spellings.forget(schema).await;
        *self.listing.lock().await = None;
    }

    fn remember(
        &self,
        slot: &mut Slot,
        loaded: LoadedTable,
        name: (&str, &str),
    ) -> Result<(Arc<Known>, Given)> {
        match self.opened(loaded, slot.known.take(), name) {
            Ok((known, given)) => {
                *slot =
                    Slot { known: Some((Instant::now(), Arc::clone(&known), given.clone())), failed: None };
                Ok((known, given))
            }
            Err(error) => {
                *slot = Slot { known: None, failed: Some((Instant::now(), error.duplicate())) };
                Err(error)
            }
        }
    }

    /// What the catalog says of the table that is called exactly so. It may open others by this name, too.
    async fn found(
        &self,
        schema: &str,
        table: &str,
    ) -> std::result::Result<Option<LoadedTable>, CatalogFault> {
        let Some(namespace) = parts(schema) else { return Ok(None) };
        let Some(loaded) = self.service.table(&namespace, table).await? else { return Ok(None) };
        Ok(self.spellings.has(&self.service, schema, table).await?.then_some(loaded))
    }

    async fn found_whole(
        &self,
        schema: &str,
        table: &str,
    ) -> std::result::Result<Option<(LoadedTable, Value)>, CatalogFault> {
        let Some(namespace) = parts(schema) else { return Ok(None) };
        let Some(whole) = self.service.whole_table(&namespace, table).await? else { return Ok(None) };
        Ok(self.spellings.has(&self.service, schema, table).await?.then_some(whole))
    }

    /// The files of a table as the catalog says them, which are those of before if they lie there still.
    fn opened(
        &self,
        loaded: LoadedTable,
        before: Option<(Instant, Arc<Known>, Given)>,
        (schema, table): (&str, &str),
    ) -> Result<(Arc<Known>, Given)> {
        let location = loaded.metadata.location.clone();
        let Some(metadata_location) = loaded.metadata_location.clone() else {
            return Err(CatalogFault::Strange("a table has no `metadata-location`").of(self.name()));
        };
        loaded.metadata.check(Path::new(&metadata_location))?;
        let credentials = self.credentials(&loaded, (schema, table))?;
        let given = Given { location: metadata_location, metadata: Arc::new(loaded.metadata) };
        if let Some((_, known, _)) = before.filter(|(_, known, _)| known.location == location) {
            if let (Some(vended), Some((credential, _))) = (&known.vended, credentials) {
                vended.renew(credential);
            }
            return Ok((known, given));
        }
        let vended = credentials.map(|(credential, region)| Arc::new(Vended::new(credential, region)));
        let folder = match spot(&location, &self.settings.places) {
            Some(Spot::Store(url)) => TableFolder::Remote(self.remotes.table_folder(url, vended.as_ref())?),
            Some(Spot::Folder(path)) => TableFolder::Local(path),
            None => {
                let refused = format!(
                    "the location of the table `{schema}.{table}` of the catalog `{}` is not allowed",
                    self.name()
                );
                return Err(Error::new(ErrorKind::Denied, refused).with_hint(
                    "the operator can allow locations with `places` in the entry of the catalog",
                ));
            }
        };
        let folder = IcebergFolder::new(folder, Arc::clone(&self.workshop), self.max_files);
        Ok((Arc::new(Known { location, folder, vended }), given))
    }

    /// The credentials that the catalog gives, if they are asked for.
    fn credentials(
        &self,
        loaded: &LoadedTable,
        (schema, table): (&str, &str),
    ) -> Result<Option<(AwsCredential, Option<String>)>> {
        if !self.settings.is_vended {
            return Ok(None);
        }
        let given = loaded.credentials().ok_or_else(|| {
            let (kind, name) = (ErrorKind::Unavailable, self.name());
            Error::new(
                kind,
                format!("the catalog `{name}` returned no credentials for the table `{schema}.{table}`"),
            )
            .with_hint(
                "set `credentials = \"own\"` for the catalog, and give the server credentials of the store",
            )
        })?;
        let credential = AwsCredential { key_id: given.key, secret_key: given.secret, token: given.token };
        Ok(Some((credential, given.region)))
    }

    fn slot(&self, schema: &str, table: &str) -> Arc<tokio::sync::Mutex<Slot>> {
        let name = (schema.to_owned(), table.to_owned());
        let mut tables = self.tables.lock();
        if tables.len() >= MAX_KNOWN && !tables.contains_key(&name) {
            // Those that somebody is asking for now stay.
            tables.retain(|_, slot| Arc::strong_count(slot) > 1);
        }
        Arc::clone(tables.entry(name).or_default())
    }

    fn noted<T>(&self, done: std::result::Result<T, CatalogFault>) -> Result<T> {
        let told = done.map_err(|fault| fault.of(self.name()));
        *self.problem.lock() = told.as_ref().err().map(|error| error.message().to_owned());
        told
    }
}
