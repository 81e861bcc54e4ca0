//! `system.pipes` and `system.pipe_errors`: what pipes have loaded and what they could not, for their owners and administrators.

use super::tables::batch;
use crate::definition_text::refresh_interval;
use crate::lazy_table::{cells, columns};
use bowshot_api::Result;
use bowshot_policy::Access;
use bowshot_policy::snapshot::Pinned;
use bowshot_tables::{Pipe, PipeError, TableStore};
use datafusion::arrow::array::RecordBatch;

pub(super) const NAME: &str = "pipes";
pub(super) const ERRORS: &str = "pipe_errors";

/// The pipes by name. The last error is none of a file.
pub(super) fn rows(pinned: &Pinned, store: &TableStore, access: &Access) -> Result<RecordBatch> {
    let rows = seen(pinned, access).into_iter().map(|(name, pipe)| {
        let [catalog, schema, table] = pipe.table;
        let error = store.refresh_failure(pipe.id).map(|(_, error)| error);
        let state = match &error {
            _ if pipe.paused => "paused",
            Some(_) => "failed",
            None => "running",
        };
        let every = refresh_interval(pipe.every);
        let first = cells![name, catalog, schema, table, pipe.location, pipe.owner, every, state];
        first.into_iter().chain(cells![pipe.files, pipe.rows, pipe.loaded_us, error])
    });
    let columns = columns![
        name Text, table_catalog Text, table_schema Text, table_name Text, location Text, owner Text, every Text,
        state Text, files_loaded Long, rows_loaded Long, last_loaded Time, last_error Text
    ];
    batch(columns, rows)
}

/// The files that could not be loaded, by pipe.
pub(super) fn errors(pinned: &Pinned, access: &Access) -> Result<RecordBatch> {
    let rows = seen(pinned, access).into_iter().flat_map(|(name, _)| {
        let errors = PipeError::all(pinned.shared().notes().texts(), &name);
        errors.into_iter().map(move |error| cells![&name, error.file, error.error, error.failed_us])
    });
    batch(columns![pipe Text, file Text, error Text, failed_at Time], rows)
}

/// Where files are is told to nobody else.
fn seen(pinned: &Pinned, access: &Access) -> Vec<(String, Pipe)> {
    let mut pipes = Pipe::all(pinned.shared().notes().texts());
    pipes.retain(|(_, pipe)| access.may_know(pipe));
    pipes
}
