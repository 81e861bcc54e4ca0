//! Rows that were deleted after their file was written: by their places, and by the values of some columns.

use super::columns::{LakeColumn, number};
use crate::Error;
use crate::file::DataFile;
use crate::parquet::{Chunks, explain};
use arrow::array::{ArrayRef, AsArray, RecordBatch};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, Int64Type, Schema};
use datafusion::common::ScalarValue;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReaderBuilder, RowSelection, RowSelector};
use std::collections::HashMap;
use std::sync::Arc;

/// Deleted rows of a table that are held in memory. More are refused: the table has to be compacted.
const MAX_DELETED: usize = 50_000_000;

/// Numbers of the columns of a file of deleted places, which the format reserves (specification, "Reserved Field IDs").
const FILE_PATH: i32 = 2_147_483_546;
const POSITION: i32 = 2_147_483_545;

/// Rows whose values in some columns are those of a row here have been deleted.
#[derive(Debug)]
pub(super) struct DeletedValues {
    /// Files of this number and later ones have rows that came afterwards.
    pub(super) sequence: i64,
    /// Only files of this partition are meant; of none, those of all.
    pub(super) partition: Option<(i32, Vec<ScalarValue>)>,
    /// Places of the columns in the table.
    pub(super) columns: Vec<usize>,
    /// Their values, in types and names of the table.
    pub(super) rows: RecordBatch,
}

/// Places of deleted rows by the file that they are of, each with the number of the change that deleted it.
#[derive(Debug, Default)]
pub(super) struct DeletedPlaces {
    of_file: HashMap<String, Vec<(u64, i64)>>,
    count: usize,
}

impl DeletedPlaces {
    /// Adds those that a file names.
    ///
    /// # Errors
    /// When it cannot be read, or there are more than memory is given to.
    pub(super) fn read(&mut self, file: &Arc<DataFile>, sequence: i64) -> Result<(), Error> {
        for batch in batches(file)? {
            let path = numbered_column(&batch, FILE_PATH, "file_path", file)?;
            let place = numbered_column(&batch, POSITION, "pos", file)?;
            let failed = |error| Error::corrupt(file.path(), error);
            let (path, place) =
                (cast(&path, &DataType::Utf8).map_err(failed)?, cast(&place, &DataType::Int64).map_err(failed)?);
            let places = place.as_primitive::<Int64Type>().iter();
            for (path, place) in path.as_string::<i32>().iter().zip(places) {
                let (Some(path), Some(place)) = (path, place.and_then(|place| u64::try_from(place).ok())) else {
                    return Err(Error::corrupt(file.path(), "a deleted row without its file or its place"));
                };
                self.count += 1;
                match self.of_file.get_mut(path) {
                    Some(places) => places.push((place, sequence)),
                    None => drop(self.of_file.insert(path.to_owned(), vec![(place, sequence)])),
                }
            }
            expect_room(self.count, file)?;
        }
        Ok(())
    }

    /// The rows of a file that are left; none where all are. A change deletes rows of files that came before it or with it.
    pub(super) fn left(&self, file: &str, sequence: i64, rows: usize) -> Option<RowSelection> {
        let deleted = self.of_file.get(file)?.iter().filter(|(_, by)| *by >= sequence);
        let mut places: Vec<usize> =
            deleted.filter_map(|(place, _)| usize::try_from(*place).ok()).filter(|place| *place < rows).collect();
        places.sort_unstable();
        places.dedup();
        (!places.is_empty()).then(|| without(&places, rows))
    }
}

/// All rows but those, which are sorted.
fn without(places: &[usize], rows: usize) -> RowSelection {
    let (mut selectors, mut next) = (Vec::new(), 0);
    for place in places {
        if *place > next {
            selectors.push(RowSelector::select(place - next));
        }
        selectors.push(RowSelector::skip(1));
        next = place + 1;
    }
    if rows > next {
        selectors.push(RowSelector::select(rows - next));
    }
    selectors.into()
}

/// The rows of a file of deleted values, with the columns of these numbers.
///
/// # Errors
/// When it cannot be read, or names columns that the table does not have.
pub(super) fn values(
    file: &Arc<DataFile>,
    numbers: &[i32],
    table: &[LakeColumn],
) -> Result<(Vec<usize>, RecordBatch), Error> {
    let place = |number: &i32| table.iter().position(|column| column.number == *number);
    let places: Option<Vec<usize>> = numbers.iter().map(place).collect();
    let Some(places) = places.filter(|places| !places.is_empty()) else {
        let detail = "it deletes rows by columns that are nested, or that the table has no more".to_owned();
        return Err(Error::Unsupported { path: file.path().to_path_buf(), detail });
    };
    let columns: Vec<&LakeColumn> = places.iter().filter_map(|place| table.get(*place)).collect();
    let schema = Arc::new(Schema::new(columns.iter().map(|column| Arc::clone(&column.field)).collect::<Vec<_>>()));
    let schema = Arc::new(Schema::new(
        schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect::<Vec<_>>(),
    ));
    let failed = |error| Error::corrupt(file.path(), error);
    let (mut fitted, mut count) = (Vec::new(), 0);
    for batch in batches(file)? {
        let of_column = |column: &&LakeColumn| {
            let found = numbered_column(&batch, column.number, column.field.name(), file)?;
            cast(&found, column.field.data_type()).map_err(failed)
        };
        let arrays = columns.iter().map(of_column).collect::<Result<Vec<ArrayRef>, Error>>()?;
        fitted.push(RecordBatch::try_new(Arc::clone(&schema), arrays).map_err(failed)?);
        count += batch.num_rows();
        expect_room(count, file)?;
    }
    Ok((places, concat_batches(&schema, &fitted).map_err(failed)?))
}

fn batches(file: &Arc<DataFile>) -> Result<Vec<RecordBatch>, Error> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(Chunks(Arc::clone(file)));
    let reader = builder.and_then(ParquetRecordBatchReaderBuilder::build).map_err(|error| explain(file, error))?;
    let read = reader.collect::<Result<_, _>>().map_err(|error| Error::corrupt(file.path(), error));
    file.close();
    read
}

fn numbered_column(batch: &RecordBatch, wanted: i32, name: &str, file: &DataFile) -> Result<ArrayRef, Error> {
    let schema = batch.schema();
    let fields = || schema.fields().iter();
    let place = fields().position(|field| number(field) == Some(wanted));
    let place = place.or_else(|| fields().position(|field| number(field).is_none() && field.name() == name));
    let missing = || Error::corrupt(file.path(), format!("it lacks the column `{name}` (number {wanted})"));
    place.map(|place| Arc::clone(batch.column(place))).ok_or_else(missing)
}

fn expect_room(count: usize, file: &DataFile) -> Result<(), Error> {
    if count <= MAX_DELETED {
        return Ok(());
    }
    let detail = format!("the table has more than {MAX_DELETED} deleted rows in its files: let its writer compact it");
    Err(Error::Unsupported { path: file.path().to_path_buf(), detail })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deleted_rows_are_left_out() {
        let selectors = |places: &[usize], rows| Vec::<RowSelector>::from(without(places, rows));
        assert_eq!(selectors(&[0], 3), [RowSelector::skip(1), RowSelector::select(2)]);
        assert_eq!(selectors(&[2], 3), [RowSelector::select(2), RowSelector::skip(1)]);
        assert_eq!(selectors(&[0, 1, 2], 3), [RowSelector::skip(3)]);
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
