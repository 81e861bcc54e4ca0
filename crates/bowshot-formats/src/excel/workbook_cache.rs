//! Which sheets of a workbook are tables: visible ones with a cell. Cached until the file changes, since folders are listed often.

use super::workbook::Workbook;
use crate::data_file::{DataFile, HandlePool};
use bowshot_object_store::{Error, FileIdentity};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

const MAX_BOOKS: usize = 4_096;

/// Sheets of a workbook that become tables.
const MAX_SHEETS: usize = 256;

#[derive(Debug, Default)]
pub struct WorkbookCache(Mutex<HashMap<PathBuf, Known>>);

/// The content that a workbook had, and the sheets in it.
type Known = (FileIdentity, Arc<[String]>);

impl WorkbookCache {
    /// The sheets of a workbook; none of one that cannot be read, of which its table tells why.
    pub fn sheets(&self, path: &Path) -> Arc<[String]> {
        let Ok(metadata) = std::fs::metadata(path) else { return Arc::default() };
        let identity = FileIdentity::new(&metadata, SystemTime::now());
        let known = self.0.lock().get(path).cloned();
        if let Some((_, sheets)) = known.filter(|(known, _)| *known == identity && identity.settled) {
            return sheets;
        }
        let file = DataFile::new(path.to_path_buf(), identity, HandlePool::new(1));
        // A file of noise can make a reader panic.
        let found = catch_unwind(AssertUnwindSafe(|| Workbook::filled(&file)))
            .unwrap_or_else(|_| Err(Error::corrupt(path, "it cannot be decoded")));
        let mut sheets = found.unwrap_or_default();
        if sheets.len() > MAX_SHEETS {
            tracing::warn!(path = %path.display(), sheets = sheets.len(), limit = MAX_SHEETS, "a workbook has more sheets than become tables");
            sheets.truncate(MAX_SHEETS);
        }
        let sheets: Arc<[String]> = sheets.into();
        let mut known = self.0.lock();
        if known.len() >= MAX_BOOKS {
            known.clear();
        }
        known.insert(path.to_path_buf(), (identity, Arc::clone(&sheets)));
        sheets
    }
}
