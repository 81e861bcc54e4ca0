//! Files of rows and of models.

use super::catalog::{Known, KnownSegment};
use super::{Depth, Found};
use crate::Error;
use crate::durable::backup::{Stop, hashed};
use ::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use arrow::compute::can_cast_types;
use arrow::datatypes::SchemaRef;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::Path;
use std::sync::atomic::Ordering;

const OF_A_BACKUP: &str = "stop the server and copy the file back from a backup under the same name: files never change, so any backup that has it will do";

/// Looks at every file that the catalog names and that is here; others may be in the store.
pub(super) fn look(
    (folder, store): (&Path, Option<&str>),
    known: &Known,
    (depth, stop): (Depth, &Stop),
    found: &mut Found,
) -> Result<(), Error> {
    let mut seen = BTreeSet::new();
    let mut elsewhere = BTreeMap::new();
    for segment in &known.segments {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let name = format!("tables/{}/{}", segment.table, segment.file);
        if store.is_some() && is_missing(&folder.join(&name)) {
            elsewhere.insert(name, segment.bytes);
            continue;
        }
        let table = known.tables.get(&segment.table);
        let columns = table.filter(|_| segment.current).and_then(|table| table.columns.as_ref());
        // A file may be of several segments; what is wrong with it is told once.
        if seen.insert((name.clone(), segment.rows, segment.bytes, segment.current))
            && let Err(problem) = file(&folder.join(&name), segment, columns, depth)
        {
            let of = table.map_or(String::new(), |table| format!(" (table `{}`)", table.name));
            let fault = format!("{problem}{of}");
            if !found.faults.iter().any(|known| known.place == name && known.problem == fault) {
                found.fault(name, fault, OF_A_BACKUP);
            }
        }
    }
    let names: BTreeSet<&String> = seen.iter().map(|(name, ..)| name).collect();
    found.files += names.len() + elsewhere.len() + known.models.len();
    if let (Some(store), false) = (store, elsewhere.is_empty()) {
        found.in_store = elsewhere.len();
        let (files, bytes) = (elsewhere.len(), elsewhere.values().sum::<u64>());
        found.remarks.push(format!(
            "{files} files of tables, {bytes} bytes, are only in `{store}`, and were not looked at"
        ));
    }
    known.models.iter().try_for_each(|hash| model(folder, hash, stop, found))
}

fn is_missing(path: &Path) -> bool {
    fs::symlink_metadata(path).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

fn file(
    path: &Path,
    segment: &KnownSegment,
    columns: Option<&SchemaRef>,
    depth: Depth,
) -> Result<(), String> {
    let about = fs::symlink_metadata(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "it is missing".to_owned(),
        _ => error.to_string(),
    })?;
    if !about.is_file() {
        return Err("it is no file".to_owned());
    }
    if about.len() != segment.bytes {
        return Err(format!("it has {} bytes, {} were written", about.len(), segment.bytes));
    }
    let opened = File::open(path).map_err(|error| error.to_string())?;
    let reader = ParquetRecordBatchReaderBuilder::try_new(opened)
        .map_err(|error| format!("its footer cannot be read: {error}"))?;
    let rows = reader.metadata().file_metadata().num_rows().cast_unsigned();
    if rows != segment.rows {
        return Err(format!("it has {rows} rows, {} were written", segment.rows));
    }
    if let Some(columns) = columns {
        for field in reader.schema().fields() {
            let column = columns.field_with_name(field.name()).ok();
            if let Some(column) =
                column.filter(|column| !can_cast_types(field.data_type(), column.data_type()))
            {
                let (name, theirs, ours) = (field.name(), field.data_type(), column.data_type());
                return Err(format!("its column `{name}` is of type {theirs}, that of the table of {ours}"));
            }
        }
    }
    if depth == Depth::Rows {
        let mut read = 0;
        for batch in reader.build().map_err(|error| format!("its rows cannot be read: {error}"))? {
            read += batch.map_err(|error| format!("its rows cannot be read: {error}"))?.num_rows() as u64;
        }
        if read != rows {
            return Err(format!("{read} of its {rows} rows can be read"));
        }
    }
    Ok(())
}

fn model(folder: &Path, hash: &str, stop: &Stop, found: &mut Found) -> Result<(), Error> {
    let name = format!("models/{hash}.model");
    let path = folder.join(&name);
    let problem = match hashed(&path, stop) {
        Ok(listed) if listed.sha256 == hash => return Ok(()),
        Ok(_) => "its bytes are not those that were written".to_owned(),
        Err(Error::Interrupted) => return Err(Error::Interrupted),
        Err(_) if fs::symlink_metadata(&path).is_err() => "it is missing".to_owned(),
        Err(error) => error.to_string(),
    };
    found.fault(
        name,
        problem,
        "CREATE OR REPLACE the model from its own file, or copy this one back from a backup",
    );
    Ok(())
}
