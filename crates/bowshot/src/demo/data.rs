//! TPC-H data of the demo as Parquet. Tables are written into a temporary folder and moved when all are complete; a marker file has the scale
//! and layout. Folders without a marker are never touched.

use super::tables::{Table, TablePart};
use crate::usage::Usage;
use anyhow::{Context, Result, anyhow, bail};
use arrow::compute::cast;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use parking_lot::Mutex;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

/// Most threads; each holds one row group in memory.
const MAX_THREADS: usize = 4;
/// Rows of one file: several files use several threads.
const FILE_ROWS: u64 = 1_500_000;
const ROW_GROUP_ROWS: usize = 256 << 10;
/// The marker file, and the start of its text.
const MARKER: &str = "bowshot-demo";
/// The version of the layout; older data is made again.
const LAYOUT: &str = "layout 1";
const UNFINISHED: &str = "unfinished\n";

/// Whether the folder has all tables at this scale and layout.
pub(super) fn is_complete(folder: &Path, scale: f64) -> bool {
    fs::read_to_string(folder.join(MARKER)).is_ok_and(|text| text == complete(scale))
}

fn complete(scale: f64) -> String {
    format!("{LAYOUT}, scale {scale}\n")
}

pub(super) fn make(folder: &Path, scale: f64) -> Result<()> {
    if is_complete(folder, scale) {
        return Ok(());
    }
    refuse_foreign(folder, scale)?;
    fs::create_dir_all(folder).with_context(|| format!("cannot create `{}`", folder.display()))?;
    let work = tempfile::Builder::new()
        .prefix(".making-")
        .tempdir_in(folder)
        .with_context(|| format!("cannot write in `{}`", folder.display()))?;
    crate::sql::say(&format!("making TPC-H data at scale {scale} in {}", folder.display()));
    let started = Instant::now();
    let rows = write_all(work.path(), scale)?;
    put_in_place(work.path(), folder, scale)
        .with_context(|| format!("cannot write the data to `{}`", folder.display()))?;
    let seconds = started.elapsed().as_secs_f64();
    crate::sql::say(&format!("made {} rows in {seconds:.1} s", HumanCount(rows)));
    Ok(())
}

/// Refuses to replace foreign data, or data of another scale.
fn refuse_foreign(folder: &Path, scale: f64) -> Result<()> {
    let advice = "name another folder with `--data-dir`";
    match fs::read_to_string(folder.join(MARKER)) {
        Ok(text) if text == UNFINISHED || text.ends_with(&format!(", scale {scale}\n")) => Ok(()),
        Ok(_) => bail!(
            Usage::new(format!("`{}` holds TPC-H data of another scale", folder.display())).with_hint(advice)
        ),
        Err(_) => match Table::ALL.into_iter().find(|table| folder.join(table.name()).exists()) {
            None => Ok(()),
            Some(table) => bail!(
                Usage::new(format!("`{}` has a `{}` of its own", folder.display(), table.name()))
                    .with_hint(advice)
            ),
        },
    }
}

/// Another run may have made the same data.
fn put_in_place(work: &Path, folder: &Path, scale: f64) -> Result<()> {
    if is_complete(folder, scale) {
        return Ok(());
    }
    fs::write(folder.join(MARKER), UNFINISHED)?;
    for table in Table::ALL {
        let place = folder.join(table.name());
        if place.exists() {
            fs::remove_dir_all(&place)?;
        }
        fs::rename(work.join(table.name()), place)?;
    }
    fs::write(work.join(MARKER), complete(scale))?;
    fs::rename(work.join(MARKER), folder.join(MARKER))?;
    Ok(())
}

fn write_all(folder: &Path, scale: f64) -> Result<u64> {
    let parts = Mutex::new(parts(scale).into_iter());
    let next = || parts.lock().next();
    let bar = progress_bar(scale);
    for table in Table::ALL {
        fs::create_dir_all(folder.join(table.name()))?;
    }
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(MAX_THREADS);
    let rows = thread::scope(|scope| {
        let work = || {
            let mut rows = 0;
            while let Some(part) = next() {
                rows += write_part(&file(folder, part), part, scale, &bar)?;
            }
            Ok(rows)
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let joined = workers.into_iter().map(|worker| {
            worker.join().unwrap_or_else(|_| Err(anyhow!("a thread of the data generator failed")))
        });
        joined.sum::<Result<u64>>()
    });
    bar.finish_and_clear();
    rows
}

fn parts(scale: f64) -> Vec<TablePart> {
    let of = |table: Table| {
        let parts = i32::try_from(table.rows(scale).div_ceil(FILE_ROWS)).unwrap_or(i32::MAX).max(1);
        (1..=parts).map(move |part| TablePart { table, part, parts })
    };
    Table::ALL.into_iter().flat_map(of).collect()
}

fn file(folder: &Path, part: TablePart) -> PathBuf {
    let name = part.table.name();
    folder.join(name).join(format!("{name}-{:04}.parquet", part.part))
}

fn write_part(path: &Path, part: TablePart, scale: f64, bar: &ProgressBar) -> Result<u64> {
    let context = || format!("cannot write `{}`", path.display());
    let schema = part.table.schema();
    let output = BufWriter::new(File::create_new(path).with_context(context)?);
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .build();
    let mut writer = ArrowWriter::try_new(output, SchemaRef::clone(&schema), Some(properties))?;
    let mut rows = 0;
    for batch in part.batches(scale) {
        let batch = plain(&batch?, &schema)?;
        writer.write(&batch).with_context(context)?;
        rows += batch.num_rows() as u64;
        bar.inc(batch.num_rows() as u64);
    }
    writer.into_inner().with_context(context)?.flush().with_context(context)?;
    Ok(rows)
}

fn plain(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = batch
        .columns()
        .iter()
        .zip(schema.fields())
        .map(|(column, field)| cast(column, field.data_type()))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(RecordBatch::try_new(SchemaRef::clone(schema), columns)?)
}

/// Draws on stderr, if that is a terminal.
fn progress_bar(scale: f64) -> ProgressBar {
    let bar = ProgressBar::new(Table::ALL.into_iter().map(|table| table.rows(scale)).sum());
    let template = "{wide_bar} {percent} %, {human_pos} rows, {per_sec}, {eta} left";
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::DataType;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    #[test]
    fn a_small_scale_has_all_tables_with_plain_strings() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("new").join("sf0.01");
        assert!(!is_complete(&folder, 0.01));
        make(&folder, 0.01).unwrap();
        assert!(is_complete(&folder, 0.01) && !is_complete(&folder, 0.02));
        for (table, expected) in [(Table::Region, 5), (Table::Orders, 15_000), (Table::LineItem, 60_175)] {
            let path = file(&folder, TablePart { table, part: 1, parts: 1 });
            let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
            assert_eq!(reader.metadata().file_metadata().num_rows(), expected);
            assert!(reader.schema().fields().iter().all(|field| *field.data_type() != DataType::Utf8View));
        }
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 9, "tables and marker, nothing else");
        let written = || fs::metadata(folder.join(MARKER)).unwrap().modified().unwrap();
        let first = written();
        make(&folder, 0.01).unwrap();
        assert_eq!(written(), first, "made once");
    }

    #[test]
    fn unfinished_data_and_old_layouts_are_made_again() {
        for marker in [UNFINISHED, "layout 0, scale 0.001\n"] {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join(MARKER), marker).unwrap();
            fs::create_dir(folder.path().join("orders")).unwrap();
            make(folder.path(), 0.001).unwrap();
            assert!(is_complete(folder.path(), 0.001));
            assert!(folder.path().join("orders").read_dir().unwrap().next().is_some());
        }
    }

    #[test]
    fn data_of_others_is_not_touched() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("orders").join("mine.parquet");
        fs::create_dir(folder.path().join("orders")).unwrap();
        fs::write(&own, "mine").unwrap();
        assert!(make(folder.path(), 0.001).unwrap_err().is::<Usage>());
        fs::write(folder.path().join(MARKER), complete(7.0)).unwrap();
        assert!(make(folder.path(), 0.001).unwrap_err().is::<Usage>());
        assert_eq!(fs::read_to_string(own).unwrap(), "mine");
    }

    #[test]
    fn large_tables_have_several_files() {
        let lineitem = parts(10.0).into_iter().filter(|part| part.table == Table::LineItem).count();
        assert_eq!(lineitem, 40);
    }
}
