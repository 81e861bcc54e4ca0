//! Catalogs of Iceberg tables, which need no driver: `bowshot-lakehouse` reads them.

use crate::insert::query_error;
use crate::status::DatabaseStatus;
use async_trait::async_trait;
use bowshot_api::{Error, ErrorKind, Result};
use bowshot_engine::databases::{
    DatabaseDefinition, LayoutChange, PartitionField, PartitionTransform, ReferenceKind, TableRewrite,
};
use bowshot_files::FileCatalog;
use bowshot_lakehouse::iceberg::{
    IcebergCatalog, IcebergRewrite, IcebergSettings, NewPartition, NewTable, PartitionChange,
    ReferenceChange, TableAlteration,
};
use bowshot_tables::EntryName;
use datafusion::catalog::TableProvider;
use datafusion::execution::SendableRecordBatchStream;
use futures::{StreamExt, TryStreamExt};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

#[derive(Debug)]
pub(crate) struct Catalogs {
    settings: BTreeMap<String, IcebergSettings>,
    opened: OnceLock<BTreeMap<String, Arc<IcebergCatalog>>>,
}

impl Catalogs {
    pub(crate) fn new(settings: Vec<IcebergSettings>) -> Result<Self> {
        let mut named = BTreeMap::new();
        for settings in settings {
            let name = settings.name.clone();
            if named.insert(name.clone(), settings).is_some() {
                return Err(Error::new(
                    ErrorKind::AlreadyExists,
                    format!("the database `{name}` already exists"),
                ));
            }
        }
        Ok(Self { settings: named, opened: OnceLock::new() })
    }

    /// Opens all of them, once.
    ///
    /// # Errors
    /// `Invalid` for settings that cannot be used.
    pub(crate) fn open(&self, files: &FileCatalog) -> Result<()> {
        let open = |(name, settings): (&String, &IcebergSettings)| {
            Ok((name.clone(), files.iceberg(settings.clone())?))
        };
        let opened = self.settings.iter().map(open).collect::<Result<_>>()?;
        let _ = self.opened.set(opened);
        Ok(())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.settings.contains_key(name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = String> {
        self.settings.keys().cloned()
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Arc<IcebergCatalog>> {
        self.opened.get()?.get(name)
    }

    /// Makes or drops a table or a namespace; whether there was something to do.
    pub(crate) async fn define(&self, change: &DatabaseDefinition) -> Result<bool> {
        match change {
            DatabaseDefinition::CreateSchema { database, schema, if_not_exists } => {
                self.writable(database)?.create_schema(schema, *if_not_exists).await
            }
            DatabaseDefinition::DropSchema { database, schema, if_exists } => {
                self.writable(database)?.drop_schema(schema, *if_exists).await
            }
            DatabaseDefinition::CreateTable(new) => {
                let partition: Vec<NewPartition> = new.partition.iter().map(partition).collect();
                let name = (new.name.schema.as_str(), new.name.name.as_str());
                let catalog = self.writable(&new.name.catalog)?;
                let columns = new.columns.as_ref();
                let table = NewTable { columns, partition: &partition, version: new.format_version };
                catalog.create_table(name, &table, new.if_not_exists).await
            }
            DatabaseDefinition::AlterTable { name, changes, if_exists } => {
                let alteration = TableAlteration::Columns(changes.clone());
                let catalog = self.writable(&name.catalog)?;
                catalog.alter_table((&name.schema, &name.name), &alteration, *if_exists).await
            }
            DatabaseDefinition::AlterLayout { name, change, if_exists } => {
                let catalog = self.writable(&name.catalog)?;
                catalog.alter_table((&name.schema, &name.name), &alteration(change), *if_exists).await
            }
            DatabaseDefinition::Vacuum { name, retain } => {
                self.writable(&name.catalog)?.vacuum((&name.schema, &name.name), *retain).await
            }
            DatabaseDefinition::Optimize { .. } => {
                Err(Error::internal("the files of a table were to be rewritten without their rows"))
            }
            DatabaseDefinition::DropTable { name, if_exists } => {
                self.writable(&name.catalog)?.drop_table(&name.schema, &name.name, *if_exists).await
            }
        }
    }

    /// Opens a table whose rows are to be changed.
    pub(crate) async fn rewrite(&self, name: &EntryName) -> Result<Box<dyn TableRewrite>> {
        let open = self.writable(&name.catalog)?.rewrite(&name.schema, &name.name).await?;
        Ok(Box::new(Rewrite(open)))
    }

    fn writable(&self, name: &str) -> Result<&Arc<IcebergCatalog>> {
        self.find(name).filter(|catalog| !catalog.is_read_only()).ok_or_else(|| {
            Error::new(ErrorKind::Denied, format!("the database `{name}` is read-only"))
                .with_hint("the operator can set `read_only = false` in its entry")
        })
    }

    /// Rows of `system.databases`.
    pub(crate) fn statuses(&self) -> impl Iterator<Item = DatabaseStatus> {
        let opened = self.opened.get().into_iter().flat_map(BTreeMap::values);
        opened.map(|catalog| DatabaseStatus {
            name: catalog.name().to_owned(),
            kind: "iceberg",
            place: catalog.place(),
            read_only: catalog.is_read_only(),
            attached: false,
            pool: None,
            connections: None,
            tables: catalog.known(),
            problem: catalog.problem(),
        })
    }
}

/// A table whose files are written again.
#[derive(Debug)]
struct Rewrite(IcebergRewrite);

#[async_trait]
impl TableRewrite for Rewrite {
    fn files(&self) -> Vec<Arc<dyn TableProvider>> {
        self.0.files()
    }

    fn table(&self) -> Arc<dyn TableProvider> {
        self.0.table()
    }

    async fn fragments(self: Box<Self>) -> Result<(Box<dyn TableRewrite>, Vec<usize>)> {
        let (open, places) = self.0.fragments().await?;
        Ok((Box::new(Self(open)), places))
    }

    fn deletes_in_place(&self, file: usize, rows: u64) -> bool {
        self.0.deletes_in_place(file, rows)
    }

    fn delete(self: Box<Self>, file: usize, places: Vec<i64>) -> Result<Box<dyn TableRewrite>> {
        Ok(Box::new(Self(self.0.delete(file, places)?)))
    }

    async fn replace(
        self: Box<Self>,
        file: Option<usize>,
        rows: SendableRecordBatchStream,
    ) -> Result<Box<dyn TableRewrite>> {
        let rows = rows.map_err(query_error).boxed();
        Ok(Box::new(Self(self.0.replace(file, rows).await?)))
    }

    async fn commit(self: Box<Self>) -> Result<()> {
        self.0.commit().await
    }
}

/// A change as the catalog knows it.
fn alteration(change: &LayoutChange) -> TableAlteration {
    let word = |kind: ReferenceKind| match kind {
        ReferenceKind::Branch => "branch",
        ReferenceKind::Tag => "tag",
    };
    match change.clone() {
        LayoutChange::AddPartition { field, name } => {
            TableAlteration::Partition(PartitionChange::Add { field: partition(&field), name })
        }
        LayoutChange::DropPartition(field) => {
            TableAlteration::Partition(PartitionChange::Drop(partition(&field)))
        }
        LayoutChange::CreateReference { kind, name, version, if_not_exists } => {
            let kind = word(kind);
            TableAlteration::Reference(ReferenceChange::Create { kind, name, version, if_not_exists })
        }
        LayoutChange::DropReference { kind, name, if_exists } => {
            TableAlteration::Reference(ReferenceChange::Drop { kind: word(kind), name, if_exists })
        }
    }
}

/// A field as the format writes it.
fn partition(field: &PartitionField) -> NewPartition {
    let transform = match field.transform {
        PartitionTransform::Identity => "identity".to_owned(),
        PartitionTransform::Year => "year".to_owned(),
        PartitionTransform::Month => "month".to_owned(),
        PartitionTransform::Day => "day".to_owned(),
        PartitionTransform::Hour => "hour".to_owned(),
        PartitionTransform::Bucket(buckets) => format!("bucket[{buckets}]"),
        PartitionTransform::Truncate(width) => format!("truncate[{width}]"),
    };
    NewPartition { transform, column: field.column.clone() }
}
