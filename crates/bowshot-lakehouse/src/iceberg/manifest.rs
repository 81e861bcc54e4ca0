//! Manifest lists and manifests: Avro files that name the data files of a state of a table, and the files of deleted rows
//! (specification, "Manifests" and "Snapshots").

use super::write::{Metrics, WrittenFile};
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StructArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use bowshot_formats::avro;
use bowshot_formats::data_file::DataFile;
use bowshot_object_store::Error;
use datafusion::common::ScalarValue;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

/// An entry that says that a file was removed.
const REMOVED: i64 = 2;

#[derive(Debug)]
pub(super) struct Manifest {
    pub(super) path: String,
    /// By which specification its files are grouped.
    pub(super) spec: i32,
    /// Of the change that has written it.
    pub(super) sequence: i64,
    /// The number of the first row of its files, since version 3.
    pub(super) first_row: Option<i64>,
}

/// A manifest with all that its list says of it, so that another list can say the same.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ManifestFile {
    pub(super) path: String,
    pub(super) length: i64,
    pub(super) spec: i64,
    pub(super) content: i64,
    pub(super) sequence: i64,
    pub(super) min_sequence: i64,
    pub(super) snapshot: i64,
    /// Those that were added, that there were before, and that were deleted.
    pub(super) files: [i64; 3],
    pub(super) rows: [i64; 3],
    pub(super) partitions: Option<Vec<FieldSummary>>,
    pub(super) key: Option<Vec<u8>>,
    /// The number of the first row of its files, since version 3.
    pub(super) first_row: Option<i64>,
}

/// What the files of a manifest have of one value that they are partitioned by.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FieldSummary {
    pub(super) has_null: bool,
    pub(super) has_nan: Option<bool>,
    pub(super) lower: Option<Vec<u8>>,
    pub(super) upper: Option<Vec<u8>>,
}

/// A data file with all that its manifest says of it, so that another manifest can say the same.
#[derive(Debug)]
pub(super) struct WholeEntry {
    /// That has added it.
    pub(super) snapshot: i64,
    pub(super) sequence: i64,
    pub(super) file_sequence: i64,
    pub(super) file: WrittenFile,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    Data,
    DeletedPlaces,
    DeletedValues,
}

/// A file that counts.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) content: Content,
    pub(super) path: String,
    pub(super) format: String,
    pub(super) spec: i32,
    pub(super) partition: Vec<ScalarValue>,
    pub(super) sequence: i64,
    /// Numbers of the columns whose values say which rows are deleted.
    pub(super) equality: Vec<i32>,
    /// Set for a part of a file that says which rows of one data file are deleted.
    pub(super) vector: Option<Vector>,
    /// The number of its first row, since version 3.
    pub(super) first_row: Option<i64>,
}

/// First row numbers: a file without one continues behind the file before it (specification, "First Row ID Inheritance").
struct FirstRows(Option<i64>);

impl FirstRows {
    fn next(&mut self, own: Option<i64>, rows: Option<i64>) -> Option<i64> {
        if own.is_some() {
            return own;
        }
        let first = self.0?;
        self.0 = Some(first.saturating_add(rows.unwrap_or(0)));
        Some(first)
    }
}

/// A deletion vector: of which data file, and where in its own.
#[derive(Debug)]
pub(super) struct Vector {
    pub(super) of: String,
    pub(super) offset: i64,
    pub(super) size: i64,
}

/// The manifests of a list, of which there are at most so many.
pub(super) fn list(file: &Arc<DataFile>, most: usize) -> Result<Vec<Manifest>, Error> {
    collected(file, most, |table, row| {
        table.find("partition_spec_id")?;
        Ok(Some(Manifest {
            path: table.text("manifest_path", row)?,
            spec: i32::try_from(table.whole("partition_spec_id", row)?.unwrap_or(0)).unwrap_or(-1),
            // Version 1 has no such numbers, and no deletes.
            sequence: table.whole("sequence_number", row)?.unwrap_or(0),
            first_row: table.whole("first_row_id", row)?,
        }))
    })
}

/// The same with all that the list says, which has to say how many files there are.
pub(super) fn whole_list(file: &Arc<DataFile>, most: usize) -> Result<Vec<ManifestFile>, Error> {
    collected(file, most, |table, row| table.manifest(row).map(Some))
}

/// The files of a manifest that count, of which there are at most so many.
pub(super) fn entries(file: &Arc<DataFile>, manifest: &Manifest, most: usize) -> Result<Vec<Entry>, Error> {
    let mut first_rows = FirstRows(manifest.first_row);
    collected(file, most, |table, row| {
        if table.is_removed(row)? {
            return Ok(None);
        }
        let files = table.nested("data_file")?;
        let content = match files.whole("content", row)?.unwrap_or(0) {
            0 => Content::Data,
            1 => Content::DeletedPlaces,
            2 => Content::DeletedValues,
            other => {
                return Err(Error::corrupt(table.path, format!("unknown content type {other}")));
            }
        };
        let (first_row, rows) = (files.whole("first_row_id", row)?, files.whole("record_count", row)?);
        Ok(Some(Entry {
            content,
            path: files.text("file_path", row)?,
            format: files.text("file_format", row)?,
            spec: manifest.spec,
            partition: files.partition(row)?,
            // What a new manifest adds has the number of the manifest, which was not known when it was written.
            sequence: table.whole("sequence_number", row)?.unwrap_or(manifest.sequence),
            equality: files.numbers("equality_ids", row)?,
            vector: files.vector(row)?,
            first_row: first_rows.next(first_row, rows),
        }))
    })
}

/// The data files of a manifest that count, with all that it says of them.
pub(super) fn whole_entries(
    file: &Arc<DataFile>,
    manifest: &ManifestFile,
    most: usize,
) -> Result<Vec<WholeEntry>, Error> {
    let mut first_rows = FirstRows(manifest.first_row);
    collected(file, most, |table, row| {
        if table.is_removed(row)? {
            return Ok(None);
        }
        let mut file = table.nested("data_file")?.written_file(row)?;
        file.first_row = first_rows.next(file.first_row, Some(file.rows));
        // What a new manifest adds has the numbers of the manifest, which were not known when it was written.
        Ok(Some(WholeEntry {
            snapshot: table.whole("snapshot_id", row)?.unwrap_or(manifest.snapshot),
            sequence: table.whole("sequence_number", row)?.unwrap_or(manifest.sequence),
            file_sequence: table.whole("file_sequence_number", row)?.unwrap_or(manifest.sequence),
            file,
        }))
    })
}

/// What the rows of an Avro file are, but for those that do not count.
fn collected<T>(
    file: &Arc<DataFile>,
    most: usize,
    mut of_row: impl FnMut(&Columns<'_>, usize) -> Result<Option<T>, Error>,
) -> Result<Vec<T>, Error> {
    let mut all = Vec::new();
    for batch in rows(file, most)? {
        let table = Columns { columns: StructArray::from(batch), path: file.path() };
        for row in 0..table.columns.len() {
            all.extend(of_row(&table, row)?);
        }
    }
    Ok(all)
}

fn rows(file: &Arc<DataFile>, most: usize) -> Result<Vec<RecordBatch>, Error> {
    // A file of noise can make a reader panic; that is this table's problem and nobody else's.
    let read = catch_unwind(AssertUnwindSafe(|| avro::all_rows(file, most)))
        .unwrap_or_else(|_| Err(Error::corrupt(file.path(), "it cannot be decoded")))
        .map_err(|error| file.fault().cloned().unwrap_or(error));
    file.close();
    read
}

struct Columns<'a> {
    columns: StructArray,
    path: &'a Path,
}

impl Columns<'_> {
    fn find(&self, name: &str) -> Result<&ArrayRef, Error> {
        let missing = || Error::corrupt(self.path, format!("it lacks the field `{name}`"));
        self.columns.column_by_name(name).ok_or_else(missing)
    }

    fn nested(&self, name: &str) -> Result<Columns<'_>, Error> {
        let found = self.find(name)?.as_struct_opt().cloned();
        let strange = || Error::corrupt(self.path, format!("its field `{name}` is not a record"));
        Ok(Columns { columns: found.ok_or_else(strange)?, path: self.path })
    }

    fn missing(&self, name: &str) -> Error {
        Error::corrupt(self.path, format!("its field `{name}` has no value"))
    }

    /// The value of a field as an array of one, which older versions may not have.
    fn optional(&self, name: &str, row: usize, data_type: &DataType) -> Result<Option<ArrayRef>, Error> {
        let Some(column) = self.columns.column_by_name(name) else { return Ok(None) };
        let found = cast(&column.slice(row, 1), data_type)
            .map_err(|error| Error::corrupt(self.path, format!("its field `{name}`: {error}")))?;
        Ok(Some(found).filter(|value| value.is_valid(0)))
    }

    fn whole(&self, name: &str, row: usize) -> Result<Option<i64>, Error> {
        let value = self.optional(name, row, &DataType::Int64)?;
        Ok(value.map(|value| value.as_primitive::<Int64Type>().value(0)))
    }

    fn bytes(&self, name: &str, row: usize) -> Result<Option<Vec<u8>>, Error> {
        let value = self.optional(name, row, &DataType::Binary)?;
        Ok(value.map(|value| value.as_binary::<i32>().value(0).to_vec()))
    }

    fn truth(&self, name: &str, row: usize) -> Result<Option<bool>, Error> {
        Ok(self.optional(name, row, &DataType::Boolean)?.map(|value| value.as_boolean().value(0)))
    }

    fn optional_text(&self, name: &str, row: usize) -> Result<Option<String>, Error> {
        let value = self.optional(name, row, &DataType::Utf8)?;
        Ok(value.map(|value| value.as_string::<i32>().value(0).to_owned()))
    }

    fn text(&self, name: &str, row: usize) -> Result<String, Error> {
        self.find(name)?;
        self.optional_text(name, row)?.ok_or_else(|| self.missing(name))
    }

    fn needed(&self, name: &str, row: usize) -> Result<i64, Error> {
        self.find(name)?;
        self.whole(name, row)?.ok_or_else(|| self.missing(name))
    }

    fn is_removed(&self, row: usize) -> Result<bool, Error> {
        self.find("status")?;
        Ok(self.whole("status", row)? == Some(REMOVED))
    }

    fn manifest(&self, row: usize) -> Result<ManifestFile, Error> {
        // Lists of before version 2 call files data files.
        let count = |name: &str, before: &str| -> Result<i64, Error> {
            match self.whole(name, row)? {
                Some(count) => Ok(count),
                None => self.whole(before, row)?.ok_or_else(|| self.missing(name)),
            }
        };
        Ok(ManifestFile {
            path: self.text("manifest_path", row)?,
            length: self.needed("manifest_length", row)?,
            spec: self.needed("partition_spec_id", row)?,
            content: self.whole("content", row)?.unwrap_or(0),
            sequence: self.whole("sequence_number", row)?.unwrap_or(0),
            min_sequence: self.whole("min_sequence_number", row)?.unwrap_or(0),
            snapshot: self.needed("added_snapshot_id", row)?,
            files: [
                count("added_files_count", "added_data_files_count")?,
                count("existing_files_count", "existing_data_files_count")?,
                count("deleted_files_count", "deleted_data_files_count")?,
            ],
            rows: [
                self.needed("added_rows_count", row)?,
                self.needed("existing_rows_count", row)?,
                self.needed("deleted_rows_count", row)?,
            ],
            partitions: self.summaries(row)?,
            key: self.bytes("key_metadata", row)?,
            first_row: self.whole("first_row_id", row)?,
        })
    }

    fn written_file(&self, row: usize) -> Result<WrittenFile, Error> {
        let counts = |name: &str| self.map(name, row, |pairs, pair| pairs.whole("value", pair));
        let bounds = |name: &str| self.map(name, row, |pairs, pair| pairs.bytes("value", pair));
        Ok(WrittenFile {
            content: self.whole("content", row)?.unwrap_or(0),
            path: self.text("file_path", row)?,
            format: self.text("file_format", row)?,
            partition: self.partition(row)?,
            rows: self.needed("record_count", row)?,
            bytes: self.needed("file_size_in_bytes", row)?,
            metrics: Metrics {
                sizes: counts("column_sizes")?,
                values: counts("value_counts")?,
                nulls: counts("null_value_counts")?,
                nans: counts("nan_value_counts")?,
                lower: bounds("lower_bounds")?,
                upper: bounds("upper_bounds")?,
            },
            key: self.bytes("key_metadata", row)?,
            equality: self.numbers("equality_ids", row)?,
            sort_order: self.whole("sort_order_id", row)?,
            first_row: self.whole("first_row_id", row)?,
            referenced: self.optional_text("referenced_data_file", row)?,
            range: self.range(row)?,
        })
    }

    /// A map by numbers of columns; an empty one where it is not there.
    fn map<V>(
        &self,
        name: &str,
        row: usize,
        value: impl Fn(&Columns<'_>, usize) -> Result<Option<V>, Error>,
    ) -> Result<BTreeMap<i32, V>, Error> {
        let mut map = BTreeMap::new();
        let Some(column) = self.columns.column_by_name(name).filter(|column| column.is_valid(row)) else {
            return Ok(map);
        };
        let strange = || Error::corrupt(self.path, format!("its field `{name}` is not a map"));
        let pairs = column.as_list_opt::<i32>().map(|list| list.value(row)).ok_or_else(strange)?;
        let columns = pairs.as_struct_opt().cloned().ok_or_else(strange)?;
        let pairs = Columns { columns, path: self.path };
        for pair in 0..pairs.columns.len() {
            pairs.find("key")?;
            pairs.find("value")?;
            let (key, value) = (pairs.whole("key", pair)?, value(&pairs, pair)?);
            if let (Some(key), Some(value)) = (key.and_then(|key| i32::try_from(key).ok()), value) {
                map.insert(key, value);
            }
        }
        Ok(map)
    }

    fn summaries(&self, row: usize) -> Result<Option<Vec<FieldSummary>>, Error> {
        let column = self.columns.column_by_name("partitions");
        let list = column.and_then(|column| column.as_list_opt::<i32>());
        let Some(list) = list.filter(|list| list.is_valid(row)) else { return Ok(None) };
        let Some(columns) = list.value(row).as_struct_opt().cloned() else { return Ok(None) };
        let summaries = Columns { columns, path: self.path };
        let summary = |row| -> Result<FieldSummary, Error> {
            Ok(FieldSummary {
                has_null: summaries.truth("contains_null", row)?.unwrap_or(true),
                has_nan: summaries.truth("contains_nan", row)?,
                lower: summaries.bytes("lower_bound", row)?,
                upper: summaries.bytes("upper_bound", row)?,
            })
        };
        (0..summaries.columns.len()).map(summary).collect::<Result<Vec<_>, Error>>().map(Some)
    }

    fn range(&self, row: usize) -> Result<Option<(i64, i64)>, Error> {
        let length = self.whole("content_size_in_bytes", row)?;
        Ok(self.whole("content_offset", row)?.zip(length))
    }

    fn vector(&self, row: usize) -> Result<Option<Vector>, Error> {
        let Some((offset, size)) = self.range(row)? else { return Ok(None) };
        Ok(Some(Vector { of: self.text("referenced_data_file", row)?, offset, size }))
    }

    fn numbers(&self, name: &str, row: usize) -> Result<Vec<i32>, Error> {
        let Some(column) = self.columns.column_by_name(name) else { return Ok(Vec::new()) };
        let Some(list) = column.as_list_opt::<i32>().filter(|list| list.is_valid(row)) else {
            return Ok(Vec::new());
        };
        let failed = |error| Error::corrupt(self.path, format!("its field `{name}`: {error}"));
        let values = cast(&list.value(row), &DataType::Int64).map_err(failed)?;
        let values = values.as_primitive::<Int64Type>().iter().flatten();
        values
            .map(|number| {
                i32::try_from(number).map_err(|_| Error::corrupt(self.path, "a number of no column"))
            })
            .collect()
    }

    fn partition(&self, row: usize) -> Result<Vec<ScalarValue>, Error> {
        // Of a table without partitions it has no fields, and is not there.
        if self.columns.column_by_name("partition").is_none() {
            return Ok(Vec::new());
        }
        let partition = self.nested("partition")?;
        let value = |column: &ArrayRef| {
            ScalarValue::try_from_array(column, row).map_err(|error| Error::corrupt(self.path, error))
        };
        partition.columns.columns().iter().map(value).collect()
    }
}
