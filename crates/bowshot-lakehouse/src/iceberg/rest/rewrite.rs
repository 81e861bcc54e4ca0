//! Rows of a table of a catalog that are changed: the files that have some of them are written again without them, or with what they
//! become, and all of it is one snapshot on top of the state that was read. Where others have committed meanwhile it fails.

use super::super::write::{Append, NewFiles, Removal, RowWriter, small_files};
use super::catalog::{IcebergCatalog, Writable};
use super::insert::{blocking, gone, written};
use crate::LakeTable;
use arrow::array::RecordBatch;
use bowshot_api::{Error, Result};
use datafusion::catalog::TableProvider;
use futures::stream::BoxStream;
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

/// See the module.
#[derive(Debug)]
pub struct IcebergRewrite {
    catalog: Arc<IcebergCatalog>,
    schema: String,
    table: String,
    now: Writable,
    read: Arc<dyn TableProvider>,
    files: Vec<(PathBuf, Arc<LakeTable>)>,
    removed: HashSet<PathBuf>,
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
        let writer = RowWriter::new(now.state.target(&name)?, NewFiles::new(&now.folder)?);
        let read = now.read(table).await?;
        let files = read.single_files().into_iter();
        let files = files.map(|(path, file)| (path, Arc::new(file))).collect();
        let (schema, table) = (schema.to_owned(), table.to_owned());
        let (catalog, read, removed) = (Arc::clone(self), Arc::new(read), HashSet::new());
        Ok(IcebergRewrite { catalog, schema, table, now, read, files, removed, is_compaction: false, writer })
    }
}

impl IcebergRewrite {
    /// Each file as a table.
    pub fn files(&self) -> Vec<Arc<dyn TableProvider>> {
        self.files.iter().map(|(_, file)| Arc::clone(file) as Arc<dyn TableProvider>).collect()
    }

    /// The files whose rows are to go to fewer and larger ones as they are: small ones, and those with deleted rows.
    ///
    /// # Errors
    /// When a manifest cannot be read.
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

    /// All of them as one table.
    pub fn table(&self) -> Arc<dyn TableProvider> {
        Arc::clone(&self.read)
    }

    /// Puts rows in the place of those of a file, or beside those of all files.
    ///
    /// # Errors
    /// Those of the rows, and for files that cannot be written.
    pub async fn replace(
        mut self,
        file: Option<usize>,
        rows: BoxStream<'static, Result<RecordBatch>>,
    ) -> Result<Self> {
        if let Some(file) = file {
            let path = self.files.get(file).map(|(path, _)| path.clone());
            let path = path.ok_or_else(|| Error::internal("a file was to be changed that is not there"))?;
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
        let Self { catalog, schema, table, now, removed, is_compaction, writer, .. } = self;
        let (now, append) = blocking(move || {
            let folder = now.folder.view()?;
            let (state, pool) = (&now.state, &now.workshop.pool);
            let removal = Removal { state, folder: &folder, pool, files: removed, is_compaction };
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
