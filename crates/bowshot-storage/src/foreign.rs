//! Folders that are tables of a format whose own metadata decide which files count. Reading all their files would give wrong
//! rows.

use crate::Error;
use crate::delta_folder::DeltaFolder;
use crate::lake::delta::{self, ChangeRange, Changes};
use crate::lake::iceberg::IcebergFolder;
use crate::listing;
use crate::snapshot::Workshop;
use crate::table_folder::TableFolder;
use crate::tables::durable::AsOf;
use datafusion::catalog::TableProvider;
use std::path::Path;
use std::sync::Arc;

/// One such table.
#[derive(Debug)]
pub(crate) enum ForeignFolder {
    Delta(Box<DeltaFolder>),
    Iceberg(IcebergFolder),
}

impl ForeignFolder {
    /// The table that a folder of this machine is, of the formats that are read.
    pub(crate) fn at(path: &Path, workshop: &Arc<Workshop>, max_files: usize) -> Option<Self> {
        let folder = TableFolder::Local(path.to_path_buf());
        Self::of(listing::foreign_table(path)?, folder, workshop, max_files)
    }

    /// The table of a format that a folder is, if it is one that is read.
    pub(crate) fn of(
        kind: &'static str,
        folder: TableFolder,
        workshop: &Arc<Workshop>,
        max_files: usize,
    ) -> Option<Self> {
        match kind {
            listing::DELTA => {
                Some(Self::Delta(Box::new(DeltaFolder::new(folder, Arc::clone(workshop), max_files))))
            }
            listing::ICEBERG => {
                Some(Self::Iceberg(IcebergFolder::new(folder, Arc::clone(workshop), max_files)))
            }
            _ => None,
        }
    }

    /// Whether a folder is a table of the same format, or still of none.
    pub(crate) fn is_same(known: Option<&Self>, path: &Path) -> bool {
        let kind = listing::foreign_table(path);
        known.map(Self::kind) == kind.filter(|kind| [listing::DELTA, listing::ICEBERG].contains(kind))
    }

    /// As listings name the format.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Delta(_) => listing::DELTA,
            Self::Iceberg(_) => listing::ICEBERG,
        }
    }

    /// The table of this name as it is now, or was in an earlier state.
    ///
    /// # Errors
    /// When its metadata or what they name cannot be read, or ask for what this reader does not know; `NoState` for a state that is
    /// not kept.
    pub(crate) async fn table(
        &self,
        name: &str,
        as_of: Option<AsOf>,
    ) -> Result<Arc<dyn TableProvider>, Error> {
        Ok(match self {
            Self::Delta(folder) => Arc::new(folder.table(name, as_of).await?),
            Self::Iceberg(folder) => Arc::new(folder.table(name, as_of).await?),
        })
    }

    /// The changes of the table of this name in a range.
    ///
    /// # Errors
    /// As [`Self::table`]; `Unsupported` for formats that keep none.
    pub(crate) async fn changes(
        &self,
        name: &str,
        range: ChangeRange,
    ) -> Result<Changes, bowshot_api::Error> {
        match self {
            Self::Delta(folder) => folder.changes(range).await.map_err(|error| error.of_table(name).into()),
            Self::Iceberg(_) => Err(delta::keeps_none(name)),
        }
    }

    /// Number of the data files.
    ///
    /// # Errors
    /// As [`Self::table`].
    pub(crate) async fn files(&self) -> Result<usize, Error> {
        match self {
            Self::Delta(folder) => folder.files().await,
            Self::Iceberg(folder) => folder.files().await,
        }
    }

    /// The name of the format.
    pub(crate) fn format(&self) -> &'static str {
        match self {
            Self::Delta(_) => "delta",
            Self::Iceberg(_) => "iceberg",
        }
    }
}
