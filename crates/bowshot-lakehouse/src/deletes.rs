//! Rows that were deleted after their file was written: by their places, and by the values of some columns.

use super::columns::{LakeColumn, number};
use super::deletion_bitmap;
use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, Int64Type, Schema};
use bowshot_formats::data_file::DataFile;
use bowshot_formats::parquet::{Chunks, explain};
use bowshot_object_store::Error;
use datafusion::common::ScalarValue;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder, RowSelection};
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Deleted rows of a table that are held in memory, those of values once for each group of files. More are refused.
pub(crate) const MAX_DELETED: usize = 10_000_000;

/// Bytes of a deletion vector: one of which each row takes as much room as it can.
pub(crate) const MAX_VECTOR_BYTES: u64 = 64 << 20;

/// Numbers of the columns of a file of deleted places, which the format reserves (specification, "Reserved Field IDs").
const FILE_PATH: i32 = 2_147_483_546;
const POSITION: i32 = 2_147_483_545;

/// Rows whose values in some columns are those of a row here have been deleted.
#[derive(Debug, Clone)]
pub(super) struct Gone {
    /// Places of the columns in the table.
    pub(super) columns: Vec<usize>,
    /// Their values, in types and names of the table.
    pub(super) rows: RecordBatch,
}

#[derive(Debug)]
pub(super) struct DeletedValues {
    /// Files of this number and later ones have rows that came afterwards.
    pub(super) sequence: i64,
    /// Only files of this partition are meant; of none, those of all.
    pub(super) partition: Option<(i32, Vec<ScalarValue>)>,
    pub(super) gone: Gone,
}

/// The same deleted rows with one part for each set of columns.
pub(super) fn united(deleted: &[&DeletedValues], count: &mut Count, path: &Path) -> Result<Vec<Gone>, Error> {
    let mut parts: Vec<(&Vec<usize>, Vec<&RecordBatch>)> = Vec::new();
    for DeletedValues { gone, .. } in deleted {
        count.add(gone.rows.num_rows(), path)?;
        match parts.iter_mut().find(|(columns, _)| *columns == &gone.columns) {
            Some((_, rows)) => rows.push(&gone.rows),
            None => parts.push((&gone.columns, vec![&gone.rows])),
        }
    }
    let unite = |(columns, rows): (&Vec<usize>, Vec<&RecordBatch>)| {
        let schema = rows.first().map(|rows| rows.schema()).unwrap_or_else(|| Arc::new(Schema::empty()));
        let rows = concat_batches(&schema, rows).map_err(|error| Error::corrupt(path, error))?;
        Ok(Gone { columns: columns.clone(), rows })
    };
    parts.into_iter().map(unite).collect()
}

/// Places of deleted rows by the file that they are of, each with the number of the change that deleted it.
#[derive(Debug, Default)]
pub(super) struct DeletedPlaces {
    of_file: HashMap<String, Vec<(u64, i64)>>,
}

#[derive(Debug, Default)]
pub(super) struct Deleted {
    pub(super) places: DeletedPlaces,
    pub(super) values: Vec<DeletedValues>,
    pub(super) count: Count,
}

/// Deleted rows so far.
#[derive(Debug, Default)]
pub(super) struct Count(usize);

impl Count {
    pub(super) fn left(&self) -> usize {
        MAX_DELETED.saturating_sub(self.0)
    }

    pub(super) fn add(&mut self, rows: usize, path: &Path) -> Result<(), Error> {
        self.0 = self.0.saturating_add(rows);
        if self.0 <= MAX_DELETED {
            return Ok(());
        }
        let detail = format!("more than {MAX_DELETED} deleted rows: compact the table");
        Err(Error::Unsupported { path: path.to_path_buf(), detail })
    }
}

impl DeletedPlaces {
    pub(super) fn read(
        &mut self,
        file: &Arc<DataFile>,
        sequence: i64,
        count: &mut Count,
    ) -> Result<(), Error> {
        let failed = |error| Error::corrupt(file.path(), error);
        for batch in rows(file, &[(FILE_PATH, "file_path"), (POSITION, "pos")], count)? {
            let batch = batch.map_err(failed)?;
            let path = numbered_column(&batch, FILE_PATH, "file_path", file)?;
            let place = numbered_column(&batch, POSITION, "pos", file)?;
            let (path, place) = (
                cast(&path, &DataType::Utf8).map_err(failed)?,
                cast(&place, &DataType::Int64).map_err(failed)?,
            );
            let places = place.as_primitive::<Int64Type>().iter();
            for (path, place) in path.as_string::<i32>().iter().zip(places) {
                let (Some(path), Some(place)) = (path, place.and_then(|place| u64::try_from(place).ok()))
                else {
                    return Err(Error::corrupt(file.path(), "a deleted row without its file or position"));
                };
                match self.of_file.get_mut(path) {
                    Some(places) => places.push((place, sequence)),
                    None => drop(self.of_file.insert(path.to_owned(), vec![(place, sequence)])),
                }
            }
        }
        file.close();
        Ok(())
    }

    pub(super) fn read_vector(
        &mut self,
        (file, range): (&Arc<DataFile>, Range<u64>),
        (of, sequence): (&str, i64),
        count: &mut Count,
    ) -> Result<(), Error> {
        let places = vector_places(file, range, count)?;
        let known = self.of_file.entry(of.to_owned()).or_default();
        known.extend(places.into_iter().map(|place| (place, sequence)));
        Ok(())
    }

    /// The rows of a file that are left; none where all are. A change deletes rows of files that came before it or with it.
    pub(super) fn left(&self, file: &str, sequence: i64, rows: usize) -> Option<RowSelection> {
        let deleted = self.of_file.get(file)?.iter().filter(|(_, by)| *by >= sequence);
        let mut places: Vec<usize> = deleted
            .filter_map(|(place, _)| usize::try_from(*place).ok())
            .filter(|place| *place < rows)
            .collect();
        places.sort_unstable();
        places.dedup();
        (!places.is_empty()).then(|| without(&places, rows))
    }
}

pub(super) fn vector_places(
    file: &Arc<DataFile>,
    range: Range<u64>,
    count: &mut Count,
) -> Result<Vec<u64>, Error> {
    if range.end.saturating_sub(range.start) > MAX_VECTOR_BYTES || range.end > file.size() {
        return Err(Error::corrupt(file.path(), "invalid location of a deletion vector"));
    }
    let bytes = file.read(range);
    file.close();
    let places = deletion_bitmap::places(&bytes?, count.left());
    let places = places.map_err(|reason| Error::corrupt(file.path(), reason))?;
    count.add(places.len(), file.path())?;
    Ok(places)
}

/// All rows but those, which are sorted.
pub(super) fn without(places: &[usize], rows: usize) -> RowSelection {
    let begins = std::iter::once(0).chain(places.iter().map(|place| place + 1));
    let ends = places.iter().copied().chain(std::iter::once(rows));
    RowSelection::from_consecutive_ranges(begins.zip(ends).map(|(begin, end)| begin..end), rows)
}

/// Those rows alone, which are sorted.
pub(super) fn only(places: &[usize], rows: usize) -> RowSelection {
    RowSelection::from_consecutive_ranges(places.iter().map(|place| *place..place + 1), rows)
}

/// The rows of a file of deleted values, with the columns of these numbers.
pub(super) fn values(
    file: &Arc<DataFile>,
    numbers: &[i32],
    table: &[LakeColumn],
    count: &mut Count,
) -> Result<Gone, Error> {
    let place = |number: &i32| table.iter().position(|column| column.number == *number);
    let places: Option<Vec<usize>> = numbers.iter().map(place).collect();
    let Some(places) = places.filter(|places| !places.is_empty()) else {
        let detail = "its equality deletes use columns that are nested or dropped".to_owned();
        return Err(Error::Unsupported { path: file.path().to_path_buf(), detail });
    };
    let columns: Vec<&LakeColumn> = places.iter().filter_map(|place| table.get(*place)).collect();
    let nullable = |column: &&LakeColumn| column.field.as_ref().clone().with_nullable(true);
    let schema = Arc::new(Schema::new(columns.iter().map(nullable).collect::<Vec<_>>()));
    let failed = |error| Error::corrupt(file.path(), error);
    let named: Vec<(i32, &str)> =
        columns.iter().map(|column| (column.number, column.field.name().as_str())).collect();
    let mut fitted = Vec::new();
    for batch in rows(file, &named, count)? {
        let batch = batch.map_err(failed)?;
        let of_column = |column: &&LakeColumn| {
            let found = numbered_column(&batch, column.number, column.field.name(), file)?;
            cast(&found, column.field.data_type()).map_err(failed)
        };
        let arrays = columns.iter().map(of_column).collect::<Result<Vec<ArrayRef>, Error>>()?;
        fitted.push(RecordBatch::try_new(Arc::clone(&schema), arrays).map_err(failed)?);
    }
    file.close();
    Ok(Gone { columns: places, rows: concat_batches(&schema, &fitted).map_err(failed)? })
}

/// The rows of a file with the columns of those numbers and names. They are counted before they are read.
fn rows(
    file: &Arc<DataFile>,
    columns: &[(i32, &str)],
    count: &mut Count,
) -> Result<ParquetRecordBatchReader, Error> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(Chunks(Arc::clone(file)));
    let builder = builder.map_err(|error| explain(file, error))?;
    let rows = builder.metadata().file_metadata().num_rows();
    count.add(usize::try_from(rows).unwrap_or(usize::MAX), file.path())?;
    let places = columns.iter().map(|(wanted, name)| place_of(builder.schema(), *wanted, name, file));
    let places = places.collect::<Result<Vec<usize>, Error>>()?;
    let mask = ProjectionMask::roots(builder.parquet_schema(), places);
    builder.with_projection(mask).build().map_err(|error| explain(file, error))
}

/// Where the column of a number is, or of a name where columns have no numbers.
fn place_of(schema: &Schema, wanted: i32, name: &str, file: &DataFile) -> Result<usize, Error> {
    let fields = || schema.fields().iter();
    let place = fields().position(|field| number(field) == Some(wanted));
    let place = place.or_else(|| fields().position(|field| number(field).is_none() && field.name() == name));
    place.ok_or_else(|| {
        Error::corrupt(file.path(), format!("it lacks the column `{name}` (field id {wanted})"))
    })
}

fn numbered_column(batch: &RecordBatch, wanted: i32, name: &str, file: &DataFile) -> Result<ArrayRef, Error> {
    Ok(Arc::clone(batch.column(place_of(batch.schema_ref(), wanted, name, file)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::arrow::arrow_reader::RowSelector;

    #[test]
    fn deleted_rows_are_left_out() {
        let selectors = |places: &[usize], rows| Vec::<RowSelector>::from(without(places, rows));
        assert_eq!(selectors(&[0], 3), [RowSelector::skip(1), RowSelector::select(2)]);
        assert_eq!(selectors(&[2], 3), [RowSelector::select(2), RowSelector::skip(1)]);
        assert_eq!(selectors(&[0, 1, 2], 3), [RowSelector::skip(3)]);
        let selectors = |places: &[usize], rows| Vec::<RowSelector>::from(only(places, rows));
        assert_eq!(selectors(&[0], 3), [RowSelector::select(1), RowSelector::skip(2)]);
        assert_eq!(selectors(&[1, 2], 3), [RowSelector::skip(1), RowSelector::select(2)]);
    }

    #[test]
    fn a_change_deletes_no_rows_of_later_files() {
        let mut deleted = DeletedPlaces::default();
        deleted.of_file.insert("a".to_owned(), vec![(1, 5), (9, 5), (1, 6)]);
        assert!(deleted.left("b", 1, 10).is_none());
        assert!(deleted.left("a", 7, 10).is_none());
        assert_eq!(deleted.left("a", 6, 10).unwrap().row_count(), 9);
        assert_eq!(deleted.left("a", 5, 10).unwrap().row_count(), 8);
        assert_eq!(deleted.left("a", 5, 5).unwrap().row_count(), 4);
    }
}
