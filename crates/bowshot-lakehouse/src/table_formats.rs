//! Folders that are tables of a format whose own metadata decide which files count. Reading all their files would give wrong
//! rows.

use crate::change_feed::{self, ChangeRange, Changes};
use crate::delta::DeltaFolder;
use crate::iceberg::IcebergFolder;
use crate::table_folder::TableFolder;
use bowshot_formats::inspection::Workshop;
use bowshot_formats::table_version::AsOf;
use bowshot_object_store::{DELTA, Error, HUDI, ICEBERG};
use datafusion::catalog::TableProvider;
use std::fs;
use std::path::Path;
use std::sync::Arc;

#[derive(Debug)]
pub enum ForeignFolder {
    Delta(Box<DeltaFolder>),
    Iceberg(IcebergFolder),
}

impl ForeignFolder {
    pub fn at(path: &Path, workshop: &Arc<Workshop>, max_files: usize) -> Option<Self> {
        let folder = TableFolder::Local(path.to_path_buf());
        Self::of(foreign_table(path)?, folder, workshop, max_files)
    }

    /// The table of a format that a folder is, if it is one that is read.
    pub fn of(
        kind: &'static str,
        folder: TableFolder,
        workshop: &Arc<Workshop>,
        max_files: usize,
    ) -> Option<Self> {
        match kind {
            DELTA => Some(Self::Delta(Box::new(DeltaFolder::new(folder, Arc::clone(workshop), max_files)))),
            ICEBERG => Some(Self::Iceberg(IcebergFolder::new(folder, Arc::clone(workshop), max_files))),
            _ => None,
        }
    }

    /// Whether a folder is a table of the same format, or still of none.
    pub fn is_same(known: Option<&Self>, path: &Path) -> bool {
        let kind = foreign_table(path);
        known.map(Self::kind) == kind.filter(|kind| [DELTA, ICEBERG].contains(kind))
    }

    pub fn kind(&self) -> &'static str {
        match self {
            Self::Delta(_) => DELTA,
            Self::Iceberg(_) => ICEBERG,
        }
    }

    /// The table of this name as it is now, or was in an earlier state.
    ///
    /// # Errors
    /// When its metadata or what they name cannot be read, or ask for what this reader does not know; `NoState` for a state that is
    /// not kept.
    pub async fn table(&self, name: &str, as_of: Option<AsOf>) -> Result<Arc<dyn TableProvider>, Error> {
        Ok(match self {
            Self::Delta(folder) => Arc::new(folder.table(name, as_of).await?),
            Self::Iceberg(folder) => Arc::new(folder.table(name, as_of).await?),
        })
    }

    /// The number of the state that a branch or a tag names; Delta tables have none of these.
    pub async fn referenced_state(&self, reference: &str) -> Result<Option<u64>, Error> {
        match self {
            Self::Delta(_) => Ok(None),
            Self::Iceberg(folder) => folder.referenced_state(reference).await,
        }
    }

    /// The changes of the table of this name in a range.
    pub async fn changes(&self, name: &str, range: ChangeRange) -> Result<Changes, bowshot_api::Error> {
        match self {
            Self::Delta(folder) => folder.changes(range).await.map_err(|error| error.of_table(name).into()),
            Self::Iceberg(_) => Err(change_feed::keeps_none(name)),
        }
    }

    pub async fn files(&self) -> Result<usize, Error> {
        match self {
            Self::Delta(folder) => folder.files().await,
            Self::Iceberg(folder) => folder.files().await,
        }
    }

    pub fn format(&self) -> &'static str {
        match self {
            Self::Delta(_) => "delta",
            Self::Iceberg(_) => "iceberg",
        }
    }
}

/// A folder that belongs to a table format whose log decides which files count. Reading all its files would give wrong rows.
pub fn foreign_table(path: &Path) -> Option<&'static str> {
    if path.join("_delta_log").is_dir() {
        return Some(DELTA);
    }
    if path.join(".hoodie").is_dir() {
        return Some(HUDI);
    }
    let metadata = fs::read_dir(path.join("metadata")).ok()?;
    let iceberg = metadata
        .filter_map(Result::ok)
        .any(|entry| entry.file_name().to_string_lossy().ends_with(".metadata.json"));
    iceberg.then_some(ICEBERG)
}
