//! Converts parameters that clients bind as unions of all value types to plain columns.

use arrow::array::{Array, ArrayRef, UInt64Array, UnionArray, new_empty_array};
use arrow::compute::{CastOptions, cast_with_options, interleave, take};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use bowshot_api::{Error, Result};
use std::sync::Arc;

/// Replaces union columns by columns of the parameters' types; other columns stay as they are, and so does their
/// number, which the session checks.
pub(crate) fn plain_columns(batch: RecordBatch, parameters: &SchemaRef) -> Result<RecordBatch> {
    let is_union = |column: &ArrayRef| matches!(column.data_type(), DataType::Union(..));
    if !batch.columns().iter().any(is_union) {
        return Ok(batch);
    }
    let mut fields = Vec::with_capacity(batch.num_columns());
    let mut columns = Vec::with_capacity(batch.num_columns());
    let schema = batch.schema();
    for (index, (column, field)) in batch.columns().iter().zip(schema.fields()).enumerate() {
        let union = column.as_any().downcast_ref::<UnionArray>();
        let wanted = parameters.fields().get(index).map(|field| field.data_type());
        let (Some(union), Some(wanted)) = (union, wanted) else {
            fields.push(Arc::clone(field));
            columns.push(Arc::clone(column));
            continue;
        };
        let plain = plain(union, wanted).map_err(|error| {
            Error::invalid(format!("parameter {} does not fit the type {wanted}", index + 1))
                .with_source(error)
        })?;
        fields.push(Arc::new(Field::new(field.name(), plain.data_type().clone(), true)));
        columns.push(plain);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
        .map_err(|error| Error::internal("unwrapped parameters make no batch").with_source(error))
}

/// Casts each row's value from its union member; unused values do not matter.
fn plain(union: &UnionArray, wanted: &DataType) -> std::result::Result<ArrayRef, ArrowError> {
    let mut types: Vec<i8> = Vec::new();
    let mut shown: Vec<Vec<u64>> = Vec::new();
    let mut rows: Vec<(usize, usize)> = Vec::with_capacity(union.len());
    for row in 0..union.len() {
        let type_id = union.type_id(row);
        let member = types.iter().position(|known| *known == type_id).unwrap_or_else(|| {
            types.push(type_id);
            shown.push(Vec::new());
            types.len() - 1
        });
        if let Some(values) = shown.get_mut(member) {
            rows.push((member, values.len()));
            values.push(union.value_offset(row) as u64);
        }
    }
    if types.is_empty() {
        return Ok(new_empty_array(wanted));
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let members: Vec<ArrayRef> = types
        .iter()
        .zip(shown)
        .map(|(type_id, values)| {
            let values = take(union.child(*type_id), &UInt64Array::from(values), None)?;
            cast_with_options(&values, wanted, &options)
        })
        .collect::<std::result::Result<_, ArrowError>>()?;
    let members: Vec<&dyn Array> = members.iter().map(AsRef::as_ref).collect();
    interleave(&members, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{BinaryArray, Float64Array, Int64Array, StringArray};
    use arrow::buffer::ScalarBuffer;
    use arrow::datatypes::UnionFields;

    /// The dense union that flightsql-dbapi binds, cut to three members.
    fn union(type_ids: Vec<i8>, offsets: Vec<i32>) -> RecordBatch {
        let fields = UnionFields::try_new(
            [0, 1, 2],
            [
                Field::new("int64", DataType::Int64, true),
                Field::new("float64", DataType::Float64, true),
                Field::new("utf8", DataType::Utf8, true),
            ],
        )
        .unwrap();
        let children: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(vec![Some(7), None])),
            Arc::new(Float64Array::from(vec![1.5])),
            Arc::new(StringArray::from(vec!["12", "x"])),
        ];
        let array = UnionArray::try_new(
            fields.clone(),
            ScalarBuffer::from(type_ids),
            Some(ScalarBuffer::from(offsets)),
            children,
        )
        .unwrap();
        RecordBatch::try_from_iter([("p", Arc::new(array) as ArrayRef)]).unwrap()
    }

    fn parameters(data_type: DataType) -> SchemaRef {
        Arc::new(Schema::new(vec![Field::new("$1", data_type, true)]))
    }

    #[test]
    fn rows_come_from_their_own_member() {
        let batch = union(vec![0, 2, 0], vec![0, 0, 1]);
        let plain = plain_columns(batch, &parameters(DataType::Int32)).unwrap();
        let expected = arrow::array::Int32Array::from(vec![Some(7), Some(12), None]);
        assert_eq!(plain.column(0).as_ref(), &expected as &dyn Array);
    }

    #[test]
    fn a_value_that_does_not_fit_is_refused() {
        let error = plain_columns(union(vec![2], vec![1]), &parameters(DataType::Int64)).unwrap_err();
        assert_eq!(error.to_string(), "parameter 1 does not fit the type Int64");
    }

    #[test]
    fn other_columns_stay() {
        let column: ArrayRef = Arc::new(BinaryArray::from(vec![b"a".as_ref()]));
        let batch = RecordBatch::try_from_iter([("p", column)]).unwrap();
        assert_eq!(plain_columns(batch.clone(), &parameters(DataType::Int64)).unwrap(), batch);
    }
}
