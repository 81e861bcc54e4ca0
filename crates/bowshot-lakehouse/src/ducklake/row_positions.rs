//! Places of rows of a file: those that were deleted, and those that came after the snapshot that is meant.

use super::super::deletes::Count;
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use bowshot_formats::data_file::DataFile;
use bowshot_formats::parquet::{Chunks, explain};
use bowshot_object_store::Error;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::sync::Arc;

const PLACE: &str = "pos";
/// The snapshot that has added or deleted a row, in files of several snapshots.
const SNAPSHOT: &str = "_ducklake_internal_snapshot_id";

/// The places that a file of deleted rows names, as of a snapshot.
pub(super) fn deleted(file: &Arc<DataFile>, snapshot: i64, count: &mut Count) -> Result<Vec<i64>, Error> {
    let mut places = Vec::new();
    each(file, &[PLACE, SNAPSHOT], |batch, rows| {
        count.add(rows, file.path())?;
        let Some(place) = whole(batch, PLACE, file)? else {
            return Err(Error::corrupt(file.path(), format!("it lacks the column `{PLACE}`")));
        };
        let by = whole(batch, SNAPSHOT, file)?;
        for (row, place) in place.iter().enumerate() {
            let place =
                place.ok_or_else(|| Error::corrupt(file.path(), "a deleted row without its position"))?;
            let is_later = by.as_ref().is_some_and(|by| by.is_valid(row) && by.value(row) > snapshot);
            if !is_later {
                places.push(place);
            }
        }
        Ok(())
    })?;
    Ok(places)
}

/// The places of rows that a data file of several snapshots has got after this one.
pub(super) fn later(file: &Arc<DataFile>, snapshot: i64, count: &mut Count) -> Result<Vec<i64>, Error> {
    let (mut places, mut next) = (Vec::new(), 0_i64);
    each(file, &[SNAPSHOT], |batch, rows| {
        let Some(by) = whole(batch, SNAPSHOT, file)? else {
            let detail =
                "rows of several snapshots without their numbers: only the newest snapshot can be read"
                    .to_owned();
            return Err(Error::Unsupported { path: file.path().to_path_buf(), detail });
        };
        let before = places.len();
        for (place, by) in (next..).zip(by.iter()) {
            let by = by.ok_or_else(|| Error::corrupt(file.path(), "a row without its snapshot number"))?;
            if by > snapshot {
                places.push(place);
            }
        }
        count.add(places.len() - before, file.path())?;
        next = next.saturating_add(i64::try_from(rows).unwrap_or(i64::MAX));
        Ok(())
    })?;
    Ok(places)
}

/// Reads those of the columns that a file has.
fn each(
    file: &Arc<DataFile>,
    columns: &[&str],
    mut read: impl FnMut(&RecordBatch, usize) -> Result<(), Error>,
) -> Result<(), Error> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(Chunks(Arc::clone(file)));
    let builder = builder.map_err(|error| explain(file, error))?;
    let fields = builder.schema().fields().iter().enumerate();
    let places: Vec<usize> = fields
        .filter(|(_, field)| columns.contains(&field.name().as_str()))
        .map(|(place, _)| place)
        .collect();
    let mask = ProjectionMask::roots(builder.parquet_schema(), places);
    let batches = builder.with_projection(mask).build().map_err(|error| explain(file, error))?;
    for batch in batches {
        let batch = batch.map_err(|error| Error::corrupt(file.path(), error))?;
        read(&batch, batch.num_rows())?;
    }
    file.close();
    Ok(())
}

type Numbers = arrow::array::PrimitiveArray<Int64Type>;

fn whole(batch: &RecordBatch, column: &str, file: &DataFile) -> Result<Option<Numbers>, Error> {
    let Some(found) = batch.column_by_name(column) else { return Ok(None) };
    let numbers = cast(found, &DataType::Int64).map_err(|error| Error::corrupt(file.path(), error))?;
    Ok(Some(numbers.as_primitive::<Int64Type>().clone()))
}
