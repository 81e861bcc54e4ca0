//! Rows as they leave a secured scan: without what their buffers still hold of hidden rows and values. Clients get buffers as they
//! are, and casts of a dictionary run over all of its values.

use arrow_select::dictionary::garbage_collect_any_dictionary;
use bowshot_kernels::nulls;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, make_array};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::Result;
use std::sync::Arc;

/// What passes a guard.
#[derive(Debug, Clone)]
pub(super) struct Scrub {
    pub(super) schema: SchemaRef,
    /// Which of its columns are masked.
    pub(super) masked: Vec<bool>,
    /// Whether a policy hides rows.
    pub(super) has_hidden_rows: bool,
}

impl Scrub {
    /// The same rows with the fields of the guard, and with nothing else in their buffers.
    pub(super) fn of(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let columns = batch.columns().iter().zip(&self.masked).map(|(column, is_masked)| match is_masked {
            true => without_hidden_rows(&without_values_below_nulls(column)?),
            false if self.has_hidden_rows => without_hidden_rows(column),
            false => Ok(Arc::clone(column)),
        });
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }
}

/// The same values; dictionaries have those alone that are pointed at, views those bytes that are seen.
fn without_hidden_rows(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    Ok(match array.data_type() {
        DataType::Dictionary(..) => garbage_collect_any_dictionary(array.as_any_dictionary())?,
        DataType::Utf8View => Arc::new(array.as_string_view().gc()),
        DataType::BinaryView => Arc::new(array.as_binary_view().gc()),
        nested if may_share(nested) => with_children(array, without_hidden_rows)?,
        _ => Arc::clone(array),
    })
}

/// The same array over other children, which have as many values.
fn with_children(
    array: &ArrayRef,
    of: fn(&ArrayRef) -> Result<ArrayRef, ArrowError>,
) -> Result<ArrayRef, ArrowError> {
    let data = array.to_data();
    let children = data.child_data().iter().map(|child| Ok(of(&make_array(child.clone()))?.to_data()));
    let children = children.collect::<Result<Vec<_>, ArrowError>>()?;
    Ok(make_array(data.into_builder().child_data(children).build()?))
}

/// Whether values of a type lie in buffers that several arrays may share, in a field of it at least.
fn may_share(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(..) | DataType::Utf8View | DataType::BinaryView => true,
        DataType::Struct(fields) => fields.iter().any(|field| may_share(field.data_type())),
        DataType::Union(fields, _) => fields.iter().any(|(_, field)| may_share(field.data_type())),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => may_share(field.data_type()),
        DataType::RunEndEncoded(_, values) => may_share(values.data_type()),
        _ => false,
    }
}

/// The same values, with nothing below those that are NULL, nor below fields and items that are.
fn without_values_below_nulls(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let seen = nulls::nothing_below(array)?;
    // The values of a dictionary are looked through by `without_hidden_rows`, which leaves out those that nobody points at.
    match seen.data_type() {
        DataType::Dictionary(..) | DataType::RunEndEncoded(..) => Ok(seen),
        nested if nested.is_nested() => with_children(&seen, without_values_below_nulls),
        _ => Ok(seen),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{
        DictionaryArray, Int32Array, ListArray, StringArray, StringViewArray, StructArray,
    };
    use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
    use datafusion::arrow::datatypes::{Field, Int32Type};

    /// Whether the bytes of a text are anywhere in the buffers of an array.
    fn holds(array: &ArrayRef, text: &[u8]) -> bool {
        fn within(data: &datafusion::arrow::array::ArrayData, text: &[u8]) -> bool {
            data.buffers().iter().any(|buffer| buffer.windows(text.len()).any(|window| window == text))
                || data.child_data().iter().any(|child| within(child, text))
        }
        within(&array.to_data(), text)
    }

    #[test]
    fn dictionaries_have_the_values_that_are_pointed_at() {
        let values = Arc::new(StringArray::from(vec!["seen", "a hidden value"])) as ArrayRef;
        let dictionary = Arc::new(DictionaryArray::<Int32Type>::new(
            Int32Array::from(vec![Some(0), None, Some(0)]),
            values,
        )) as ArrayRef;
        let field = Arc::new(Field::new("item", dictionary.data_type().clone(), true));
        let offsets = OffsetBuffer::from_lengths([2, 1]);
        let list =
            Arc::new(ListArray::new(Arc::clone(&field), offsets, Arc::clone(&dictionary), None)) as ArrayRef;
        let row = Arc::new(StructArray::from(vec![(field, Arc::clone(&dictionary))])) as ArrayRef;
        for array in [dictionary, list, row] {
            assert!(holds(&array, b"a hidden value"));
            let clean = without_hidden_rows(&array).unwrap();
            assert!(!holds(&clean, b"a hidden value") && clean.as_ref() == array.as_ref());
        }
    }

    #[test]
    fn views_have_the_bytes_that_are_seen() {
        let all =
            StringViewArray::from(vec!["the first text, which is seen", "the second text, which is hidden"]);
        let array = Arc::new(all.slice(0, 1)) as ArrayRef;
        assert!(holds(&array, b"which is hidden"));
        let clean = without_hidden_rows(&array).unwrap();
        assert!(!holds(&clean, b"which is hidden") && clean.as_ref() == array.as_ref());
    }

    #[test]
    fn nothing_is_left_below_a_null() {
        let numbers = Int32Array::new(
            ScalarBuffer::from(vec![1, 77_000_001]),
            Some(NullBuffer::from(vec![true, false])),
        );
        let texts = StringArray::new(
            OffsetBuffer::from_lengths([4, 14]),
            b"seena hidden value"[..].into(),
            Some(NullBuffer::from(vec![true, false])),
        );
        for (array, hidden) in [
            (Arc::new(numbers) as ArrayRef, &77_000_001_i32.to_le_bytes()[..]),
            (Arc::new(texts) as ArrayRef, b"a hidden value"),
        ] {
            assert!(holds(&array, hidden));
            let clean = without_values_below_nulls(&array).unwrap();
            assert!(!holds(&clean, hidden) && clean.as_ref() == array.as_ref());
            // The same as the field of a struct and the items of a list, none of which is NULL itself.
            let field = Arc::new(Field::new("item", array.data_type().clone(), true));
            let row = Arc::new(StructArray::from(vec![(Arc::clone(&field), Arc::clone(&array))])) as ArrayRef;
            let list = ListArray::new(field, OffsetBuffer::from_lengths([2]), Arc::clone(&array), None);
            for nested in [row, Arc::new(list) as ArrayRef] {
                assert!(holds(&nested, hidden));
                let clean = without_values_below_nulls(&nested).unwrap();
                assert!(!holds(&clean, hidden) && clean.as_ref() == nested.as_ref());
            }
        }
    }
}
