//! Rows that are in the catalog itself, and places in files that it has deleted there: what was written in small pieces and is not
//! in a file yet (specification, "Data Inlining").

use super::super::columns::LakeColumn;
use super::catalog::{MAX_TEXT, State, damaged};
use super::types;
use arrow::array::{ArrayRef, BinaryBuilder, BooleanArray, FixedSizeBinaryBuilder, RecordBatch, StringArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, SchemaRef};
use bowshot_api::ErrorKind;
use bowshot_kernels::nan::with_one_nan;
use bowshot_object_store::Error;
use rusqlite::Row;
use rusqlite::types::{Value, ValueRef};
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use uuid::Uuid;

/// Rows of one table in its catalog, and their bytes; more are refused.
const MAX_ROWS: usize = 1_000_000;
const MAX_BYTES: usize = 64 << 20;
/// Such tables of one table, and places that it has deleted.
const MAX_TABLES: usize = 10_000;
const MAX_PLACES: usize = 10_000_000;

const HINT: &str = "write them to files in DuckDB: `CALL ducklake_flush_inlined_data('lake')`";

/// Rows that were written while a table had the same columns.
#[derive(Clone)]
pub(super) struct Inlined {
    /// The numbers of their columns, and the types that these had then.
    columns: Vec<(i64, String)>,
    rows: Vec<Vec<Value>>,
    /// What tells the rows from others, also when they have been forgotten.
    digest: [u8; 32],
}

impl Inlined {
    /// The rows are large, and needed once.
    pub(super) fn forget_rows(&mut self) {
        self.rows = Vec::new();
    }
}

impl PartialEq for Inlined {
    fn eq(&self, other: &Self) -> bool {
        self.columns == other.columns && self.digest == other.digest
    }
}

/// Without the rows: versions of tables are made of it.
impl fmt::Debug for Inlined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Inlined").field(&self.columns).field(&self.digest).finish()
    }
}

/// The rows of a table at a snapshot.
pub(super) fn tables(state: &State<'_>, (table, snapshot): (i64, i64)) -> Result<Vec<Inlined>, Error> {
    let sql = format!(
        "SELECT substr(table_name, 1, {MAX_TEXT}) FROM ducklake_inlined_data_tables WHERE table_id = ?1"
    );
    let mut names: Vec<String> = state.rows(&sql, &[table], MAX_TABLES, |row| row.get(0))?;
    names.sort_unstable();
    names.dedup();
    let mut all = Vec::new();
    let mut left = (MAX_ROWS, MAX_BYTES);
    for name in names {
        let begin = format!("ducklake_inlined_data_{table}_");
        let is_own = name
            .strip_prefix(&begin)
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()));
        if !is_own || !state.has_table(&name)? {
            return Err(damaged(state.path, format!("it has no inlined data table {name:?}")));
        }
        all.extend(rows(state, (&name, table), snapshot, &mut left)?);
    }
    Ok(all)
}

/// Places of deleted rows with the numbers of their files.
pub(super) fn deleted(state: &State<'_>, (table, snapshot): (i64, i64)) -> Result<Vec<(i64, i64)>, Error> {
    let name = format!("ducklake_inlined_delete_{table}");
    if !state.has_table(&name)? {
        return Ok(Vec::new());
    }
    let sql = format!("SELECT file_id, row_id FROM {name} WHERE begin_snapshot <= ?1");
    state.rows(&sql, &[snapshot], MAX_PLACES, |row| Ok((row.get(0)?, row.get(1)?)))
}

fn rows(
    state: &State<'_>,
    (name, table): (&str, i64),
    snapshot: i64,
    left: &mut (usize, usize),
) -> Result<Option<Inlined>, Error> {
    let names = state.columns(name)?;
    // Version 1.1 has put a word before them, since tables may have columns of these names.
    let is_system = |(name, wanted): (&String, &&str)| name.ends_with(wanted);
    let (Some(system), Some(columns)) = (names.get(..3), names.get(3..)) else {
        return Err(damaged(state.path, format!("its table `{name}` lacks columns")));
    };
    if !system.iter().zip(&["row_id", "begin_snapshot", "end_snapshot"]).all(is_system) {
        return Err(unsupported(state.path, format!("unknown layout of its table `{name}`")));
    }
    let [_, begin, end] =
        [0, 1, 2].map(|at: usize| system.get(at).map(|name| quoted(name)).unwrap_or_default());
    let at = format!("{begin} <= ?1 AND ({end} IS NULL OR {end} > ?1)");
    let sql = format!("SELECT min({begin}), max({begin}) FROM {name} WHERE {at}");
    let written: Vec<(Option<i64>, Option<i64>)> =
        state.rows(&sql, &[snapshot], 1, |row| Ok((row.get(0)?, row.get(1)?)))?;
    let Some((Some(first), Some(last))) = written.into_iter().next() else { return Ok(None) };
    let numbers = numbers(state, (name, columns), (table, first))?;
    if self::numbers(state, (name, columns), (table, last))? != numbers {
        return Err(unsupported(state.path, format!("rows in its table `{name}` have different columns")));
    }
    let selected: Vec<String> = columns.iter().map(|name| quoted(name)).collect();
    let sql = format!("SELECT {} FROM {name} WHERE {at}", selected.join(", "));
    let (mut bytes, count) = (0_usize, columns.len());
    let rows = state.rows(&sql, &[snapshot], left.0, |row| {
        for at in 0..count {
            bytes = bytes.saturating_add(size(row.get_ref(at)?));
        }
        // What is too much is not kept any longer, and told below.
        if bytes > left.1 { Ok(Vec::new()) } else { (0..count).map(|at| value(row, at)).collect() }
    })?;
    if bytes > left.1 {
        return Err(unsupported(
            state.path,
            format!("more than {} MiB of inlined rows of one table", MAX_BYTES >> 20),
        ));
    }
    *left = (left.0.saturating_sub(rows.len()), left.1 - bytes);
    let digest = digest(&rows);
    Ok(Some(Inlined { columns: numbers, rows, digest }))
}

fn value(row: &Row<'_>, at: usize) -> rusqlite::Result<Value> {
    match row.get_ref(at)? {
        // The crate panics at bytes that are no text when it is asked for a value.
        ValueRef::Text(_) => row.get(at).map(Value::Text),
        _ => row.get(at),
    }
}

fn digest(rows: &[Vec<Value>]) -> [u8; 32] {
    let mut all = Sha256::new();
    for value in rows.iter().flatten() {
        let mut put = |kind: u8, bytes: &[u8]| {
            all.update([kind]);
            all.update(bytes.len().to_le_bytes());
            all.update(bytes);
        };
        match value {
            Value::Null => put(0, &[]),
            Value::Integer(number) => put(1, &number.to_le_bytes()),
            Value::Real(number) => put(2, &number.to_bits().to_le_bytes()),
            Value::Text(text) => put(3, text.as_bytes()),
            Value::Blob(bytes) => put(4, bytes),
        }
    }
    all.finalize().into()
}

fn size(value: ValueRef<'_>) -> usize {
    size_of::<Value>()
        + match value {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
            _ => 0,
        }
}

/// The numbers and types that columns of these names had at a snapshot.
fn numbers(
    state: &State<'_>,
    (name, columns): (&str, &[String]),
    (table, snapshot): (i64, i64),
) -> Result<Vec<(i64, String)>, Error> {
    let sql = format!(
        "SELECT substr(column_name, 1, {MAX_TEXT}), column_id, substr(column_type, 1, {MAX_TEXT}) \
         FROM ducklake_column \
         WHERE table_id = ?2 AND parent_column IS NULL \
           AND begin_snapshot <= ?1 AND (end_snapshot IS NULL OR end_snapshot > ?1)"
    );
    let known: Vec<(String, (i64, String))> = state
        .rows(&sql, &[snapshot, table], MAX_TABLES, |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?;
    let number = |column: &String| {
        let found = known.iter().find(|(known, _)| known == column);
        found.map(|(_, number)| number.clone()).ok_or_else(|| {
            unsupported(
                state.path,
                format!(
                    "rows in its table `{name}` have a column {column:?} that the catalog does not define"
                ),
            )
        })
    };
    columns.iter().map(number).collect()
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn unsupported(path: &Path, detail: String) -> Error {
    Error::Lake { path: path.to_path_buf(), detail, kind: ErrorKind::Unsupported, hint: HINT }
}

/// The rows as a table with these columns has them.
///
/// # Errors
/// Names the column with a value that is not read.
pub(super) fn batches(
    inlined: &[Inlined],
    columns: &[LakeColumn],
    schema: &SchemaRef,
    path: &Path,
) -> Result<Vec<RecordBatch>, Error> {
    let of_one = |inlined: &Inlined| {
        let array = |column: &LakeColumn| {
            let mut places = inlined.columns.iter().enumerate();
            let Some((place, (_, written))) =
                places.find(|(_, (number, _))| *number == i64::from(column.number))
            else {
                return column
                    .default
                    .to_array_of_size(inlined.rows.len())
                    .map_err(|error| damaged(path, error));
            };
            let values: Vec<&Value> = inlined.rows.iter().filter_map(|row| row.get(place)).collect();
            array_of(&values, written, column.field.data_type()).map_err(|detail| {
                unsupported(
                    path,
                    format!(
                        "unsupported value in column `{}` of inlined rows: {detail}",
                        column.field.name()
                    ),
                )
            })
        };
        let arrays = columns.iter().map(array).collect::<Result<Vec<ArrayRef>, Error>>()?;
        RecordBatch::try_new(Arc::clone(schema), arrays).map_err(|error| damaged(path, error))
    };
    inlined.iter().filter(|_| !columns.is_empty()).map(of_one).collect()
}

/// Values of a column that had the type `written`. Texts are parsed as that type: a wider one may read another number.
fn array_of(values: &[&Value], written: &str, data_type: &DataType) -> Result<ArrayRef, String> {
    match types::plain(written) {
        Some(written) if written != *data_type => {
            let options = CastOptions { safe: false, ..CastOptions::default() };
            cast_with_options(&array(values, &written)?, data_type, &options)
                .map_err(|error| error.to_string())
        }
        _ => array(values, data_type),
    }
}

/// Values as SQLite has them: numbers, bytes, and texts for all else.
fn array(values: &[&Value], data_type: &DataType) -> Result<ArrayRef, String> {
    use DataType as T;
    match data_type {
        T::Boolean => {
            let truth = |value: &&Value| match value {
                Value::Null => Ok(None),
                Value::Integer(it @ (0 | 1)) => Ok(Some(*it == 1)),
                _ => Err("no truth value".to_owned()),
            };
            Ok(Arc::new(values.iter().map(truth).collect::<Result<BooleanArray, String>>()?))
        }
        T::Binary => {
            let mut bytes = BinaryBuilder::new();
            for value in values {
                match value {
                    Value::Null => bytes.append_null(),
                    Value::Blob(it) => bytes.append_value(it),
                    _ => return Err("no bytes".to_owned()),
                }
            }
            Ok(Arc::new(bytes.finish()))
        }
        T::FixedSizeBinary(16) => uuids(values),
        T::Struct(_) | T::List(_) | T::Map(..) => match values.iter().all(|value| **value == Value::Null) {
            true => Ok(arrow::array::new_null_array(data_type, values.len())),
            false => Err("a nested value, stored as text".to_owned()),
        },
        T::Utf8 => Ok(Arc::new(texts(values)?)),
        _ => {
            let options = CastOptions { safe: false, ..CastOptions::default() };
            let written = cast_with_options(&texts(values)?, data_type, &options);
            written.and_then(|values| with_one_nan(&values)).map_err(|error| error.to_string())
        }
    }
}

fn uuids(values: &[&Value]) -> Result<ArrayRef, String> {
    let mut bytes = FixedSizeBinaryBuilder::with_capacity(values.len(), 16);
    for value in values {
        match value {
            Value::Null => bytes.append_null(),
            Value::Text(text) => {
                let uuid = Uuid::parse_str(text).map_err(|error| error.to_string())?;
                bytes.append_value(uuid.as_bytes()).map_err(|error| error.to_string())?;
            }
            _ => return Err("no UUID".to_owned()),
        }
    }
    Ok(Arc::new(bytes.finish()))
}

fn texts<'a>(values: &[&'a Value]) -> Result<StringArray, String> {
    let text = |value: &&'a Value| match *value {
        Value::Null => Ok(None),
        Value::Integer(number) => Ok(Some(Cow::Owned(number.to_string()))),
        Value::Real(number) => Ok(Some(Cow::Owned(format!("{number:?}")))),
        Value::Text(text) => Ok(Some(Cow::Borrowed(text.as_str()))),
        Value::Blob(_) => Err("bytes".to_owned()),
    };
    values.iter().map(text).collect::<Result<StringArray, String>>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_told_from_others_without_them() {
        let of = |rows: Vec<Vec<Value>>| Inlined { columns: Vec::new(), digest: digest(&rows), rows };
        let text = |text: &str| Value::Text(text.to_owned());
        let mut one = of(vec![vec![text("ab"), text("c")]]);
        assert_eq!(one, of(vec![vec![text("ab"), text("c")]]));
        one.forget_rows();
        assert_eq!(one, of(vec![vec![text("ab"), text("c")]]));
        for other in
            [vec![text("a"), text("bc")], vec![text("ab"), Value::Blob(b"c".to_vec())], vec![Value::Null]]
        {
            assert!(one != of(vec![other]));
        }
        let long = of(vec![vec![text(&"x".repeat(10_000))]]);
        assert!(format!("{long:?}").len() < 1_000, "what is told of rows is short");
    }

    #[test]
    fn values_that_do_not_fit_are_no_nulls() {
        let text = |text: &str| Value::Text(text.to_owned());
        let list = DataType::List(Arc::new(arrow::datatypes::Field::new("element", DataType::Int32, true)));
        for (value, data_type) in [
            (Value::Integer(128), DataType::Int8),
            (Value::Integer(2), DataType::Boolean),
            (text("infinity"), DataType::Date32),
            (text("170141183460469231731687303715884105727"), DataType::Decimal128(38, 0)),
            (text("[1, 2]"), list),
            (text("x"), DataType::Binary),
            (text("x"), DataType::FixedSizeBinary(16)),
        ] {
            assert!(array(&[&value], &data_type).is_err(), "{value:?} as {data_type}");
        }
    }
}
