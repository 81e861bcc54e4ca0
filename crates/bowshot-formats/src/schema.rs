//! Schemas of files and of the table that they make: plain types instead of views, one type of intervals, columns united by
//! name.

use crate::file_metadata::{Detail, FileFacts};
use crate::intervals::INTERVAL;
use crate::type_union::{unite_metadata, unite_types};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use bowshot_object_store::Error;
use datafusion::common::ScalarValue;
use datafusion::common::stats::Precision;
use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

/// A schema with contiguous strings and binaries: views hold whole decoded pages, and must be copied to be sent.
pub fn plain(schema: &Schema) -> SchemaRef {
    let fields: Fields = schema.fields().iter().map(plain_field).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

fn plain_field(field: &FieldRef) -> FieldRef {
    let plain = plain_type(field.data_type());
    if &plain == field.data_type() {
        return Arc::clone(field);
    }
    Arc::new(field.as_ref().clone().with_data_type(plain))
}

pub(crate) fn plain_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::RunEndEncoded(_, values) => plain_type(values.data_type()),
        // Of months alone, or of days and milliseconds: not every client reads those.
        DataType::Interval(_) => INTERVAL,
        // Averages of them overflow within so few digits.
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::List(item) | DataType::ListView(item) => DataType::List(plain_field(item)),
        DataType::LargeList(item) | DataType::LargeListView(item) => DataType::LargeList(plain_field(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(plain_field(item), *size),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(plain_field).collect()),
        DataType::Map(entries, sorted) => DataType::Map(plain_field(entries), *sorted),
        other => other.clone(),
    }
}

pub struct Places<'a> {
    schema: &'a Schema,
    by_name: OnceCell<HashMap<&'a str, usize>>,
}

impl<'a> Places<'a> {
    pub fn of(schema: &'a Schema) -> Self {
        Self { schema, by_name: OnceCell::new() }
    }

    /// The place of the first column of a name, which mostly is the expected one.
    pub fn find(&self, name: &str, expected: usize) -> Option<usize> {
        if self.schema.fields().get(expected).is_some_and(|field| field.name() == name) {
            return Some(expected);
        }
        self.by_name.get_or_init(|| by_name(self.schema)).get(name).copied()
    }
}

/// The columns of a table under the names that a file has for them, where those differ in the case of letters; none if the
/// file has all names as the table has them.
pub(crate) fn named_as_in(table: &SchemaRef, file: &Schema) -> Option<SchemaRef> {
    let (ours, theirs) = (Places::of(table), Places::of(file));
    let others = file.fields().iter().enumerate();
    let others = others.filter(|(place, field)| ours.find(field.name(), *place).is_none());
    let others: HashMap<String, &FieldRef> =
        others.map(|(_, field)| (field.name().to_lowercase(), field)).collect();
    if others.is_empty() {
        return None;
    }
    let mut renamed = false;
    let named = table.fields().iter().enumerate().map(|(place, field)| {
        let other = match theirs.find(field.name(), place) {
            Some(_) => None,
            None => others.get(&field.name().to_lowercase()),
        };
        renamed |= other.is_some();
        other.map_or_else(
            || Arc::clone(field),
            |other| Arc::new(field.as_ref().clone().with_name(other.name())),
        )
    });
    let named: Fields = named.collect();
    renamed.then(|| Arc::new(Schema::new_with_metadata(named, table.metadata().clone())))
}

fn by_name(schema: &Schema) -> HashMap<&str, usize> {
    let mut places = HashMap::with_capacity(schema.fields().len());
    for (place, field) in schema.fields().iter().enumerate() {
        places.entry(field.name().as_str()).or_insert(place);
    }
    places
}

/// How readily types of two files are reconciled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Typing {
    /// The files say their types: only lossless widening.
    Declared,
    /// The types were guessed from text, and any value can be read as text again.
    Guessed,
}

/// The columns of a table: those of the first file, then what others add. A column is nullable if a file says so or
/// lacks it. Names that differ in the case of letters are one column, unless a file has both or their types do not meet.
pub fn unite<'a>(
    files: impl Iterator<Item = (&'a Path, &'a FileFacts)> + Clone,
    typing: Typing,
) -> Result<Schema, Error> {
    let mut apart = names_apart(files.clone());
    let columns = loop {
        // Each time there are more names apart.
        if let Some(columns) = columns_of(files.clone(), typing, &mut apart)? {
            break columns;
        }
    };
    let count = files.count();
    let fields: Vec<Field> = columns
        .into_iter()
        .map(|column| {
            let nullable = column.field.is_nullable() || column.seen < count;
            let field = column.field.with_nullable(nullable);
            match typing {
                Typing::Declared => field,
                Typing::Guessed => {
                    let known = known_type(field.data_type());
                    field.with_data_type(known)
                }
            }
        })
        .collect();
    Ok(Schema::new(fields))
}

fn key(name: &str, apart: &HashSet<String>) -> String {
    let folded = name.to_lowercase();
    if apart.contains(&folded) { name.to_owned() } else { folded }
}

/// The columns of all files; none if types of two spellings of a name do not meet, which are set apart then.
fn columns_of<'a>(
    files: impl Iterator<Item = (&'a Path, &'a FileFacts)> + Clone,
    typing: Typing,
    apart: &mut HashSet<String>,
) -> Result<Option<Vec<Column<'a>>>, Error> {
    let mut columns: Vec<Column<'a>> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut failed: HashSet<String> = HashSet::new();
    let mut last: Option<(&'a SchemaRef, Vec<usize>)> = None;
    for (path, facts) in files.clone() {
        // Most tables repeat one schema thousands of times.
        if let Some((_, seen)) = last.as_ref().filter(|(last, _)| last.fields() == facts.columns.fields()) {
            seen.iter().for_each(|place| columns[*place].seen += 1);
            continue;
        }
        let (mut names, mut seen) = (HashSet::new(), Vec::with_capacity(facts.columns.fields().len()));
        for field in facts.columns.fields() {
            if !names.insert(field.name()) {
                return Err(Error::corrupt(path, format!("it has two columns `{}`", field.name())));
            }
            expect_narrow(field, path)?;
            let place = *places.entry(key(field.name(), apart)).or_insert(columns.len());
            match columns.get_mut(place) {
                None => columns.push(Column::new(field, path)),
                Some(column) => {
                    let added = column.add(field, path, typing);
                    failed.extend(column.set_apart(added)?);
                }
            }
            seen.push(place);
        }
        last = Some((&facts.columns, seen));
    }
    if failed.is_empty() {
        let mixed = columns.iter().filter(|column| column.floats.is_some());
        let mixed = mixed.map(|column| (key(column.field.name(), apart), column));
        failed = expect_all_small(files, &mixed.collect(), apart)?;
    }
    if failed.is_empty() {
        return Ok(Some(columns));
    }
    apart.extend(failed);
    Ok(None)
}

/// Checks whole numbers in columns of floating-point numbers. Returns the names that are to be set apart.
fn expect_all_small<'a>(
    files: impl Iterator<Item = (&'a Path, &'a FileFacts)>,
    mixed: &HashMap<String, &Column<'a>>,
    apart: &HashSet<String>,
) -> Result<HashSet<String>, Error> {
    let mut failed = HashSet::new();
    if mixed.is_empty() {
        return Ok(failed);
    }
    let mut last: Option<(&SchemaRef, Vec<(usize, &Column<'a>)>)> = None;
    for (path, facts) in files {
        let known = last.take().filter(|(last, _)| last.fields() == facts.columns.fields());
        let (_, checked) = last.insert(known.unwrap_or_else(|| {
            let named = facts.columns.fields().iter().enumerate();
            let found = named.filter_map(|(place, field)| {
                mixed.get(&key(field.name(), apart)).map(|column| (place, *column))
            });
            (&facts.columns, found.collect())
        }));
        for (place, column) in &*checked {
            let Some(floats) = column.floats else { continue };
            failed.extend(column.set_apart(expect_small(*place, (path, facts), floats))?);
        }
    }
    Ok(failed)
}

/// Names, in small letters, of which some file has several that differ in the case of letters.
fn names_apart<'a>(files: impl Iterator<Item = (&'a Path, &'a FileFacts)>) -> HashSet<String> {
    let mut apart = HashSet::new();
    let mut last: Option<&SchemaRef> = None;
    for (_, facts) in files {
        let columns = &facts.columns;
        if last.replace(columns).is_some_and(|last| last.fields() == columns.fields()) {
            continue;
        }
        let mut names = HashSet::with_capacity(columns.fields().len());
        let folded = columns.fields().iter().map(|field| field.name().to_lowercase());
        apart.extend(folded.filter(|name| !names.insert(name.clone())));
    }
    apart
}

/// Bytes of values of one length; longer ones are refused, since rows without a value take as much room.
const MAX_FIXED: i32 = 64 << 10;

fn expect_narrow(field: &Field, path: &Path) -> Result<(), Error> {
    if is_narrow(field.data_type()) {
        return Ok(());
    }
    let detail = format!("column `{}` has values of more than {MAX_FIXED} bytes of one length", field.name());
    Err(Error::Unsupported { path: path.to_path_buf(), detail })
}

fn is_narrow(data_type: &DataType) -> bool {
    match data_type {
        DataType::FixedSizeBinary(length) => *length <= MAX_FIXED,
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => is_narrow(field.data_type()),
        DataType::Struct(fields) => fields.iter().all(|field| is_narrow(field.data_type())),
        _ => true,
    }
}

struct Column<'a> {
    field: Field,
    /// The file that first had the column.
    path: &'a Path,
    seen: usize,
    /// A file that has floating-point numbers, where others have whole ones of 64 bits.
    floats: Option<&'a Path>,
    /// Whether files spell its name in several ways.
    is_respelled: bool,
}

impl<'a> Column<'a> {
    fn new(field: &Field, path: &'a Path) -> Self {
        Self { field: field.clone(), path, seen: 1, floats: None, is_respelled: false }
    }

    /// The name, in small letters, if its spellings have to be columns of their own.
    fn set_apart(&self, added: Result<(), Error>) -> Result<Option<String>, Error> {
        match added {
            Err(_) if self.is_respelled => Ok(Some(self.field.name().to_lowercase())),
            added => added.map(|()| None),
        }
    }

    fn add(&mut self, field: &Field, path: &'a Path, typing: Typing) -> Result<(), Error> {
        self.seen += 1;
        self.is_respelled |= self.field.name() != field.name();
        let mixed = typing == Typing::Declared && is_mixed(self.field.data_type(), field.data_type());
        if mixed && self.floats.is_none() {
            self.floats = Some(if field.data_type().is_floating() { path } else { self.path });
        }
        let united = match mixed {
            true => Some(DataType::Float64),
            false => unite_types(self.field.data_type(), field.data_type(), typing),
        };
        let Some(united) = united else {
            return Err(Error::Types {
                path: path.to_path_buf(),
                other: self.path.to_path_buf(),
                column: field.name().clone(),
                found: field.data_type().to_string(),
                expected: self.field.data_type().to_string(),
            });
        };
        unite_metadata(&mut self.field, field);
        self.field.set_data_type(united);
        self.field.set_nullable(self.field.is_nullable() || field.is_nullable());
        Ok(())
    }
}

fn is_mixed(one: &DataType, other: &DataType) -> bool {
    let is_large = |data_type: &DataType| matches!(data_type, DataType::Int64 | DataType::UInt64);
    is_large(one) && other.is_floating() || is_large(other) && one.is_floating()
}

/// Floating-point numbers hold all whole numbers up to this one.
const LARGEST_WHOLE: u64 = 1 << f64::MANTISSA_DIGITS;

/// A column of floating-point numbers takes whole numbers in where the file's statistics say that none of them is rounded.
fn expect_small(place: usize, (path, facts): (&Path, &FileFacts), floats: &Path) -> Result<(), Error> {
    let found = facts.columns.field(place);
    let is_small = |bound: Option<&ScalarValue>| match bound {
        Some(ScalarValue::Int64(Some(value))) => value.unsigned_abs() <= LARGEST_WHOLE,
        Some(ScalarValue::UInt64(Some(value))) => *value <= LARGEST_WHOLE,
        _ => false,
    };
    let known = match &facts.detail {
        Detail::Parquet { statistics, .. } => statistics.column_statistics.get(place),
        _ => None,
    };
    let is_null = facts.rows.is_some_and(|rows| {
        rows == 0 || known.is_some_and(|known| known.null_count == Precision::Exact(rows))
    });
    let proven = known
        .is_some_and(|known| is_small(known.min_value.get_value()) && is_small(known.max_value.get_value()));
    if !matches!(found.data_type(), DataType::Int64 | DataType::UInt64) || is_null || proven {
        return Ok(());
    }
    Err(Error::Types {
        path: path.to_path_buf(),
        other: floats.to_path_buf(),
        column: found.name().clone(),
        found: format!("{} of numbers that {} may not hold", found.data_type(), DataType::Float64),
        expected: DataType::Float64.to_string(),
    })
}

/// Columns of text files that never showed a value are text.
fn known_type(data_type: &DataType) -> DataType {
    let known =
        |field: &FieldRef| Arc::new(field.as_ref().clone().with_data_type(known_type(field.data_type())));
    match data_type {
        DataType::Null => DataType::Utf8,
        DataType::List(item) => DataType::List(known(item)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(known).collect()),
        other => other.clone(),
    }
}
