//! The catalogs and schemas of one statement, as DataFusion asks for them.

use crate::catalog::Visible;
use crate::reuse::Reuse;
use async_trait::async_trait;
use bowshot_api::Principal;
use bowshot_api::catalog_names::{
    CHANGE_SCHEMA, DEFAULT_CATALOG, DEFAULT_SCHEMA, PG_CATALOG, SYSTEM_SCHEMA, TEMPORARY_CATALOG,
};
use bowshot_system_catalog::client::Flavour;
use bowshot_system_catalog::information_schema::InformationSchema;
use bowshot_system_catalog::mysql_schema::{MYSQL, MysqlSchema};
use bowshot_system_catalog::pg_catalog::{self, PgCatalog};
use bowshot_system_catalog::system::tables::AboutTables;
use bowshot_system_catalog::system::{SystemSchema, SystemTables};
use bowshot_tables::{Entry, EntryName, What};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::catalog::information_schema::INFORMATION_SCHEMA;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::error::Result;
use datafusion::logical_expr::TableType;
use std::fmt;
use std::sync::Arc;

/// The catalogs of a statement.
#[derive(Debug)]
pub(crate) struct Catalogs(pub(crate) Arc<Visible>);

impl Catalogs {
    pub(crate) fn visible(&self) -> &Arc<Visible> {
        &self.0
    }
}

impl CatalogProviderList for Catalogs {
    fn register_catalog(
        &self,
        _name: String,
        _catalog: Arc<dyn CatalogProvider>,
    ) -> Option<Arc<dyn CatalogProvider>> {
        None
    }

    fn catalog_names(&self) -> Vec<String> {
        self.0.catalog_names()
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        let known = name == TEMPORARY_CATALOG
            || self.0.pinned.shared().has_catalog(name)
            || self.0.sees_database(name);
        known.then(|| Arc::new(Catalog { visible: Arc::clone(&self.0), name: name.to_owned() }) as Arc<_>)
    }
}

#[derive(Debug)]
struct Catalog {
    visible: Arc<Visible>,
    name: String,
}

impl Catalog {
    /// Whether somebody has made the schema, or another database may have it.
    fn has_own(&self, schema: &str) -> bool {
        self.visible.pinned.has_schema(&self.name, schema) || self.visible.parts.databases.has(&self.name)
    }
}

impl CatalogProvider for Catalog {
    fn schema_names(&self) -> Vec<String> {
        let mut names = self.visible.schema_names(&self.name);
        names.push(INFORMATION_SCHEMA.to_owned());
        names
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        let visible = &self.visible;
        match name {
            INFORMATION_SCHEMA => return Some(Arc::new(InformationSchema(visible.view()))),
            PG_CATALOG => return Some(Arc::new(PgCatalog(visible.view()))),
            MYSQL if visible.flavour() == Flavour::MySql && !self.has_own(name) => {
                return Some(Arc::new(MysqlSchema(visible.view())));
            }
            _ => {}
        }
        if name == SYSTEM_SCHEMA && self.name == DEFAULT_CATALOG {
            let tables = Arc::clone(visible.parts.system.as_ref()?);
            let (store, meanings) = (&visible.parts.tables, Arc::clone(visible));
            let about = AboutTables::new(&visible.pinned, store, &visible.access, meanings);
            let who = (visible.principal.clone(), visible.access.clone());
            let files = visible.parts.files.clone();
            let (reuse, plans) = (Arc::clone(&visible.parts.reuse), Arc::clone(&visible.parts.plans));
            let caches = Arc::new(CacheTables { reuse, plans, is_admin: visible.access.is_admin() });
            let schema = SystemSchema::new(tables, who, (about, &visible.raw), caches);
            let secrets = visible.parts.secrets.clone();
            return Some(Arc::new(schema.with_files(files).with_secrets(secrets)));
        }
        let changing = name == CHANGE_SCHEMA && (visible.target.is_some() || !visible.returned.is_empty());
        let in_database = visible.may_have_database_schema(&self.name, name);
        // The session's own tables and those of PostgreSQL's catalog have names without a schema also where the path has none.
        let is_default = visible.is_default(&self.name, name) && !visible.parts.databases.has(&self.name);
        (changing || in_database || is_default || visible.pinned.has_schema(&self.name, name)).then(|| {
            let (catalog, schema) = (self.name.clone(), name.to_owned());
            Arc::new(Schema { visible: Arc::clone(visible), catalog, schema }) as Arc<_>
        })
    }
}

/// What `system.plan_cache` tells.
pub(crate) trait PlanRows: fmt::Debug + Send + Sync {
    /// The rows of one user, or all.
    fn rows(&self, user: Option<&str>) -> bowshot_api::Result<RecordBatch>;
}

/// The table about plans, where users have rows of their own, and those about caches that are everybody's.
#[derive(Debug)]
struct CacheTables {
    reuse: Arc<dyn Reuse>,
    plans: Arc<dyn PlanRows>,
    is_admin: bool,
}

const PLAN_CACHE: &str = "plan_cache";

impl SystemTables for CacheTables {
    fn names(&self) -> Vec<&'static str> {
        vec![PLAN_CACHE]
    }

    fn shared_names(&self) -> Vec<&'static str> {
        self.reuse.tables().to_vec()
    }

    fn rows(&self, name: &str, principal: &Principal) -> Option<bowshot_api::Result<RecordBatch>> {
        match name {
            PLAN_CACHE => Some(self.plans.rows((!self.is_admin).then_some(principal.name.as_str()))),
            _ => self.reuse.rows(name),
        }
    }
}

#[derive(Debug)]
struct Schema {
    visible: Arc<Visible>,
    catalog: String,
    schema: String,
}

impl Schema {
    fn name(&self, name: &str) -> EntryName {
        EntryName::new(&self.catalog, &self.schema, name)
    }

    fn is_database(&self) -> bool {
        self.visible.parts.databases.has(&self.catalog)
    }

    fn holds_files(&self) -> bool {
        self.catalog == DEFAULT_CATALOG && self.schema == DEFAULT_SCHEMA
    }
}

fn is_sequence(entry: Option<&Entry>) -> bool {
    matches!(entry, Some(Entry::Table(table)) if table.definition().sequence().is_some())
}

#[async_trait]
impl SchemaProvider for Schema {
    fn table_names(&self) -> Vec<String> {
        if self.is_database() {
            return self.visible.tables_of_database(&self.catalog, &self.schema);
        }
        let pinned = &self.visible.pinned;
        let side = if self.catalog == TEMPORARY_CATALOG { pinned.own() } else { pinned.shared() };
        let mut names = side.names(&self.catalog, &self.schema);
        // Sequences have the names of tables, and are none.
        let mut full = self.name("");
        names.retain(|name| {
            full.name.clone_from(name);
            !is_sequence(pinned.entry(&full))
        });
        if self.holds_files() {
            names.extend(self.visible.parts.main.table_names());
            // A file may have come under the name of a table, which hides it.
            names.sort_unstable();
            names.dedup();
        }
        names
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        self.visible.table(&self.name(name)).await
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        match self.visible.pinned.entry(&self.name(name)) {
            Some(Entry::Table(_) | Entry::External(_)) => Ok(Some(TableType::Base)),
            Some(Entry::View(_)) => Ok(Some(TableType::View)),
            Some(Entry::Broken(broken)) if broken.what() == What::View => Ok(Some(TableType::View)),
            Some(Entry::Broken(_)) => Ok(Some(TableType::Base)),
            None if self.holds_files() => self.visible.parts.main.table_type(name).await,
            None if self.is_database() => Ok(Some(TableType::Base)),
            None => Ok(None),
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        self.visible.pinned.entry(&self.name(name)).is_some()
            || self.visible.input(&self.name(name)).is_some()
            || self.holds_files() && self.visible.parts.main.table_exist(name)
            || self.is_database()
                && self
                    .visible
                    .tables_of_database(&self.catalog, &self.schema)
                    .iter()
                    .any(|known| known == name)
            || self.visible.is_default(&self.catalog, &self.schema) && pg_catalog::find(name).is_some()
    }
}
