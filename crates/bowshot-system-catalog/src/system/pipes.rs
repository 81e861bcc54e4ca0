//! `system.pipes` and `system.pipe_errors`: what pipes have loaded and what they could not, for their owners and administrators.

use super::tables::{Names, batch};
use crate::definition_text::refresh_interval;
use bowshot_api::Result;
use bowshot_policy::Access;
use bowshot_policy::snapshot::Pinned;
use bowshot_tables::{Pipe, PipeError, TableStore};
use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use std::sync::Arc;

pub(super) const NAME: &str = "pipes";
pub(super) const ERRORS: &str = "pipe_errors";

/// The pipes by name. The last error is none of a file.
pub(super) fn rows(pinned: &Pinned, store: &TableStore, access: &Access) -> Result<RecordBatch> {
    let pipes = seen(pinned, access);
    let (mut tables, mut states, mut errors) = (Names::default(), Vec::new(), Vec::new());
    for (_, pipe) in &pipes {
        let [catalog, schema, table] = &pipe.table;
        tables.add([catalog, schema, table]);
        let error = store.refresh_failure(pipe.id).map(|(_, error)| error);
        states.push(match &error {
            _ if pipe.paused => "paused",
            Some(_) => "failed",
            None => "running",
        });
        errors.push(error);
    }
    let texts = |text: fn(&(String, Pipe)) -> Option<String>| -> ArrayRef {
        Arc::new(pipes.iter().map(text).collect::<StringArray>())
    };
    let numbers = |number: fn(&Pipe) -> u64| -> ArrayRef {
        Arc::new(pipes.iter().map(|(_, pipe)| Some(number(pipe).cast_signed())).collect::<Int64Array>())
    };
    let loaded = pipes.iter().map(|(_, pipe)| pipe.loaded_us).collect::<TimestampMicrosecondArray>();
    let mut columns = vec![("name", texts(|(name, _)| Some(name.clone())))];
    columns.extend(tables.columns());
    columns.extend([
        ("location", texts(|(_, pipe)| Some(pipe.location.clone()))),
        ("owner", texts(|(_, pipe)| pipe.owner.clone())),
        ("every", texts(|(_, pipe)| Some(refresh_interval(pipe.every)))),
        ("state", Arc::new(StringArray::from(states)) as ArrayRef),
        ("files_loaded", numbers(|pipe| pipe.files)),
        ("rows_loaded", numbers(|pipe| pipe.rows)),
        ("last_loaded", Arc::new(loaded.with_timezone("UTC"))),
        ("last_error", Arc::new(StringArray::from(errors))),
    ]);
    batch(columns)
}

/// The files that could not be loaded, by pipe.
pub(super) fn errors(pinned: &Pinned, access: &Access) -> Result<RecordBatch> {
    let (mut names, mut files, mut texts, mut failed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (name, _) in seen(pinned, access) {
        for error in PipeError::all(pinned.shared().notes().texts(), &name) {
            names.push(name.clone());
            files.push(error.file);
            texts.push(error.error);
            failed.push(error.failed_us);
        }
    }
    batch(vec![
        ("pipe", Arc::new(StringArray::from(names)) as ArrayRef),
        ("file", Arc::new(StringArray::from(files))),
        ("error", Arc::new(StringArray::from(texts))),
        ("failed_at", Arc::new(TimestampMicrosecondArray::from(failed).with_timezone("UTC"))),
    ])
}

/// Where files are is told to nobody else.
fn seen(pinned: &Pinned, access: &Access) -> Vec<(String, Pipe)> {
    let mut pipes = Pipe::all(pinned.shared().notes().texts());
    pipes.retain(|(_, pipe)| access.may_know(pipe));
    pipes
}
