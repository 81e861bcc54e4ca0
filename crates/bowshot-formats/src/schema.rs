//! Schemas of files and of the table that they make: plain types instead of views, one type of intervals, columns united by
//! name.

use crate::file_metadata::{Detail, FileFacts};
use crate::intervals::INTERVAL;
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit,
};
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

fn plain_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        // Of months alone, or of days and milliseconds: not every client reads those.
        DataType::Interval(_) => INTERVAL,
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

/// The columns of a table: those of the first file, then what others add. Nullable if a file says so or lacks it.
pub fn unite<'a>(
    files: impl Iterator<Item = (&'a Path, &'a FileFacts)> + Clone,
    typing: Typing,
) -> Result<Schema, Error> {
    let mut columns: Vec<Column<'a>> = Vec::new();
    let mut places: HashMap<&'a str, usize> = HashMap::new();
    let mut count = 0;
    let mut last: Option<&'a SchemaRef> = None;
    for (path, facts) in files.clone() {
        // Most tables repeat one schema thousands of times.
        let repeated = last.is_some_and(|last| last.fields() == facts.columns.fields());
        count += 1;
        last = Some(&facts.columns);
        if repeated {
            for field in facts.columns.fields() {
                if let Some(place) = places.get(field.name().as_str()) {
                    columns[*place].seen += 1;
                }
            }
            continue;
        }
        let mut names = HashSet::new();
        for field in facts.columns.fields() {
            if !names.insert(field.name()) {
                return Err(Error::corrupt(path, format!("it has two columns `{}`", field.name())));
            }
            match places.get(field.name().as_str()) {
                None => {
                    expect_narrow(field, path)?;
                    places.insert(field.name(), columns.len());
                    columns.push(Column { field: field.as_ref().clone(), path, seen: 1, floats: None });
                }
                Some(place) => columns[*place].add(field, path, typing)?,
            }
        }
    }
    for column in &columns {
        let Some(floats) = column.floats else { continue };
        files
            .clone()
            .try_for_each(|(path, facts)| expect_small(column.field.name(), (path, facts), floats))?;
    }
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
}

impl<'a> Column<'a> {
    fn add(&mut self, field: &Field, path: &'a Path, typing: Typing) -> Result<(), Error> {
        self.seen += 1;
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
fn expect_small(column: &str, (path, facts): (&Path, &FileFacts), floats: &Path) -> Result<(), Error> {
    let Some((place, found)) = facts.columns.column_with_name(column) else { return Ok(()) };
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

/// The type that holds all values of two columns, if there is one.
fn unite_types(one: &DataType, other: &DataType, typing: Typing) -> Option<DataType> {
    use DataType as T;
    if one == other {
        return Some(one.clone());
    }
    match (one, other) {
        (T::Null, known) | (known, T::Null) => Some(known.clone()),
        (T::List(a), T::List(b)) => Some(T::List(unite_fields(a, b, typing)?)),
        (T::LargeList(a), T::LargeList(b)) => Some(T::LargeList(unite_fields(a, b, typing)?)),
        (T::Struct(a), T::Struct(b)) => Some(T::Struct(unite_structs(a, b, typing)?)),
        (T::Map(a, sorted), T::Map(b, same)) if sorted == same => {
            Some(T::Map(unite_entries(a, b, typing)?, *sorted))
        }
        (T::Dictionary(_, a), T::Dictionary(_, b)) => unite_types(a, b, typing),
        (T::Dictionary(_, a), b) | (b, T::Dictionary(_, a)) => unite_types(a, b, typing),
        (T::Utf8, T::LargeUtf8) | (T::LargeUtf8, T::Utf8) => Some(T::LargeUtf8),
        (T::Binary, T::LargeBinary) | (T::LargeBinary, T::Binary) => Some(T::LargeBinary),
        (T::Timestamp(a, zone), T::Timestamp(b, same)) if zone == same => {
            Some(T::Timestamp(finer(*a, *b), zone.clone()))
        }
        _ if typing == Typing::Guessed => unite_guesses(one, other),
        (T::Decimal128(..), T::Decimal128(..)) => unite_decimals(one, other),
        (T::Decimal128(..), whole) => unite_decimals(one, &as_decimal(whole)?),
        (whole, T::Decimal128(..)) => unite_decimals(&as_decimal(whole)?, other),
        (T::Date32, stamp @ T::Timestamp(_, None)) | (stamp @ T::Timestamp(_, None), T::Date32) => {
            Some(stamp.clone())
        }
        _ => unite_numbers(one, other),
    }
}

/// The type of values that were seen as these two: what a reader cannot take in it without loss, it refuses with its line.
fn unite_guesses(one: &DataType, other: &DataType) -> Option<DataType> {
    use DataType as T;
    Some(match (one, other) {
        (T::Int64, T::Float64) | (T::Float64, T::Int64) => T::Float64,
        (T::Decimal128(p, s), T::Decimal128(q, t)) => T::Decimal128(*p.max(q), *s.max(t)),
        (T::Int64 | T::UInt64, decimal @ T::Decimal128(..))
        | (decimal @ T::Decimal128(..), T::Int64 | T::UInt64) => decimal.clone(),
        (T::Int64, T::UInt64) | (T::UInt64, T::Int64) => T::Decimal128(DECIMAL128_MAX_PRECISION, 0),
        (T::Date32, stamp @ T::Timestamp(_, None)) | (stamp @ T::Timestamp(_, None), T::Date32) => {
            stamp.clone()
        }
        // Of numbers of which some have more digits than floating point, and of JSON, whose nested values are text, too.
        _ => T::Utf8,
    })
}

fn unite_numbers(one: &DataType, other: &DataType) -> Option<DataType> {
    use DataType as T;
    let wide = |bits: usize| match bits {
        0..=8 => Some(T::Int8),
        9..=16 => Some(T::Int16),
        17..=32 => Some(T::Int32),
        33..=64 => Some(T::Int64),
        _ => None,
    };
    let bits = |data_type: &DataType| data_type.primitive_width().map(|bytes| bytes * 8);
    let (a, b) = (bits(one)?, bits(other)?);
    match (one, other) {
        _ if one.is_signed_integer() && other.is_signed_integer() => wide(a.max(b)),
        _ if one.is_unsigned_integer() && other.is_unsigned_integer() => {
            Some(if a > b { one.clone() } else { other.clone() })
        }
        (DataType::UInt64, _) | (_, DataType::UInt64) if one.is_integer() && other.is_integer() => {
            as_decimal(&DataType::UInt64)
        }
        _ if one.is_signed_integer() && other.is_unsigned_integer() => wide(a.max(b * 2)),
        _ if one.is_unsigned_integer() && other.is_signed_integer() => wide(b.max(a * 2)),
        _ if one.is_floating() && other.is_floating() => {
            Some(if a > b { one.clone() } else { other.clone() })
        }
        // Of 64 bits see [`expect_small`].
        _ if one.is_floating() && other.is_integer() && b <= 32 => Some(T::Float64),
        _ if one.is_integer() && other.is_floating() && a <= 32 => Some(T::Float64),
        _ => None,
    }
}

fn unite_decimals(one: &DataType, other: &DataType) -> Option<DataType> {
    let (DataType::Decimal128(p, s), DataType::Decimal128(q, t)) = (one, other) else {
        return None;
    };
    let scale = (*s).max(*t);
    let digits = (i16::from(*p) - i16::from(*s)).max(i16::from(*q) - i16::from(*t)) + i16::from(scale);
    let precision = u8::try_from(digits).ok().filter(|digits| *digits <= DECIMAL128_MAX_PRECISION)?;
    Some(DataType::Decimal128(precision, scale))
}

/// The decimal numbers that hold all whole numbers of a type.
fn as_decimal(whole: &DataType) -> Option<DataType> {
    let digits = match whole {
        DataType::Int8 | DataType::UInt8 => 3,
        DataType::Int16 | DataType::UInt16 => 5,
        DataType::Int32 | DataType::UInt32 => 10,
        DataType::Int64 => 19,
        DataType::UInt64 => 20,
        _ => return None,
    };
    Some(DataType::Decimal128(digits, 0))
}

fn unite_fields(one: &FieldRef, other: &FieldRef, typing: Typing) -> Option<FieldRef> {
    let data_type = unite_types(one.data_type(), other.data_type(), typing)?;
    let nullable = one.is_nullable() || other.is_nullable();
    Some(Arc::new(one.as_ref().clone().with_data_type(data_type).with_nullable(nullable)))
}

/// Keys and values, by their place: writers name them differently. What is inside of records in maps is not taken apart.
fn unite_entries(one: &FieldRef, other: &FieldRef, typing: Typing) -> Option<FieldRef> {
    let (DataType::Struct(fields), DataType::Struct(others)) = (one.data_type(), other.data_type()) else {
        return None;
    };
    let unite = |(field, twin): (&FieldRef, &FieldRef)| {
        let united = unite_fields(field, twin, typing)?;
        (field.data_type() == twin.data_type() || !united.data_type().is_nested()).then_some(united)
    };
    let pairs = fields.iter().zip(others).map(unite);
    let united = pairs.collect::<Option<Fields>>().filter(|united| united.len() == 2)?;
    Some(Arc::new(one.as_ref().clone().with_data_type(DataType::Struct(united))))
}

fn unite_structs(one: &Fields, other: &Fields, typing: Typing) -> Option<Fields> {
    let mut fields: Vec<FieldRef> = Vec::with_capacity(one.len());
    for field in one {
        fields.push(match other.iter().find(|candidate| candidate.name() == field.name()) {
            Some(twin) => unite_fields(field, twin, typing)?,
            None => Arc::new(field.as_ref().clone().with_nullable(true)),
        });
    }
    for field in other {
        if one.iter().all(|known| known.name() != field.name()) {
            fields.push(Arc::new(field.as_ref().clone().with_nullable(true)));
        }
    }
    Some(fields.into())
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

/// The unit that loses nothing of either.
pub(crate) fn finer(one: TimeUnit, other: TimeUnit) -> TimeUnit {
    let rank = |unit: TimeUnit| match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 1,
        TimeUnit::Microsecond => 2,
        TimeUnit::Nanosecond => 3,
    };
    if rank(one) >= rank(other) { one } else { other }
}
