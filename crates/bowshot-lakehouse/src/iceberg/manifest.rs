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

/// A manifest, as the list names it.
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

/// What a file holds.
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
    /// Values of the fields of the specification.
    pub(super) partition: Vec<ScalarValue>,
    pub(super) sequence: i64,
    /// Numbers of the columns whose values say which rows are deleted.
    pub(super) equality: Vec<i32>,
    /// Set for a part of a file that says which rows of one data file are deleted.
    pub(super) vector: Option<Vector>,
    /// The number of its first row, since version 3.
    pub(super) first_row: Option<i64>,
}

/// Numbers of the first rows of the files of a manifest: those of a file that says none come behind those of the files before it
/// (specification, "First Row ID Inheritance").
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
    let (mut manifests, path) = (Vec::new(), file.path());
    for batch in rows(file, most)? {
        let table = Columns { columns: StructArray::from(batch), path };
        for row in 0..table.columns.len() {
            manifests.push(Manifest {
                path: table.text("manifest_path", row)?,
                spec: i32::try_from(table.whole("partition_spec_id", row)?.unwrap_or(0)).unwrap_or(-1),
                // Version 1 has no such numbers, and no deletes.
                sequence: table.optional("sequence_number", row)?.unwrap_or(0),
                first_row: table.optional("first_row_id", row)?,
            });
        }
    }
    Ok(manifests)
}

/// The same with all that the list says.
pub(super) fn whole_list(file: &Arc<DataFile>, most: usize) -> Result<Vec<ManifestFile>, Error> {
    let (mut manifests, path) = (Vec::new(), file.path());
    for batch in rows(file, most)? {
        let table = Columns { columns: StructArray::from(batch), path };
        for row in 0..table.columns.len() {
            manifests.push(table.manifest(row)?);
        }
    }
    Ok(manifests)
}

/// The files of a manifest that count, of which there are at most so many.
pub(super) fn entries(file: &Arc<DataFile>, manifest: &Manifest, most: usize) -> Result<Vec<Entry>, Error> {
    let (mut entries, path) = (Vec::new(), file.path());
    let mut first_rows = FirstRows(manifest.first_row);
    for batch in rows(file, most)? {
        let table = Columns { columns: StructArray::from(batch), path };
        let files = table.nested("data_file")?;
        for row in 0..table.columns.len() {
            if table.whole("status", row)? == Some(REMOVED) {
                continue;
            }
            let content = match files.optional("content", row)?.unwrap_or(0) {
                0 => Content::Data,
                1 => Content::DeletedPlaces,
                2 => Content::DeletedValues,
                other => return Err(Error::corrupt(path, format!("content of the unknown kind {other}"))),
            };
            entries.push(Entry {
                content,
                path: files.text("file_path", row)?,
                format: files.text("file_format", row)?,
                spec: manifest.spec,
                partition: files.partition(row)?,
                // What a new manifest adds has the number of the manifest, which was not known when it was written.
                sequence: table.optional("sequence_number", row)?.unwrap_or(manifest.sequence),
                equality: files.numbers("equality_ids", row)?,
                vector: files.vector(row)?,
                first_row: first_rows
                    .next(files.optional("first_row_id", row)?, files.optional("record_count", row)?),
            });
        }
    }
    Ok(entries)
}

/// The data files of a manifest that count, with all that it says of them.
pub(super) fn whole_entries(
    file: &Arc<DataFile>,
    manifest: &ManifestFile,
    most: usize,
) -> Result<Vec<WholeEntry>, Error> {
    let (mut entries, path) = (Vec::new(), file.path());
    let mut first_rows = FirstRows(manifest.first_row);
    for batch in rows(file, most)? {
        let table = Columns { columns: StructArray::from(batch), path };
        let files = table.nested("data_file")?;
        for row in 0..table.columns.len() {
            if table.whole("status", row)? != Some(REMOVED) {
                let mut file = files.written_file(row)?;
                file.first_row = first_rows.next(file.first_row, Some(file.rows));
                // What a new manifest adds has the numbers of the manifest, which were not known when it was written.
                entries.push(WholeEntry {
                    snapshot: table.optional("snapshot_id", row)?.unwrap_or(manifest.snapshot),
                    sequence: table.optional("sequence_number", row)?.unwrap_or(manifest.sequence),
                    file_sequence: table.optional("file_sequence_number", row)?.unwrap_or(manifest.sequence),
                    file,
                });
            }
        }
    }
    Ok(entries)
}

/// The batches of an Avro file.
fn rows(file: &Arc<DataFile>, most: usize) -> Result<Vec<RecordBatch>, Error> {
    // A file of noise can make a reader panic; that is this table's problem and nobody else's.
    let read = catch_unwind(AssertUnwindSafe(|| avro::all_rows(file, most)))
        .unwrap_or_else(|_| Err(Error::corrupt(file.path(), "it cannot be decoded")))
        .map_err(|error| file.fault().cloned().unwrap_or(error));
    file.close();
    read
}

/// The columns of a batch, or of a record within.
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
        let strange = || Error::corrupt(self.path, format!("its field `{name}` is no record"));
        Ok(Columns { columns: found.ok_or_else(strange)?, path: self.path })
    }

    fn value(&self, name: &str, row: usize, data_type: &DataType) -> Result<ArrayRef, Error> {
        let found = self.find(name)?.slice(row, 1);
        cast(&found, data_type)
            .map_err(|error| Error::corrupt(self.path, format!("its field `{name}`: {error}")))
    }

    fn whole(&self, name: &str, row: usize) -> Result<Option<i64>, Error> {
        let value = self.value(name, row, &DataType::Int64)?;
        let value = value.as_primitive::<Int64Type>();
        Ok(value.is_valid(0).then(|| value.value(0)))
    }

    /// The same of a field that older versions do not have.
    fn optional(&self, name: &str, row: usize) -> Result<Option<i64>, Error> {
        match self.columns.column_by_name(name) {
            Some(_) => self.whole(name, row),
            None => Ok(None),
        }
    }

    fn text(&self, name: &str, row: usize) -> Result<String, Error> {
        let value = self.value(name, row, &DataType::Utf8)?;
        let value = value.as_string::<i32>();
        let missing = || Error::corrupt(self.path, format!("its field `{name}` has no value"));
        value.is_valid(0).then(|| value.value(0).to_owned()).ok_or_else(missing)
    }

    fn optional_text(&self, name: &str, row: usize) -> Result<Option<String>, Error> {
        match self.columns.column_by_name(name) {
            Some(column) if column.is_valid(row) => self.text(name, row).map(Some),
            _ => Ok(None),
        }
    }

    fn bytes(&self, name: &str, row: usize) -> Result<Option<Vec<u8>>, Error> {
        if self.columns.column_by_name(name).is_none() {
            return Ok(None);
        }
        let value = self.value(name, row, &DataType::Binary)?;
        let value = value.as_binary::<i32>();
        Ok(value.is_valid(0).then(|| value.value(0).to_vec()))
    }

    fn truth(&self, name: &str, row: usize) -> Result<Option<bool>, Error> {
        if self.columns.column_by_name(name).is_none() {
            return Ok(None);
        }
        let value = self.value(name, row, &DataType::Boolean)?;
        let value = value.as_boolean();
        Ok(value.is_valid(0).then(|| value.value(0)))
    }

    fn manifest(&self, row: usize) -> Result<ManifestFile, Error> {
        let missing = |name: &str| Error::corrupt(self.path, format!("its field `{name}` has no value"));
        let needed =
            |name: &str| -> Result<i64, Error> { self.whole(name, row)?.ok_or_else(|| missing(name)) };
        // Lists of before version 2 call files data files.
        let count = |name: &str, before: &str| -> Result<i64, Error> {
            match self.optional(name, row)? {
                Some(count) => Ok(count),
                None => self.optional(before, row)?.ok_or_else(|| missing(name)),
            }
        };
        Ok(ManifestFile {
            path: self.text("manifest_path", row)?,
            length: needed("manifest_length")?,
            spec: needed("partition_spec_id")?,
            content: self.optional("content", row)?.unwrap_or(0),
            sequence: self.optional("sequence_number", row)?.unwrap_or(0),
            min_sequence: self.optional("min_sequence_number", row)?.unwrap_or(0),
            snapshot: needed("added_snapshot_id")?,
            files: [
                count("added_files_count", "added_data_files_count")?,
                count("existing_files_count", "existing_data_files_count")?,
                count("deleted_files_count", "deleted_data_files_count")?,
            ],
            rows: [
                needed("added_rows_count")?,
                needed("existing_rows_count")?,
                needed("deleted_rows_count")?,
            ],
            partitions: self.summaries(row)?,
            key: self.bytes("key_metadata", row)?,
            first_row: self.optional("first_row_id", row)?,
        })
    }

    fn written_file(&self, row: usize) -> Result<WrittenFile, Error> {
        let missing = |name: &str| Error::corrupt(self.path, format!("its field `{name}` has no value"));
        let range = (self.optional("content_offset", row)?, self.optional("content_size_in_bytes", row)?);
        Ok(WrittenFile {
            content: self.optional("content", row)?.unwrap_or(0),
            path: self.text("file_path", row)?,
            format: self.text("file_format", row)?,
            partition: self.partition(row)?,
            rows: self.whole("record_count", row)?.ok_or_else(|| missing("record_count"))?,
            bytes: self.whole("file_size_in_bytes", row)?.ok_or_else(|| missing("file_size_in_bytes"))?,
            metrics: Metrics {
                sizes: self.counts("column_sizes", row)?,
                values: self.counts("value_counts", row)?,
                nulls: self.counts("null_value_counts", row)?,
                nans: self.counts("nan_value_counts", row)?,
                lower: self.bounds("lower_bounds", row)?,
                upper: self.bounds("upper_bounds", row)?,
            },
            key: self.bytes("key_metadata", row)?,
            equality: self.numbers("equality_ids", row)?,
            sort_order: self.optional("sort_order_id", row)?,
            first_row: self.optional("first_row_id", row)?,
            referenced: self.optional_text("referenced_data_file", row)?,
            range: range.0.zip(range.1),
        })
    }

    /// The pairs of a map by numbers of columns; none where it is not there.
    fn pairs(&self, name: &str, row: usize) -> Result<Option<Columns<'_>>, Error> {
        let Some(column) = self.columns.column_by_name(name).filter(|column| column.is_valid(row)) else {
            return Ok(None);
        };
        let strange = || Error::corrupt(self.path, format!("its field `{name}` is no map"));
        let pairs = column.as_list_opt::<i32>().map(|list| list.value(row)).ok_or_else(strange)?;
        let columns = pairs.as_struct_opt().cloned().ok_or_else(strange)?;
        Ok(Some(Columns { columns, path: self.path }))
    }

    fn counts(&self, name: &str, row: usize) -> Result<BTreeMap<i32, i64>, Error> {
        let mut counts = BTreeMap::new();
        let Some(pairs) = self.pairs(name, row)? else { return Ok(counts) };
        for pair in 0..pairs.columns.len() {
            let (key, value) = (pairs.whole("key", pair)?, pairs.whole("value", pair)?);
            if let (Some(key), Some(value)) = (key.and_then(|key| i32::try_from(key).ok()), value) {
                counts.insert(key, value);
            }
        }
        Ok(counts)
    }

    fn bounds(&self, name: &str, row: usize) -> Result<BTreeMap<i32, Vec<u8>>, Error> {
        let mut bounds = BTreeMap::new();
        let Some(pairs) = self.pairs(name, row)? else { return Ok(bounds) };
        for pair in 0..pairs.columns.len() {
            let (key, value) = (pairs.whole("key", pair)?, pairs.bytes("value", pair)?);
            if let (Some(key), Some(value)) = (key.and_then(|key| i32::try_from(key).ok()), value) {
                bounds.insert(key, value);
            }
        }
        Ok(bounds)
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

    fn vector(&self, row: usize) -> Result<Option<Vector>, Error> {
        let (offset, size) =
            (self.optional("content_offset", row)?, self.optional("content_size_in_bytes", row)?);
        match (offset, size) {
            (Some(offset), Some(size)) => {
                Ok(Some(Vector { of: self.text("referenced_data_file", row)?, offset, size }))
            }
            _ => Ok(None),
        }
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
