//! VARIANT values in files: parts of them may have columns of their own types (they are shredded), and are put together here.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef, Fields, Schema};
use arrow::error::ArrowError;
use bowshot_api::variant::{METADATA, TYPED_VALUE, VALUE, Values, check_value, from_parts, is_variant_type};
use parquet_variant_compute::{VariantArray, shred_variant, unshred_variant};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

pub fn are_parts(data_type: &DataType) -> bool {
    let DataType::Struct(parts) = data_type else { return false };
    let find = |name: &str| parts.iter().find(|part| part.name() == name);
    let (value, typed) = (find(VALUE), find(TYPED_VALUE));
    find(METADATA).is_some_and(|part| part.data_type().is_binary())
        && value.is_none_or(|part| part.data_type().is_binary())
        && (value.is_some() || typed.is_some())
        && parts.len() == 1 + usize::from(value.is_some()) + usize::from(typed.is_some())
}

/// The values of parts, in the type of VARIANT.
pub fn assembled(values: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let parts = values.as_struct_opt().ok_or_else(|| invalid("expected structs"))?;
    if parts.column_by_name(TYPED_VALUE).is_none() {
        return from_parts(parts);
    }
    check_bytes(parts)?;
    // The library panics where a value is there twice.
    let whole = catch_unwind(AssertUnwindSafe(|| unshred_variant(&VariantArray::try_new(parts)?)));
    from_parts(whole.unwrap_or_else(|_| Err(invalid("their fields do not match")))?.inner())
}

/// Columns of which parts are written in types of their own.
#[derive(Debug, Clone, Default)]
pub struct Shredding(Vec<(usize, DataType)>);

impl Shredding {
    /// The VARIANT columns of a schema by their names, each with the type that most of its values have.
    ///
    /// # Errors
    /// With the reason, for a column that is none.
    pub fn new(columns: &Fields, schema: &Schema) -> Result<Self, String> {
        let place = |column: &FieldRef| match schema.column_with_name(column.name()) {
            Some((place, field)) if is_variant_type(field.data_type()) => {
                Ok((place, column.data_type().clone()))
            }
            Some(_) => Err(format!("column `{}` is not VARIANT", column.name())),
            None => Err(format!("column `{}` does not exist", column.name())),
        };
        columns.iter().map(place).collect::<Result<_, _>>().map(Self)
    }

    /// The rows with the parts of those columns.
    pub fn shred(&self, rows: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        if self.0.is_empty() {
            return Ok(rows.clone());
        }
        let mut fields: Vec<FieldRef> = rows.schema_ref().fields().to_vec();
        let mut columns = rows.columns().to_vec();
        for (place, wanted) in &self.0 {
            let (Some(field), Some(column)) = (fields.get_mut(*place), columns.get_mut(*place)) else {
                continue;
            };
            let values = Values::of(column)?;
            (0..values.rows()).try_for_each(|row| values.at(row).map(drop))?;
            *column = shred_variant(&VariantArray::try_new(column)?, wanted)?.into();
            *field = Arc::new(field.as_ref().clone().with_data_type(column.data_type().clone()));
        }
        let schema = Schema::new_with_metadata(fields, rows.schema_ref().metadata().clone());
        RecordBatch::try_new(Arc::new(schema), columns)
    }
}

/// Checks the bytes of values at any depth, before the library calls itself for each level in them.
fn check_bytes(array: &dyn Array) -> Result<(), ArrowError> {
    if let Some(parts) = array.as_struct_opt() {
        for (field, part) in parts.fields().iter().zip(parts.columns()) {
            if field.name() == VALUE && part.data_type().is_binary() {
                let bytes = cast(part, &DataType::Binary)?;
                let there = bytes.as_binary::<i32>().iter().flatten();
                there.filter(|bytes| !bytes.is_empty()).try_for_each(check_value)?;
            }
            check_bytes(part)?;
        }
    } else if let Some(lists) = array.as_list_opt::<i32>() {
        check_bytes(lists.values())?;
    } else if let Some(lists) = array.as_list_opt::<i64>() {
        check_bytes(lists.values())?;
    }
    Ok(())
}

fn invalid(detail: &str) -> ArrowError {
    ArrowError::InvalidArgumentError(format!("invalid VARIANT values: {detail}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{BinaryArray, Int64Array, StringArray, StructArray};
    use arrow::datatypes::Field;
    use bowshot_api::variant::json_texts;
    use parquet_variant_compute::json_to_variant;

    #[test]
    fn shredded_values_come_back_whole() {
        let texts =
            [Some(r#"{"a":7,"b":true}"#), Some(r#"{"a":"text","b":[1]}"#), Some(r#"{"a":null}"#), None];
        let json: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
        let parts = StructArray::from(json_to_variant(&json).unwrap());
        let rows = RecordBatch::try_from_iter([("v", from_parts(&parts).unwrap())]).unwrap();
        let wanted = DataType::Struct(Fields::from(vec![Field::new("a", DataType::Int64, true)]));
        let columns = |name: &str| Fields::from(vec![Field::new(name, wanted.clone(), true)]);
        assert!(Shredding::new(&columns("w"), rows.schema_ref()).is_err());
        let shredded = Shredding::new(&columns("v"), rows.schema_ref()).unwrap().shred(&rows).unwrap();
        let shredded = shredded.column(0);
        assert!(are_parts(shredded.data_type()) && !are_parts(&wanted));
        let whole = json_texts(&assembled(shredded).unwrap()).unwrap();
        assert_eq!(whole.iter().collect::<Vec<_>>(), texts);
    }

    #[test]
    fn a_value_that_is_there_twice_is_an_error() {
        let bytes = |bytes: &'static [u8]| Arc::new(BinaryArray::from(vec![bytes])) as ArrayRef;
        let typed: ArrayRef = Arc::new(Int64Array::from(vec![1]));
        let parts = [(METADATA, bytes(&[1, 0, 0])), (VALUE, bytes(&[0])), (TYPED_VALUE, typed)];
        let parts =
            parts.map(|(name, part)| (Arc::new(Field::new(name, part.data_type().clone(), true)), part));
        let twice: ArrayRef = Arc::new(StructArray::from(parts.to_vec()));
        assert!(assembled(&twice).is_err());
    }
}
