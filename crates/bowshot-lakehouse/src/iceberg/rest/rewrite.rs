//! Rows of a table of a catalog that are changed: the files that have some of them are written again without them, or with what they
//! become; of few rows in a table of version 3, vectors say that they are deleted. All of it is one snapshot on top of the state that was
//! read. Where others have committed meanwhile it fails.

use super::super::write::{Append, NewFiles, Removal, RowWriter, small_files};
use super::catalog::{IcebergCatalog, Writable};
use super::insert::{blocking, gone, written};
use crate::{LakeTable, MAX_DELETED};
use arrow::array::RecordBatch;
use bowshot_api::{Error, Result};
use datafusion::catalog::TableProvider;
use futures::stream::BoxStream;
use roaring::RoaringTreemap;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

/// The part of a file that is deleted by its places at most: one of so many rows.
const MOST_OF_FILE: u64 = 4;
/// Rows of a table that are deleted so at most, of which more than twice as many are not read any more.
const MOST_IN_PLACE: u64 = MAX_DELETED as u64 / 2;

/// An UPDATE, DELETE or MERGE of a table in a catalog.
#[derive(Debug)]
pub struct IcebergRewrite {
    catalog: Arc<IcebergCatalog>,
    schema: String,
    table: String,
    now: Writable,
    read: Arc<dyn TableProvider>,
    files: Vec<(PathBuf, Arc<LakeTable>)>,
    removed: HashSet<PathBuf>,
    /// All rows that are deleted then in files that stay.
    deleted: HashMap<PathBuf, RoaringTreemap>,
    /// How many these are in all files of the table, with those of before.
    places: u64,
    is_compaction: bool,
    writer: RowWriter,
}

impl IcebergCatalog {
    /// The files of a table as it is now, to be changed.
    ///
    /// # Errors
    /// `NotFound`; `Unsupported` for a table that is not written here; those of the catalog.
    pub async fn rewrite(self: &Arc<Self>, schema: &str, table: &str) -> Result<IcebergRewrite> {
        let name = format!("{schema}.{table}");
        let now = self.writable(schema, table).await?.ok_or_else(|| gone(&name))?;
        let target = now.state.target(&name)?.with_lineage()?;
        let writer = RowWriter::new(target, NewFiles::new(&now.folder)?);
        let read = now.read(table).await?;
        let read = read.with_lineage().unwrap_or(read);
        let files = read.single_files().into_iter();
        let files: Vec<_> = files.map(|(path, file)| (path, Arc::new(file))).collect();
        let places = files.iter().map(|(_, file)| file.deleted_rows() as u64).sum();
        let (schema, table) = (schema.to_owned(), table.to_owned());
        Ok(IcebergRewrite {
            catalog: Arc::clone(self),
            schema,
            table,
            now,
            read: Arc::new(read),
            files,
            removed: HashSet::new(),
            deleted: HashMap::new(),
            places,
            is_compaction: false,
            writer,
        })
    }
}

impl IcebergRewrite {
    pub fn files(&self) -> Vec<Arc<dyn TableProvider>> {
        self.files.iter().map(|(_, file)| Arc::clone(file) as Arc<dyn TableProvider>).collect()
    }

    /// The files whose rows are to go to fewer and larger ones as they are: small ones, and those with deleted rows.
    pub async fn fragments(self) -> Result<(Self, Vec<usize>)> {
        blocking(move || {
            let folder = self.now.folder.view()?;
            let small = small_files(&self.now.state, (&folder, &self.now.workshop.pool))?;
            let is_meant =
                |(path, file): &(PathBuf, Arc<LakeTable>)| small.contains(path) || file.has_deleted_rows();
            let files = self.files.iter().enumerate();
            let places = files.filter(|(_, file)| is_meant(file)).map(|(place, _)| place).collect();
            Ok((Self { is_compaction: true, ..self }, places))
        })
        .await
    }

    pub fn table(&self) -> Arc<dyn TableProvider> {
        Arc::clone(&self.read)
    }

    /// Whether so many more rows of a file are deleted in place: skipping them is cheaper only while they are few.
    pub fn deletes_in_place(&self, file: usize, rows: u64) -> bool {
        let Some((before, of)) = self.files.get(file).and_then(|(_, file)| file.places()) else {
            return false;
        };
        let gone = before.len().saturating_add(rows);
        gone <= of / MOST_OF_FILE && self.places.saturating_add(rows) <= MOST_IN_PLACE
    }

    pub fn delete(mut self, file: usize, rows: Vec<i64>) -> Result<Self> {
        let missing = || Error::internal("rows of a missing file were to be deleted");
        let (path, table) = self.files.get(file).ok_or_else(missing)?;
        let (mut places, _) = table.places().ok_or_else(missing)?;
        let before = places.len();
        places.extend(rows.into_iter().filter_map(|place| u64::try_from(place).ok()));
        self.places = self.places.saturating_add(places.len() - before);
        self.deleted.insert(path.clone(), places);
        Ok(self)
    }

    /// Puts rows in the place of those of a file, or beside those of all files.
    pub async fn replace(
        mut self,
        file: Option<usize>,
        rows: BoxStream<'static, Result<RecordBatch>>,
    ) -> Result<Self> {
        if let Some(file) = file {
            let path = self.files.get(file).map(|(path, _)| path.clone());
            let path = path.ok_or_else(|| Error::internal("a missing file was to be changed"))?;
            self.removed.insert(path);
        }
        let writer = written(self.writer, rows).await?;
        Ok(Self { writer, ..self })
    }

    /// Commits the changes, all of them or none.
    ///
    /// # Errors
    /// `Conflict` where others have changed the table since its files were read; else as [`IcebergCatalog::insert`].
    pub async fn commit(self) -> Result<()> {
        let Self { catalog, schema, table, now, removed, deleted, is_compaction, writer, .. } = self;
        let (now, append) = blocking(move || {
            let folder = now.folder.view()?;
            let (state, pool) = (&now.state, &now.workshop.pool);
            let removal =
                Removal { state, folder: &folder, pool, files: removed, rows: deleted, is_compaction };
            let append = Append::new(writer, Some(&removal))?;
            drop(removal);
            Ok((now, append))
        })
        .await?;
        match append {
            Some(append) => catalog.commit(&schema, &table, (now, append)).await,
            None => Ok(()),
        }
    }
}
