//! The crate from outside: real files in temporary folders, read through SQL.

mod changes;
mod columns;
mod csv;
mod folders;
mod footers;
mod formats;
mod json;
mod statistics;

use crate::{FileCatalog, SourceSpec, StorageOptions};
use arrow::array::RecordBatch;
use arrow::util::pretty::pretty_format_batches;
use bowshot_api::ErrorKind;
use bowshot_formats::decoded_columns::ColumnCache;
use bowshot_object_store::find_error;
use datafusion::catalog::{CatalogProvider, MemoryCatalogProvider};
use datafusion::error::DataFusionError;
use datafusion::prelude::{SessionConfig, SessionContext};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A catalog and a session that reads it. Every use looks at the files again.
pub(crate) struct World {
    pub(crate) catalog: Arc<FileCatalog>,
    pub(crate) context: SessionContext,
    pub(crate) columns: Arc<ColumnCache>,
}

impl World {
    pub(crate) fn open(paths: &[&Path]) -> Self {
        let sources = paths.iter().map(|path| SourceSpec::new(None, path.to_path_buf())).collect();
        Self::with(sources, StorageOptions { refresh: Duration::ZERO, ..StorageOptions::default() })
    }

    pub(crate) fn named(name: &str, path: &Path) -> Self {
        let source = SourceSpec::new(Some(name.to_owned()), path.to_path_buf());
        Self::with(vec![source], StorageOptions { refresh: Duration::ZERO, ..StorageOptions::default() })
    }

    pub(crate) fn with(sources: Vec<SourceSpec>, options: StorageOptions) -> Self {
        let config = SessionConfig::new().with_target_partitions(4);
        Self::keeping(sources, options, config, ColumnCache::new(64 << 20))
    }

    pub(crate) fn keeping(
        sources: Vec<SourceSpec>,
        options: StorageOptions,
        config: SessionConfig,
        columns: Arc<ColumnCache>,
    ) -> Self {
        let config = config.with_default_catalog_and_schema("bowshot", "main");
        let context = SessionContext::new_with_config(config);
        let catalog = FileCatalog::open(sources, options, &context.runtime_env(), &columns).expect("open");
        let schemas = MemoryCatalogProvider::new();
        schemas.register_schema("main", catalog.schema_provider()).expect("register");
        context.register_catalog("bowshot", Arc::new(schemas));
        Self { catalog, context, columns }
    }

    pub(crate) async fn rows(&self, sql: &str) -> Result<Vec<RecordBatch>, DataFusionError> {
        self.context.sql(sql).await?.collect().await
    }

    pub(crate) async fn table(&self, sql: &str) -> String {
        let batches = self.rows(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        pretty_format_batches(&batches).expect("format").to_string()
    }

    /// The one value of a query with one row and one column, as text.
    pub(crate) async fn value(&self, sql: &str) -> String {
        let batches = self.rows(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        let batch = batches.iter().find(|batch| batch.num_rows() > 0).expect("a row");
        arrow::util::display::array_value_to_string(batch.column(0), 0).expect("display")
    }

    pub(crate) async fn error(&self, sql: &str) -> bowshot_api::Error {
        match self.rows(sql).await {
            Ok(batches) => panic!("{sql} gave {batches:?}"),
            Err(error) => ours(&error),
        }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.context.catalog("bowshot").expect("catalog").schema("main").expect("schema").table_names()
    }

    pub(crate) async fn types(&self, table: &str) -> String {
        let frame = self.context.table(table).await.expect("table");
        let fields = frame.schema().fields().iter().map(|f| format!("{} {}", f.name(), f.data_type()));
        fields.collect::<Vec<_>>().join(", ")
    }
}

/// The error of the door that must be what DataFusion carries, and not deep inside text or foreign errors.
pub(crate) fn ours(error: &DataFusionError) -> bowshot_api::Error {
    match error.find_root() {
        DataFusionError::External(inner) if inner.is::<bowshot_api::Error>() => {
            find_error(error).expect("found")
        }
        other => panic!("not ours: {other:?}"),
    }
}

/// Asserts what an error says, so that a changed message is seen.
pub(crate) fn says(error: &bowshot_api::Error, kind: ErrorKind, parts: &[&str]) {
    assert_eq!(error.kind(), kind, "{error}");
    for part in parts {
        assert!(error.to_string().contains(part), "`{error}` lacks `{part}`");
    }
}

pub(crate) fn write(path: &Path, content: impl AsRef<[u8]>) {
    std::fs::create_dir_all(path.parent().expect("parent")).expect("folder");
    std::fs::write(path, content).expect("write");
}

/// Writes beside the file and renames, as careful writers do.
pub(crate) fn replace(path: &Path, content: impl AsRef<[u8]>) {
    let beside = path.with_extension("tmp");
    write(&beside, content);
    std::fs::rename(&beside, path).expect("rename");
}

pub(crate) fn write_parquet(path: &Path, batch: &RecordBatch) {
    std::fs::create_dir_all(path.parent().expect("parent")).expect("folder");
    let file = File::create(path).expect("create");
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).expect("writer");
    writer.write(batch).expect("write");
    writer.close().expect("close");
}
