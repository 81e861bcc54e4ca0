//! Folders that are tables of a format whose own metadata decide which files count. Reading all their files would give wrong
//! rows.

use crate::Error;
use crate::delta_folder::DeltaFolder;
use crate::lake::iceberg::IcebergFolder;
use crate::listing;
use crate::snapshot::Workshop;
use datafusion::catalog::TableProvider;
use std::path::Path;
use std::sync::Arc;

/// One such table.
#[derive(Debug)]
pub(crate) enum ForeignFolder {
    Delta(DeltaFolder),
    Iceberg(IcebergFolder),
}

impl ForeignFolder {
    /// The table that a folder is, of the formats that are read.
    pub(crate) fn at(path: &Path, workshop: &Arc<Workshop>, max_files: usize) -> Option<Self> {
        match listing::foreign_table(path)? {
            listing::DELTA => {
                Some(Self::Delta(DeltaFolder::new(path.to_path_buf(), Arc::clone(&workshop.delta))))
            }
            listing::ICEBERG => {
                Some(Self::Iceberg(IcebergFolder::new(path.to_path_buf(), Arc::clone(workshop), max_files)))
            }
            _ => None,
        }
    }

    /// Whether a folder is a table of the same format, or still of none.
    pub(crate) fn is_same(known: Option<&Self>, path: &Path) -> bool {
        let kind = match known {
            Some(Self::Delta(_)) => Some(listing::DELTA),
            Some(Self::Iceberg(_)) => Some(listing::ICEBERG),
            None => None,
        };
        kind == listing::foreign_table(path).filter(|kind| [listing::DELTA, listing::ICEBERG].contains(kind))
    }

    /// The table of this name as it is now.
    ///
    /// # Errors
    /// When its metadata or what they name cannot be read, or ask for what this reader does not know.
    pub(crate) async fn table(&self, name: &str) -> Result<Arc<dyn TableProvider>, Error> {
        Ok(match self {
            Self::Delta(folder) => Arc::new(folder.table(name).await?),
            Self::Iceberg(folder) => Arc::new(folder.table(name).await?),
        })
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
