//! VARIANT: a value of any kind in Parquet's binary form, as a struct of two parts. The type itself says what it is, so that it
//! passes through every operator. The bytes come from files and clients: each value is checked before anything looks into it.

mod check;
mod json;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, StructArray};
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Fields};
use arrow::error::ArrowError;
use parquet_variant::Variant;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};

pub use check::check_value;
pub use json::{JsonEncoders, json_encoder, json_texts, quote, write_json};

/// The canonical extension type of Arrow.
pub const EXTENSION: &str = "arrow.parquet.variant";
/// The parts of a value: the names of members, the value, and in files perhaps a part of it in a type of its own.
pub const METADATA: &str = "metadata";
pub const VALUE: &str = "value";
pub const TYPED_VALUE: &str = "typed_value";

/// Keys of the metadata of a field.
const EXTENSION_NAME: &str = "ARROW:extension:name";
const EXTENSION_PARAMETERS: &str = "ARROW:extension:metadata";
/// The names of a value that has none, and the value null of JSON.
const NO_NAMES: &[u8] = &[1, 0, 0];
const NULL: &[u8] = &[0];

static PARTS: LazyLock<Fields> = LazyLock::new(|| {
    [METADATA, VALUE].map(|name| Field::new(name, DataType::Binary, false)).into_iter().collect()
});

/// The type of all VARIANT columns. Structs that SQL makes have no parts that are never null, so that none is taken for one.
pub fn data_type() -> DataType {
    DataType::Struct(PARTS.clone())
}

/// Whether it is [`data_type`].
pub fn is_variant_type(data_type: &DataType) -> bool {
    let DataType::Struct(parts) = data_type else { return false };
    let [metadata, value] = parts.as_ref() else { return false };
    let is = |part: &FieldRef, name: &str| {
        part.name() == name && !part.is_nullable() && *part.data_type() == DataType::Binary
    };
    is(metadata, METADATA) && is(value, VALUE)
}

/// Whether values of a type have VARIANT values in them, or are such.
pub fn has_variants(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => has_variants(item.data_type()),
        DataType::Struct(parts) => {
            is_variant_type(data_type) || parts.iter().any(|part| has_variants(part.data_type()))
        }
        _ => false,
    }
}

/// Whether a field is one of VARIANT values by Arrow's extension type, in whichever types its parts are.
pub fn is_marked(field: &Field) -> bool {
    field.metadata().get(EXTENSION_NAME).is_some_and(|name| name == EXTENSION)
}

/// The field with Arrow's extension type, if it is of [`data_type`].
pub fn marked(field: &FieldRef) -> FieldRef {
    if is_marked(field) || !is_variant_type(field.data_type()) {
        return Arc::clone(field);
    }
    with_extension(field, field.data_type().clone(), EXTENSION)
}

/// The field of the same values as JSON text.
pub(crate) fn as_json(field: &FieldRef) -> FieldRef {
    with_extension(field, DataType::Utf8, "arrow.json")
}

fn with_extension(field: &FieldRef, data_type: DataType, name: &str) -> FieldRef {
    let mut metadata: HashMap<String, String> = field.metadata().clone();
    metadata.insert(EXTENSION_NAME.to_owned(), name.to_owned());
    metadata.insert(EXTENSION_PARAMETERS.to_owned(), String::new());
    Arc::new(field.as_ref().clone().with_data_type(data_type).with_metadata(metadata))
}

/// Values in [`data_type`], of parts in any types of bytes. A value that has no bytes is null in JSON's sense.
///
/// # Errors
/// For a struct of other parts, and for one with a part in a type of its own.
pub fn from_parts(parts: &StructArray) -> Result<ArrayRef, ArrowError> {
    if parts.column_by_name(TYPED_VALUE).is_some() {
        return Err(invalid("a part of the values has a type of its own"));
    }
    let part = |name: &str, missing: &[u8]| -> Result<ArrayRef, ArrowError> {
        let part =
            parts.column_by_name(name).ok_or_else(|| invalid(&format!("there is no part `{name}`")))?;
        let bytes = cast(part, &DataType::Binary)?;
        let bytes = bytes.as_binary_opt::<i32>().ok_or_else(|| invalid("its parts are no bytes"))?;
        if bytes.null_count() == 0 {
            return Ok(Arc::new(bytes.clone()));
        }
        Ok(Arc::new(bytes.iter().map(|bytes| Some(bytes.unwrap_or(missing))).collect::<BinaryArray>()))
    };
    let parts_of = vec![part(METADATA, NO_NAMES)?, part(VALUE, NULL)?];
    Ok(Arc::new(StructArray::try_new(PARTS.clone(), parts_of, parts.nulls().cloned())?))
}

/// A column of VARIANT values.
#[derive(Debug, Clone, Copy)]
pub struct Values<'a> {
    metadata: &'a BinaryArray,
    value: &'a BinaryArray,
    nulls: Option<&'a NullBuffer>,
}

impl<'a> Values<'a> {
    /// The values of an array of [`data_type`].
    ///
    /// # Errors
    /// For an array of another type.
    pub fn of(array: &'a dyn Array) -> Result<Self, ArrowError> {
        let of_type = || invalid(&format!("{} is not VARIANT", array.data_type()));
        let parts =
            array.as_struct_opt().filter(|_| is_variant_type(array.data_type())).ok_or_else(of_type)?;
        let [metadata, value] = parts.columns() else { return Err(of_type()) };
        let bytes = |part: &'a ArrayRef| part.as_binary_opt::<i32>().ok_or_else(of_type);
        Ok(Self { metadata: bytes(metadata)?, value: bytes(value)?, nulls: parts.nulls() })
    }

    /// How many there are.
    pub fn rows(&self) -> usize {
        self.value.len()
    }

    /// The value of a row; none for NULL.
    ///
    /// # Errors
    /// For bytes that are no value.
    pub fn at(&self, row: usize) -> Result<Option<Variant<'a, 'a>>, ArrowError> {
        if row >= self.rows() || self.nulls.is_some_and(|nulls| nulls.is_null(row)) {
            return Ok(None);
        }
        read(self.metadata.value(row), self.value.value(row)).map(Some)
    }
}

/// One value, of whose bytes all are checked: nothing that is asked of it afterwards panics.
///
/// # Errors
/// For bytes that are no value.
pub fn read<'a>(metadata: &'a [u8], value: &'a [u8]) -> Result<Variant<'a, 'a>, ArrowError> {
    check_value(value)?;
    // The library promises an error for whatever else is wrong; a panic would be that of its reader, and ends this value only.
    catch_unwind(AssertUnwindSafe(|| Variant::try_new(metadata, value)))
        .unwrap_or_else(|_| Err(invalid("its bytes cannot be decoded")))
        .map_err(|error| match error {
            ArrowError::InvalidArgumentError(detail) if detail.starts_with(DAMAGED) => {
                ArrowError::InvalidArgumentError(detail)
            }
            other => invalid(&other.to_string()),
        })
}

/// The name of the type of a value: that of SQL where there is one.
pub fn type_name(value: &Variant<'_, '_>) -> &'static str {
    match value {
        Variant::Null => "NULL",
        Variant::BooleanTrue | Variant::BooleanFalse => "BOOLEAN",
        Variant::Int8(_) => "TINYINT",
        Variant::Int16(_) => "SMALLINT",
        Variant::Int32(_) => "INTEGER",
        Variant::Int64(_) => "BIGINT",
        Variant::Float(_) => "REAL",
        Variant::Double(_) => "DOUBLE",
        Variant::Decimal4(_) | Variant::Decimal8(_) | Variant::Decimal16(_) => "DECIMAL",
        Variant::Date(_) => "DATE",
        Variant::Time(_) => "TIME",
        Variant::TimestampMicros(_) | Variant::TimestampNanos(_) => "TIMESTAMP WITH TIME ZONE",
        Variant::TimestampNtzMicros(_) | Variant::TimestampNtzNanos(_) => "TIMESTAMP",
        Variant::String(_) | Variant::ShortString(_) => "VARCHAR",
        Variant::Binary(_) => "BYTEA",
        Variant::Uuid(_) => "UUID",
        Variant::Object(_) => "OBJECT",
        Variant::List(_) => "ARRAY",
    }
}

const DAMAGED: &str = "invalid VARIANT value";

fn invalid(detail: &str) -> ArrowError {
    ArrowError::InvalidArgumentError(format!("{DAMAGED}: {detail}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet_variant::VariantBuilder;

    fn built(fill: impl FnOnce(&mut VariantBuilder)) -> (Vec<u8>, Vec<u8>) {
        let mut builder = VariantBuilder::new();
        fill(&mut builder);
        builder.finish()
    }

    #[test]
    fn parts_in_any_types_of_bytes_are_one_type() {
        let (metadata, value) = built(|builder| builder.append_value("a"));
        let names = ["metadata", "value"];
        let views: Vec<ArrayRef> = [&metadata, &value]
            .map(|bytes| {
                let of_rows = [Some(bytes.as_slice()), None];
                Arc::new(of_rows.into_iter().collect::<arrow::array::BinaryViewArray>()) as ArrayRef
            })
            .into();
        let parts = names
            .iter()
            .zip(&views)
            .map(|(name, part)| (Arc::new(Field::new(*name, DataType::BinaryView, true)), Arc::clone(part)));
        let variants = from_parts(&StructArray::from(parts.collect::<Vec<_>>())).unwrap();
        assert!(is_variant_type(variants.data_type()));
        let texts = json_texts(&variants).unwrap();
        assert_eq!(texts.iter().collect::<Vec<_>>(), [Some("\"a\""), Some("null")]);
        assert!(Values::of(&BinaryArray::from(vec![value.as_slice()])).is_err());
    }

    #[test]
    fn no_bytes_panic() {
        let (metadata, value) = built(|builder| {
            let mut object = builder.new_object();
            object.insert("day", 1_i64);
            let mut list = object.new_list("list");
            list.append_value("text");
            list.append_value(1.5_f64);
            list.finish();
            object.finish();
        });
        assert!(read(&metadata, &value).is_ok());
        for place in 0..value.len() {
            for byte in 0..=u8::MAX {
                let mut damaged = value.clone();
                damaged[place] = byte;
                if let Ok(value) = read(&metadata, &damaged) {
                    write_json(&value, &mut String::new());
                }
            }
            assert!(read(&metadata, &value[..place]).is_err());
        }
        for place in 0..metadata.len() {
            let mut damaged = metadata.clone();
            damaged[place] ^= 0x55;
            if let Ok(value) = read(&damaged, &value) {
                write_json(&value, &mut String::new());
            }
        }
        // A day that no calendar has, and a UUID that ends early.
        assert!(read(NO_NAMES, &[11 << 2, 0xff, 0xff, 0xff, 0x7f]).is_err());
        assert!(read(NO_NAMES, &[20 << 2, 1, 2]).is_err());
    }
}
