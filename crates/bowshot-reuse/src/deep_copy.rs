//! Copies rows into memory of their own, since their arrays may be parts of a mapped file that changes, or of much larger buffers.

use datafusion::arrow::array::{
    Array, ArrayData, ArrayRef, AsArray, MutableArrayData, RecordBatch, RecordBatchOptions, make_array,
};
use datafusion::arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::Result;
use std::sync::Arc;

pub(crate) fn batch(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = batch.columns().iter().map(column).collect::<Result<_>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)?)
}

/// Whether values of a type have a known size before they are copied, and arrays do not share them.
pub(crate) fn is_plain(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => is_plain(field.data_type()),
        DataType::Struct(fields) => fields.iter().all(|field| is_plain(field.data_type())),
        DataType::Utf8View
        | DataType::BinaryView
        | DataType::ListView(_)
        | DataType::LargeListView(_)
        | DataType::Dictionary(..)
        | DataType::RunEndEncoded(..)
        | DataType::Union(..) => false,
        _ => true,
    }
}

pub(crate) fn column(column: &ArrayRef) -> Result<ArrayRef> {
    // Copies only the visible texts; other buffers may still be shared.
    if let Some(texts) = column.as_string_view_opt() {
        return Ok(make_array(unshared(texts.gc().into_data())?));
    }
    if let Some(texts) = column.as_binary_view_opt() {
        return Ok(make_array(unshared(texts.gc().into_data())?));
    }
    let data = column.to_data();
    let mut rows = MutableArrayData::new(vec![&data], false, data.len());
    rows.try_extend(0, 0, data.len())?;
    let rows = rows.freeze();
    // Nested dictionaries and views are still shared.
    Ok(make_array(if is_plain(column.data_type()) { rows } else { unshared(rows)? }))
}

fn unshared(data: ArrayData) -> Result<ArrayData> {
    let own = |buffer: &Buffer| Buffer::from(buffer.as_slice());
    let nulls = data.nulls().map(|nulls| {
        let bits = BooleanBuffer::new(own(nulls.buffer()), nulls.offset(), nulls.len());
        NullBuffer::new(bits)
    });
    let children = data.child_data().iter().cloned().map(unshared).collect::<Result<_>>()?;
    let buffers = data.buffers().iter().map(own).collect();
    let copy = data.into_builder().buffers(buffers).nulls(nulls).child_data(children);
    Ok(copy.build()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{
        BooleanArray, DictionaryArray, Int64Array, ListArray, StringArray, StringViewArray, StructArray,
    };
    use datafusion::arrow::datatypes::{Field, Int32Type, Int64Type, Schema};

    /// Addresses of all buffers of an array.
    fn places(data: &ArrayData) -> Vec<usize> {
        let own =
            data.buffers().iter().filter(|buffer| !buffer.is_empty()).map(|buffer| buffer.as_ptr().addr());
        let nulls = data.nulls().map(|nulls| nulls.buffer().as_ptr().addr());
        own.chain(nulls).chain(data.child_data().iter().flat_map(places)).collect()
    }

    #[test]
    fn nothing_is_shared_and_nothing_changes() {
        let texts = || StringArray::from(vec![Some("a"), None, Some("größe of some length"), Some("")]);
        let lists = ListArray::from_iter_primitive::<Int64Type, _, _>([
            Some(vec![Some(1), None]),
            None,
            Some(vec![]),
            Some(vec![Some(2), Some(3)]),
        ]);
        let words: DictionaryArray<Int32Type> = [Some("x"), None, Some("y"), Some("x")].into_iter().collect();
        let field = Arc::new(Field::new("v", DataType::Utf8View, true));
        let views = Arc::new(StringViewArray::from_iter(texts().iter())) as ArrayRef;
        for array in [
            Arc::new(Int64Array::from(vec![Some(1), None, Some(3), Some(4)])) as ArrayRef,
            Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), Some(true)])),
            Arc::new(texts()),
            Arc::new(lists),
            Arc::new(words),
            Arc::clone(&views),
            Arc::new(StructArray::from(vec![(field, views)])),
        ] {
            for slice in [Arc::clone(&array), array.slice(1, 3), array.slice(2, 0)] {
                let copy = column(&slice).expect("a copy");
                assert_eq!(&copy, &slice);
                let (before, after) = (places(&slice.to_data()), places(&copy.to_data()));
                assert!(!after.iter().any(|place| before.contains(place)), "{:?}", slice.data_type());
            }
        }
    }

    #[test]
    fn a_batch_without_columns_keeps_its_rows() {
        let options = RecordBatchOptions::new().with_row_count(Some(7));
        let schema = Arc::new(Schema::empty());
        let rows = RecordBatch::try_new_with_options(Arc::clone(&schema), vec![], &options).expect("a batch");
        assert_eq!(batch(&rows, &schema).expect("a copy").num_rows(), 7);
    }
}
