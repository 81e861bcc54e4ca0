//! Which files of a state are written again as fewer ones: those of a partition that has several small ones.

use super::super::paths;
use super::removal::{entries_of, manifests_of};
use super::table_state::TableState;
use crate::table_folder::FolderView;
use bowshot_api::Result;
use bowshot_formats::data_file::HandlePool;
use bowshot_object_store::Error as FileError;
use datafusion::common::ScalarValue;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes of a file that is large enough to stay: a quarter of what is written as one.
const LARGE: i64 = 128 << 20;

/// The files, by where they are read from. Blocks.
pub(in super::super) fn small_files(
    state: &TableState,
    (folder, pool): (&FolderView, &Arc<HandlePool>),
) -> Result<HashSet<PathBuf>> {
    let Some(snapshot) = state.current().and_then(|id| state.snapshot(id)) else {
        return Ok(HashSet::new());
    };
    let mut partitions: HashMap<(i64, Vec<ScalarValue>), Vec<PathBuf>> = HashMap::new();
    for manifest in manifests_of(snapshot, state, (folder, pool))? {
        if manifest.content != 0 {
            continue;
        }
        for entry in entries_of(&manifest, state, (folder, pool))? {
            let file = entry.file;
            if file.bytes < LARGE {
                let name = paths::below(&file.path, &state.metadata.location, folder)
                    .map_err(|outside| FileError::corrupt(&folder.path(""), outside))?;
                partitions.entry((manifest.spec, file.partition)).or_default().push(folder.path(&name));
            }
        }
    }
    Ok(partitions.into_values().filter(|files| files.len() > 1).flatten().collect())
}
