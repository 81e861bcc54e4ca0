//! What `system` says about files: `system.files`, how each table of files is read and why, `system.rejects`, the lines
//! that scans have left out, and `system.object_stores`, what was asked of each bucket and what came from the cache instead.

use crate::lazy_table::{Cell, Kind, arrays, cells, columns};
use bowshot_api::{Error, Result};
use bowshot_files::FileCatalog;
use bowshot_formats::table_summary::TableSummary;
use bowshot_object_store::PlaceSummary;
use datafusion::arrow::array::RecordBatch;
use std::sync::Arc;

/// The tables of `system` that are made here.
pub(crate) const NAMES: [&str; 3] = ["files", "object_stores", "rejects"];

/// The rows of one of [`NAMES`]; `None` for other names.
pub(crate) async fn rows(catalog: Option<&Arc<FileCatalog>>, name: &str) -> Option<Result<RecordBatch>> {
    if !NAMES.contains(&name) {
        return None;
    }
    if name == "object_stores" {
        let places = catalog.and_then(|catalog| catalog.remotes()).map(|remotes| remotes.describe());
        return Some(object_stores(&places.unwrap_or_default()));
    }
    let summaries = match catalog.cloned() {
        None => Vec::new(),
        Some(catalog) => {
            let looked =
                tokio::task::spawn_blocking(move || (catalog.describe(), catalog.describe_named())).await;
            match looked {
                Ok((mut all, named)) => {
                    all.extend(
                        named.into_iter().map(|summary| TableSummary { name: String::new(), ..summary }),
                    );
                    all
                }
                Err(error) => {
                    return Some(Err(Error::internal("looking at files broke down").with_source(error)));
                }
            }
        }
    };
    Some(if name == "files" { files(&summaries) } else { rejects(&summaries) })
}

/// One row for each table, and for the files that statements have named lately, which have no name.
fn files(summaries: &[TableSummary]) -> Result<RecordBatch> {
    let rows = summaries.iter().map(|one| {
        let [name, format] =
            [one.name.as_str(), one.format].map(|text| Some(text).filter(|text| !text.is_empty()));
        let path = one.path.display().to_string();
        cells![name, format, one.files, one.bytes, path, one.read_as.as_ref(), one.problem.as_ref()]
    });
    let columns = columns![
        table_name Text, format Text, files Long, bytes Long, path Text, read_as Text, error Text
    ];
    batch(columns, rows)
}

/// One row for each bucket that is open.
fn object_stores(places: &[PlaceSummary]) -> Result<RecordBatch> {
    let rows = places.iter().map(|one| {
        let bytes = cells![one.bytes_read, one.bytes_written, one.bytes_from_cache, one.cache_bytes];
        let first = cells![&one.place, one.requests, one.failed].into_iter();
        first.chain(bytes).chain(cells![one.last_error.as_ref()])
    });
    let columns = columns![
        place Text, requests Long, failed Long, bytes_read Long, bytes_written Long, bytes_from_cache Long,
        cache_bytes Long, last_error Text
    ];
    batch(columns, rows)
}

fn rejects(summaries: &[TableSummary]) -> Result<RecordBatch> {
    let all = summaries.iter().flat_map(|one| one.rejects.iter().map(move |reject| (one, reject)));
    let rows = all.map(|(one, (path, reject))| {
        let name = Some(&one.name).filter(|name| !name.is_empty());
        let path = path.display().to_string();
        cells![name, path, reject.line, reject.column.clone(), reject.value.clone(), &reject.reason]
    });
    let columns = columns![
        table_name Text, path Text, line Long, column_name Text, value Text, reason Text
    ];
    batch(columns, rows)
}

/// A table of these columns and rows, all of which are nullable.
fn batch<R: IntoIterator<Item = Cell>>(
    columns: &'static [(&'static str, Kind)],
    rows: impl IntoIterator<Item = R>,
) -> Result<RecordBatch> {
    let nullable = arrays(columns, rows).map(|(name, array)| (name, array, true));
    RecordBatch::try_from_iter_with_nullable(nullable)
        .map_err(|error| Error::internal("a table about files cannot be made").with_source(error))
}
