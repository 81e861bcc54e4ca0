//! Values below the NULLs of lists, maps and structs, which must not become visible.

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Scalar, new_null_array};
use arrow::buffer::NullBuffer;
use arrow::compute::kernels::zip::zip;
use arrow::compute::nullif;
use arrow::datatypes::DataType;
use arrow::error::ArrowError;

/// The same values, with nothing below those that are NULL.
pub fn nothing_below(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    match array.logical_nulls().filter(|nulls| nulls.null_count() > 0) {
        Some(nulls) => {
            let is_there = BooleanArray::new(nulls.into_inner(), None);
            zip(&is_there, array, &Scalar::new(new_null_array(array.data_type(), 1)))
        }
        None => Ok(ArrayRef::clone(array)),
    }
}

/// Values that were found in others, one in each: NULL where those are. Of two dictionaries with the same keys, it is the values
/// of one that were found in those of the other.
pub fn hidden_by(found: &ArrayRef, of: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    if let (DataType::Dictionary(..), DataType::Dictionary(..)) = (of.data_type(), found.data_type()) {
        let (of, found) = (of.as_any_dictionary(), found.as_any_dictionary());
        return Ok(found.with_values(hidden_by(found.values(), of.values())?));
    }
    match of.nulls().filter(|nulls| nulls.null_count() > 0) {
        Some(nulls) if found.len() == of.len() => hidden(found, nulls),
        _ => Ok(ArrayRef::clone(found)),
    }
}

fn hidden(found: &ArrayRef, nulls: &NullBuffer) -> Result<ArrayRef, ArrowError> {
    match found.data_type() {
        // They have no NULLs of their own.
        DataType::Union(..) | DataType::RunEndEncoded(..) => {
            let is_there = BooleanArray::new(nulls.inner().clone(), None);
            zip(&is_there, found, &Scalar::new(new_null_array(found.data_type(), 1)))
        }
        _ => nullif(found, &BooleanArray::new(!nulls.inner(), None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{DictionaryArray, Int32Array, Int64Array, ListArray, StructArray};
    use arrow::buffer::OffsetBuffer;
    use arrow::datatypes::{Field, Int32Type};
    use std::sync::Arc;

    fn of_two() -> (ArrayRef, ArrayRef) {
        let inner: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
        let nulls = Some(NullBuffer::from(vec![false, true, true]));
        let field = Field::new("a", DataType::Int64, true);
        let of = StructArray::new(vec![field].into(), vec![Arc::clone(&inner)], nulls);
        (inner, Arc::new(of))
    }

    #[test]
    fn fields_are_null_where_their_structs_are() {
        let (inner, of) = of_two();
        let seen = hidden_by(&inner, &of).unwrap();
        assert_eq!(seen.as_ref(), &Int64Array::from(vec![None, None, Some(3)]));
        // A part of both.
        let seen = hidden_by(&inner.slice(1, 2), &of.slice(1, 2)).unwrap();
        assert_eq!(seen.as_ref(), &Int64Array::from(vec![None, Some(3)]));
    }

    #[test]
    fn values_of_dictionaries_are_too() {
        let (inner, of) = of_two();
        let keys = Int32Array::from(vec![Some(2), Some(0), None, Some(1)]);
        let of: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::new(keys.clone(), of));
        let found: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::new(keys, inner));
        let seen = arrow::compute::cast(&hidden_by(&found, &of).unwrap(), &DataType::Int64).unwrap();
        assert_eq!(seen.as_ref(), &Int64Array::from(vec![Some(3), None, None, None]));
    }

    #[test]
    fn a_null_list_has_no_values() {
        let nulls = Some(NullBuffer::from(vec![false, true]));
        let values: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
        let field = Arc::new(Field::new("item", DataType::Int64, true));
        let lists: ArrayRef =
            Arc::new(ListArray::new(field, OffsetBuffer::new(vec![0, 2, 3].into()), values, nulls));
        let seen = nothing_below(&lists).unwrap();
        assert!(seen.is_null(0) && seen.as_list::<i32>().value_length(0) == 0);
        assert_eq!(seen.as_list::<i32>().value(1).as_ref(), &Int64Array::from(vec![3]));
    }
}
