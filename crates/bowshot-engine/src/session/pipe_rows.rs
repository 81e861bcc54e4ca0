//! Rows of the files of a pipe, on their way into its table, one file after the other and all in one change.

use crate::session::EngineSession;
use crate::session::copy_rows::{broken, streamed};
use crate::session::write::Written;
use crate::write::apply::{self, Place, arranged, by_name};
use crate::write::constraints::Casts;
use crate::write::insertion::Insertion;
use crate::write::pipes::{Load, file_catalog, of_format};
use crate::write::rows::{absent_values, checked};
use bowshot_api::{LastWrite, Result};
use bowshot_policy::snapshot::Pinned;
use std::sync::Arc;
use tokio::task::spawn_blocking;

impl EngineSession {
    /// Takes the rows of the files that were chosen, and notes that.
    pub(super) async fn load(&self, load: &Load, pinned: &Pinned) -> Result<Written> {
        let (rows, after) = match load.chosen.files.is_empty() {
            true => (0, pinned.clone()),
            false => Box::pin(self.load_files(load, pinned)).await?,
        };
        let is_nothing = load.chosen.files.is_empty() && load.chosen.load.failed.is_empty();
        let pinned = if is_nothing { after } else { load.noted(&after, rows)? };
        let (rows, last) = (Some(rows), LastWrite::default());
        Ok(Written { pinned, rows, rows_in_all: rows, returned: None, last })
    }

    async fn load_files(&self, load: &Load, pinned: &Pinned) -> Result<(u64, Pinned)> {
        let (state, names, stores) = (self.lazy_state(pinned), self.names(pinned), self.stores());
        let (table, files) = (names.table(&load.table)?, file_catalog(&names)?);
        let place = Place { names: &names, stores: &stores, state: &state };
        let added = apply::adding(&load.table, &table, &place);
        let mut insertion = Insertion::new(&load.table, added, Casts::Exact, &place)?;
        let options = Arc::new((of_format(load.read.clone(), load.shape), load.wanted.clone()));
        let mut origins = Vec::new();
        load.chosen.note_read(true);
        for file in &load.chosen.files {
            let (files, file, shape) = (Arc::clone(files), file.clone(), load.shape);
            let options = Arc::clone(&options);
            let opened =
                spawn_blocking(move || files.copied_rows(&file, (shape, &options.0), &options.1)).await;
            let rows = streamed(opened.map_err(broken)??);
            origins.push(rows.origin().cloned());
            let positions = by_name(&rows.schema(), table.definition(), &load.table)?;
            let absent = absent_values(table.definition(), &state, &stores.shared).await?;
            insertion.add(arranged(rows, positions, absent, table.schema())).await?;
        }
        let applied = insertion.finish(&load.table, &place).await?;
        origins.iter().try_for_each(|origin| checked(origin.as_ref()))?;
        load.chosen.note_read(false);
        Ok((applied.rows, applied.pinned))
    }
}
