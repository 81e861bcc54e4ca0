//! What the engine asks of other databases: [`Databases`]. Each of them is a catalog, whose tables are read where they are;
//! `bowshot-databases` has them. The engine knows nothing else of them: names become tables in `catalog/external_database.rs`, which
//! asks the same rights of them as of any other.

use async_trait::async_trait;
use bowshot_api::catalog_names::{DEFAULT_CATALOG, PG_CATALOG, SYSTEM_SCHEMA, TEMPORARY_CATALOG};
use bowshot_api::{Error, Principal, Result};
use bowshot_formats::table_version::AsOf;
pub use bowshot_lakehouse::iceberg::ColumnChange;
pub(crate) use bowshot_lakehouse::row_lineage;
pub use bowshot_sql::{Attachment, LayoutChange, PartitionField, PartitionTransform, ReferenceKind};
use bowshot_tables::EntryName;
use chrono::TimeDelta;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::catalog::TableProvider;
use datafusion::catalog::information_schema::INFORMATION_SCHEMA;
use datafusion::execution::SendableRecordBatchStream;
use std::fmt;
use std::sync::Arc;

/// Other databases. What waits for one of them waits no longer than the operator lets it.
#[async_trait]
pub trait Databases: fmt::Debug + Send + Sync {
    /// Their names, sorted.
    fn names(&self) -> Vec<String>;

    /// Whether there is a database of this name.
    fn has(&self, database: &str) -> bool;

    /// Whether tables may be in this schema; nobody is asked.
    fn may_have_schema(&self, database: &str, schema: &str) -> bool;

    /// Schemas and tables of a database, sorted; none where it does not answer. May wait for it, on a thread that may block. Who asks
    /// counts where the database is asked with the token of its caller, here and below.
    fn listed(&self, database: &str, caller: &Principal) -> Arc<Vec<(String, String)>>;

    /// A table by its full and exact name.
    ///
    /// # Errors
    /// `Unavailable` and `Timeout` for a database that does not answer; `Unsupported` for what cannot be read of it; `Denied` for a caller
    /// without a token that the database is to be asked with.
    async fn table(&self, name: &EntryName, caller: &Principal) -> Result<Option<Arc<dyn TableProvider>>>;

    /// The same for a statement that changes its rows, as [`TableRewrite::table`] has them: there may be columns that say which row a row
    /// is ([`bowshot_lakehouse::row_lineage`]).
    ///
    /// # Errors
    /// As [`Self::table`].
    async fn rewritable(
        &self,
        name: &EntryName,
        caller: &Principal,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        self.table(name, caller).await
    }

    /// The state of a database that all of a statement reads; none of one whose tables are read each at its own moment.
    ///
    /// # Errors
    /// As [`Self::table`].
    async fn newest_state(&self, _database: &str) -> Result<Option<AsOf>> {
        Ok(None)
    }

    /// The same as it was. Databases whose tables keep no states have none of them.
    ///
    /// # Errors
    /// As [`Self::table`]; `NotFound` for a state that is not kept.
    async fn table_as_of(
        &self,
        name: &EntryName,
        as_of: AsOf,
        caller: &Principal,
    ) -> Result<Option<Arc<dyn TableProvider>>>;

    /// The number of the state of a table that a branch or a tag names. Databases whose tables keep no states have none.
    ///
    /// # Errors
    /// As [`Self::table`].
    async fn referenced_state(
        &self,
        _name: &EntryName,
        _reference: &str,
        _caller: &Principal,
    ) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Whether rows may be added to tables of a database at all.
    ///
    /// # Errors
    /// `Denied` if the operator has not said so.
    fn check_writable(&self, database: &str) -> Result<()>;

    /// Adds rows to a table, all of them or none; the columns go by their names. The number of rows.
    ///
    /// # Errors
    /// Those of the rows, and of the database.
    async fn insert(
        &self,
        name: &EntryName,
        rows: SendableRecordBatchStream,
        caller: &Principal,
    ) -> Result<u64>;

    /// Whether tables and schemas are made, changed and dropped in a database.
    fn has_definitions(&self, _database: &str) -> bool {
        false
    }

    /// Makes, changes or drops a table or a schema; whether there was something to do.
    ///
    /// # Errors
    /// Those of the database; `Unsupported` where [`Self::has_definitions`] says so.
    async fn define(&self, _change: &DatabaseDefinition) -> Result<bool> {
        Err(Error::unsupported("CREATE and DROP are not supported in other databases"))
    }

    /// Opens a table whose rows are to be changed, as it is now.
    ///
    /// # Errors
    /// As [`Self::table`]; `Unsupported` where [`Self::has_definitions`] says so.
    async fn rewrite(&self, _name: &EntryName) -> Result<Box<dyn TableRewrite>> {
        Err(Error::unsupported("rows of other databases cannot be changed"))
    }

    /// Opens a database until the server ends or somebody leaves it.
    ///
    /// # Errors
    /// `Denied` for a place that the operator has not opened; `Invalid` for what makes no sense.
    async fn attach(&self, attachment: &Attachment) -> Result<()>;

    /// Leaves a database that was attached.
    ///
    /// # Errors
    /// `NotFound`; `Denied` for one of the configuration.
    fn detach(&self, name: &str) -> Result<()>;

    /// What `system.databases` tells of them.
    ///
    /// # Errors
    /// None that is expected.
    fn rows(&self) -> Result<RecordBatch>;
}

/// A table of another database of which files are written again. Without a commit nothing has happened.
#[async_trait]
pub trait TableRewrite: fmt::Debug + Send {
    /// Each file as a table.
    fn files(&self) -> Vec<Arc<dyn TableProvider>>;

    /// All of it, as it was opened.
    fn table(&self) -> Arc<dyn TableProvider>;

    /// The places of files whose rows are to go to fewer and larger ones as they are; what is committed then changes no row.
    ///
    /// # Errors
    /// Those of the database.
    async fn fragments(self: Box<Self>) -> Result<(Box<dyn TableRewrite>, Vec<usize>)>;

    /// Whether so many rows of a file are deleted by their places, [`bowshot_lakehouse::row_lineage::ROW_PLACE`], and the others are not written again.
    fn deletes_in_place(&self, file: usize, rows: u64) -> bool;

    /// Deletes rows of a file by their places.
    ///
    /// # Errors
    /// Those of the database.
    fn delete(self: Box<Self>, file: usize, places: Vec<i64>) -> Result<Box<dyn TableRewrite>>;

    /// Puts rows in the place of those of a file, or beside those of all files.
    ///
    /// # Errors
    /// Those of the rows, and of the database.
    async fn replace(
        self: Box<Self>,
        file: Option<usize>,
        rows: SendableRecordBatchStream,
    ) -> Result<Box<dyn TableRewrite>>;

    /// Commits the changes, all of them or none.
    ///
    /// # Errors
    /// `Conflict` where others have changed the table since it was opened; those of the database.
    async fn commit(self: Box<Self>) -> Result<()>;
}

/// What is made, changed or dropped in another database.
#[derive(Debug, Clone)]
pub enum DatabaseDefinition {
    CreateSchema {
        database: String,
        schema: String,
        if_not_exists: bool,
    },
    DropSchema {
        database: String,
        schema: String,
        if_exists: bool,
    },
    CreateTable(NewDatabaseTable),
    AlterTable {
        name: EntryName,
        changes: Vec<ColumnChange>,
        if_exists: bool,
    },
    /// Changes how rows are partitioned from now on, or what states are called.
    AlterLayout {
        name: EntryName,
        change: LayoutChange,
        if_exists: bool,
    },
    DropTable {
        name: EntryName,
        if_exists: bool,
    },
    /// Forgets the states of a table that were current longer ago than this alone.
    Vacuum {
        name: EntryName,
        retain: TimeDelta,
    },
    /// Done by [`TableRewrite::fragments`].
    Optimize {
        name: EntryName,
    },
}

/// A table without rows.
#[derive(Debug, Clone)]
pub struct NewDatabaseTable {
    pub name: EntryName,
    pub columns: SchemaRef,
    pub partition: Vec<PartitionField>,
    /// The version of its format; that of the database for none.
    pub format_version: Option<u32>,
    pub if_not_exists: bool,
}

/// Whether a name means something else than a catalog of another database.
pub(crate) fn is_reserved(name: &str) -> bool {
    [DEFAULT_CATALOG, TEMPORARY_CATALOG, SYSTEM_SCHEMA, PG_CATALOG, INFORMATION_SCHEMA].contains(&name)
        || name.starts_with("__bowshot")
}

/// There are none.
#[derive(Debug)]
pub struct NoDatabases;

#[async_trait]
impl Databases for NoDatabases {
    fn names(&self) -> Vec<String> {
        Vec::new()
    }

    fn has(&self, _: &str) -> bool {
        false
    }

    fn may_have_schema(&self, _: &str, _: &str) -> bool {
        false
    }

    fn listed(&self, _: &str, _: &Principal) -> Arc<Vec<(String, String)>> {
        Arc::default()
    }

    async fn table(&self, _: &EntryName, _: &Principal) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(None)
    }

    async fn table_as_of(
        &self,
        _: &EntryName,
        _: AsOf,
        _: &Principal,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        Ok(None)
    }

    fn check_writable(&self, _: &str) -> Result<()> {
        Err(none())
    }

    async fn insert(&self, _: &EntryName, _: SendableRecordBatchStream, _: &Principal) -> Result<u64> {
        Err(none())
    }

    async fn attach(&self, _: &Attachment) -> Result<()> {
        Err(none())
    }

    fn detach(&self, _: &str) -> Result<()> {
        Err(none())
    }

    fn rows(&self) -> Result<RecordBatch> {
        Err(none())
    }
}

fn none() -> Error {
    Error::unsupported("no other databases are configured")
}
