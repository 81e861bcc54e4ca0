//! What `system` says about files: `system.files`, how each table of files is read and why, `system.rejects`, the lines
//! that scans have left out, and `system.object_stores`, what was asked of each bucket and what came from the cache instead.

use bowshot_api::{Error, Result};
use bowshot_storage::remote::PlaceSummary;
use bowshot_storage::{FileCatalog, TableSummary};
use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
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
    let text = |of: &dyn Fn(&TableSummary) -> Option<String>| -> ArrayRef {
        Arc::new(summaries.iter().map(of).collect::<StringArray>())
    };
    let number = |of: &dyn Fn(&TableSummary) -> i64| -> ArrayRef {
        Arc::new(summaries.iter().map(|summary| Some(of(summary))).collect::<Int64Array>())
    };
    batch([
        ("table_name", text(&|one| Some(one.name.clone()).filter(|name| !name.is_empty()))),
        ("format", text(&|one| Some(one.format.to_owned()).filter(|format| !format.is_empty()))),
        ("files", number(&|one| one.files as i64)),
        ("bytes", number(&|one| one.bytes.cast_signed())),
        ("path", text(&|one| Some(one.path.display().to_string()))),
        ("read_as", text(&|one| one.read_as.clone())),
        ("error", text(&|one| one.problem.clone())),
    ])
}

/// One row for each bucket that is open.
fn object_stores(places: &[PlaceSummary]) -> Result<RecordBatch> {
    let number = |of: &dyn Fn(&PlaceSummary) -> u64| -> ArrayRef {
        Arc::new(places.iter().map(|one| Some(of(one).cast_signed())).collect::<Int64Array>())
    };
    let names: StringArray = places.iter().map(|one| Some(one.place.as_str())).collect();
    let errors: StringArray = places.iter().map(|one| one.last_error.as_deref()).collect();
    batch([
        ("place", Arc::new(names) as ArrayRef),
        ("requests", number(&|one| one.requests)),
        ("failed", number(&|one| one.failed)),
        ("bytes_read", number(&|one| one.bytes_read)),
        ("bytes_written", number(&|one| one.bytes_written)),
        ("bytes_from_cache", number(&|one| one.bytes_from_cache)),
        ("cache_bytes", number(&|one| one.cache_bytes)),
        ("last_error", Arc::new(errors)),
    ])
}

fn rejects(summaries: &[TableSummary]) -> Result<RecordBatch> {
    let all = || summaries.iter().flat_map(|one| one.rejects.iter().map(move |reject| (one, reject)));
    let names: StringArray = all().map(|(one, _)| Some(&one.name).filter(|name| !name.is_empty())).collect();
    let paths: StringArray = all().map(|(_, reject)| Some(reject.path.display().to_string())).collect();
    let lines: Int64Array = all().map(|(_, reject)| Some(reject.line.cast_signed())).collect();
    let columns: StringArray = all().map(|(_, reject)| reject.column.clone()).collect();
    let values: StringArray = all().map(|(_, reject)| reject.value.clone()).collect();
    let reasons: StringArray = all().map(|(_, reject)| Some(reject.reason.clone())).collect();
    batch([
        ("table_name", Arc::new(names) as ArrayRef),
        ("path", Arc::new(paths)),
        ("line", Arc::new(lines)),
        ("column_name", Arc::new(columns)),
        ("value", Arc::new(values)),
        ("reason", Arc::new(reasons)),
    ])
}

fn batch<const N: usize>(columns: [(&str, ArrayRef); N]) -> Result<RecordBatch> {
    let nullable = columns.map(|(name, array)| (name, array, true));
    RecordBatch::try_from_iter_with_nullable(nullable)
        .map_err(|error| Error::internal("a table about files cannot be made").with_source(error))
}
