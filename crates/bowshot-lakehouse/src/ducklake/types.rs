//! DuckLake's types as Arrow's (specification, "Data Types").

use super::super::columns::{LakeColumn, number, numbered};
use super::metadata::ColumnRow;
use arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use bowshot_formats::extension_types::{EXTENSION, UUID};
use datafusion::common::ScalarValue;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use uuid::Uuid;

const MAX_DEPTH: usize = 32;

#[derive(Debug)]
pub(super) struct Columns {
    pub(super) columns: Vec<LakeColumn>,
    /// Nested fields whose values of before they were added are not NULL.
    with_default: HashSet<i32>,
}

/// Rows of columns by that of the column that they are in.
type Children<'a> = HashMap<Option<i64>, Vec<&'a ColumnRow>>;

impl Columns {
    /// # Errors
    /// Names the column whose type, or whose value of before it was added, is not known here.
    pub(super) fn of(rows: &[ColumnRow]) -> Result<Self, String> {
        let mut children = Children::new();
        for row in rows {
            children.entry(row.parent).or_default().push(row);
        }
        let roots = children.get(&None).cloned().unwrap_or_default();
        let mut names = HashSet::new();
        if let Some(twice) = roots.iter().find(|row| !names.insert(row.name.as_str())) {
            return Err(format!("two columns `{}`", twice.name));
        }
        let columns = roots.iter().map(|row| column(row, &children)).collect::<Result<_, _>>()?;
        let nested = rows.iter().filter(|row| row.parent.is_some() && row.default.is_some());
        let with_default = nested.map(number_of).collect::<Result<_, _>>()?;
        Ok(Self { columns, with_default })
    }

    /// Checks that a file has all nested fields for which NULL would be wrong.
    pub(super) fn expect_nested_defaults(&self, file: &arrow::datatypes::Schema) -> Result<(), String> {
        if self.with_default.is_empty() {
            return Ok(());
        }
        self.columns.iter().try_for_each(|column| {
            let found = file.fields().iter().find(|field| number(field) == Some(column.number));
            found.map_or(Ok(()), |found| self.expect_in(&column.field, found))
        })
    }

    fn expect_in(&self, wanted: &Field, found: &Field) -> Result<(), String> {
        use DataType as T;
        match (wanted.data_type(), found.data_type()) {
            (T::Struct(wanted), T::Struct(found)) => wanted.iter().try_for_each(|wanted| {
                match found.iter().find(|field| number(field) == number(wanted)) {
                    Some(found) => self.expect_in(wanted, found),
                    None if number(wanted).is_some_and(|number| self.with_default.contains(&number)) => {
                        Err(wanted.name().clone())
                    }
                    None => Ok(()),
                }
            }),
            (T::List(wanted), T::List(found) | T::LargeList(found)) => self.expect_in(wanted, found),
            (T::Map(wanted, _), T::Map(found, _)) => match (wanted.data_type(), found.data_type()) {
                (T::Struct(wanted), T::Struct(found)) => {
                    wanted.iter().zip(found).try_for_each(|(wanted, found)| self.expect_in(wanted, found))
                }
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }
}

fn number_of(row: &ColumnRow) -> Result<i32, String> {
    i32::try_from(row.number).map_err(|_| format!("column `{}` has the invalid id {}", row.name, row.number))
}

fn column(row: &ColumnRow, children: &Children<'_>) -> Result<LakeColumn, String> {
    let number = number_of(row)?;
    let field = field(row, children, MAX_DEPTH)
        .map_err(|unknown| format!("column `{}` has the unsupported type {unknown}", row.name))?;
    let default = match &row.default {
        None => ScalarValue::try_from(field.data_type()).map_err(|error| error.to_string()),
        Some(text) => value(text, field.data_type()),
    };
    let default = default
        .map_err(|error| format!("column `{}` has an unsupported initial default: {error}", row.name))?;
    Ok(LakeColumn { field, number, default })
}

pub(super) fn value(text: &str, data_type: &DataType) -> Result<ScalarValue, String> {
    match data_type {
        DataType::FixedSizeBinary(16) => {
            let uuid = Uuid::parse_str(text).map_err(|error| error.to_string())?;
            Ok(ScalarValue::FixedSizeBinary(16, Some(uuid.as_bytes().to_vec())))
        }
        DataType::Binary | DataType::Struct(_) | DataType::List(_) | DataType::Map(..) => {
            Err(format!("a text for {data_type}"))
        }
        _ => ScalarValue::try_from_string(text.to_owned(), data_type).map_err(|error| error.to_string()),
    }
}

/// Everything may be NULL: the catalog says otherwise of some fields that were added within others and have none.
fn field(row: &ColumnRow, children: &Children<'_>, depth: usize) -> Result<FieldRef, String> {
    let mut metadata = numbered(number_of(row)?);
    if row.data_type == "uuid" {
        metadata.insert(EXTENSION.to_owned(), UUID.to_owned());
    }
    let data_type = data_type(row, children, depth)?;
    Ok(Arc::new(Field::new(&row.name, data_type, true).with_metadata(metadata)))
}

fn data_type(row: &ColumnRow, children: &Children<'_>, depth: usize) -> Result<DataType, String> {
    let unknown = || format!("`{}`", row.data_type);
    let Some(depth) = depth.checked_sub(1) else { return Err("of too many levels".to_owned()) };
    let inner = children.get(&Some(row.number)).map_or(&[][..], Vec::as_slice);
    match (row.data_type.as_str(), inner) {
        ("struct", [_, ..]) => {
            let fields = inner.iter().map(|row| field(row, children, depth)).collect::<Result<_, _>>()?;
            Ok(DataType::Struct(fields))
        }
        ("list", [element]) => {
            let element = field(element, children, depth)?;
            Ok(DataType::List(Arc::new(element.as_ref().clone().with_name("element"))))
        }
        ("map", [key, value]) => {
            let key = field(key, children, depth)?.as_ref().clone().with_name("key").with_nullable(false);
            let value = field(value, children, depth)?.as_ref().clone().with_name("value");
            let entries =
                Field::new("key_value", DataType::Struct([key, value].into_iter().collect()), false);
            Ok(DataType::Map(Arc::new(entries), false))
        }
        (text, []) => plain(text).ok_or_else(unknown),
        _ => Err(unknown()),
    }
}

/// A type without others in it; none for one that is not known, or has others.
pub(super) fn plain(text: &str) -> Option<DataType> {
    Some(match text {
        "boolean" => DataType::Boolean,
        "int8" => DataType::Int8,
        "int16" => DataType::Int16,
        "int32" => DataType::Int32,
        "int64" => DataType::Int64,
        "uint8" => DataType::UInt8,
        "uint16" => DataType::UInt16,
        "uint32" => DataType::UInt32,
        "uint64" => DataType::UInt64,
        // Files have them as floating-point numbers.
        "int128" | "uint128" => DataType::Decimal128(38, 0),
        "float32" => DataType::Float32,
        "float64" => DataType::Float64,
        "date" => DataType::Date32,
        "time" => DataType::Time64(TimeUnit::Microsecond),
        "timestamp" | "timestamp_us" => DataType::Timestamp(TimeUnit::Microsecond, None),
        "timestamp_s" => DataType::Timestamp(TimeUnit::Second, None),
        "timestamp_ms" => DataType::Timestamp(TimeUnit::Millisecond, None),
        "timestamp_ns" => DataType::Timestamp(TimeUnit::Nanosecond, None),
        "timestamptz" => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        "varchar" | "json" => DataType::Utf8,
        "blob" => DataType::Binary,
        "uuid" => DataType::FixedSizeBinary(16),
        _ => {
            let (precision, scale) = text.strip_prefix("decimal(")?.strip_suffix(')')?.split_once(',')?;
            let (precision, scale): (u8, i8) = (precision.trim().parse().ok()?, scale.trim().parse().ok()?);
            let fits =
                (1..=38).contains(&precision) && scale >= 0 && i16::from(scale) <= i16::from(precision);
            return fits.then_some(DataType::Decimal128(precision, scale));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: i64, name: &str, data_type: &str, parent: Option<i64>) -> ColumnRow {
        ColumnRow { number, name: name.to_owned(), data_type: data_type.to_owned(), default: None, parent }
    }

    #[test]
    fn what_is_not_known_is_refused_by_name() {
        for unknown in ["interval", "timetz", "variant", "geometry", "decimal(50,2)", "list", "struct", "map"]
        {
            let error = Columns::of(&[row(1, "c", unknown, None)]).unwrap_err();
            assert!(error.contains("`c`") && error.contains("unsupported"), "{error}");
        }
        assert!(Columns::of(&[row(1, "c", "int8", None), row(2, "c", "int8", None)]).is_err());
        assert!(Columns::of(&[row(1 << 40, "c", "int8", None)]).is_err());
        let deep: Vec<_> = (1..100).map(|n| row(n, "element", "list", (n > 1).then(|| n - 1))).collect();
        assert!(Columns::of(&deep).unwrap_err().contains("too many levels"));
    }
}
