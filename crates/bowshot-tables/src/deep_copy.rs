//! Copies rows that come from outside. Their arrays may lie in a mapped file, whose bytes change or vanish with the
//! file, in a network message, or be a few rows of a large batch; rows of a table may not depend on any of these.

use super::Error;
use super::segment::{fitted, live_texts};
use arrow::array::{Array, ArrayData, ArrayRef, AsArray, MutableArrayData, RecordBatch, make_array};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use bowshot_api::allocations;

/// At most one of so many bytes of an allocation may be idle.
const SPARE_SHARE: u64 = 8;

/// The same rows in allocations that nobody else has and that hold nothing else.
pub(super) fn owned(rows: &RecordBatch) -> Result<RecordBatch, Error> {
    let columns = rows.columns().iter().map(owned_values).collect::<Result<_, _>>()?;
    Ok(fitted(rows.schema_ref(), columns, rows.num_rows())?)
}

/// The same rows in place, if they use most of the memory that they lie in. For rows whose memory nobody else has.
pub(super) fn taken_over(rows: &RecordBatch) -> Option<RecordBatch> {
    let flat = rows.columns().iter().all(|column| is_flat(column.data_type()));
    (flat && !holds_more(rows)).then(|| rows.clone())
}

/// Whether much of the memory that rows lie in is not theirs. Columns of nested types have memory of their own.
pub(super) fn holds_more(rows: &RecordBatch) -> bool {
    let flat = || rows.columns().iter().filter(|column| is_flat(column.data_type()));
    let used: usize = flat().map(|column| column.to_data().get_slice_memory_size().unwrap_or(0)).sum();
    let taken: u64 = allocations(flat()).values().sum();
    (used as u64) < taken - taken / SPARE_SHARE
}

/// Whether all values are in the array's own buffers, and a slice of them takes a part of each.
fn is_flat(data_type: &DataType) -> bool {
    data_type.is_primitive()
        || matches!(data_type, DataType::Boolean | DataType::FixedSizeBinary(_))
        || matches!(
            data_type,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary
        )
}

fn owned_values(values: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let copy = copied(values)?;
    // What Arrow copies only by reference: texts of views, values of dictionaries.
    match copy.data_type() {
        DataType::Utf8View | DataType::BinaryView => Ok(live_texts(&copy)),
        DataType::Dictionary(_, _) => match copy.as_any_dictionary_opt() {
            Some(dictionary) => Ok(dictionary.with_values(owned_values(dictionary.values())?)),
            None => Ok(copy),
        },
        nested if keeps_references(nested) => Ok(make_array(owned_parts(&copy.to_data())?)),
        _ => Ok(copy),
    }
}

fn copied(values: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let source = values.to_data();
    let mut copy = MutableArrayData::new(vec![&source], false, source.len());
    copy.try_extend(0, 0, source.len())?;
    Ok(make_array(copy.freeze()))
}

/// Whether a copy of such values may share allocations with its source.
fn keeps_references(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8View | DataType::BinaryView | DataType::Dictionary(_, _) => true,
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => keeps_references(field.data_type()),
        DataType::RunEndEncoded(ends, values) => {
            keeps_references(ends.data_type()) || keeps_references(values.data_type())
        }
        DataType::Struct(fields) => fields.iter().any(|field| keeps_references(field.data_type())),
        DataType::Union(fields, _) => fields.iter().any(|(_, field)| keeps_references(field.data_type())),
        _ => false,
    }
}

/// Copies all buffers. Validates the values again, which is why only the nested types above go this way.
fn owned_parts(values: &ArrayData) -> Result<ArrayData, ArrowError> {
    let copied = |buffer: &Buffer| Buffer::from_slice_ref(buffer.as_slice());
    let nulls = values.nulls().map(|nulls| {
        NullBuffer::new(BooleanBuffer::new(copied(nulls.buffer()), nulls.offset(), nulls.len()))
    });
    let children = values.child_data().iter().map(owned_parts).collect::<Result<_, _>>()?;
    let buffers = values.buffers().iter().map(copied).collect();
    values.clone().into_builder().nulls(nulls).buffers(buffers).child_data(children).build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Int64Array, StringArray};
    use std::sync::Arc;

    fn rows(count: i64) -> RecordBatch {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..count));
        let texts: ArrayRef =
            Arc::new(StringArray::from_iter_values((0..count).map(|row| format!("{row:05}"))));
        RecordBatch::try_from_iter([("n", numbers), ("t", texts)]).expect("batch")
    }

    /// All columns in one allocation, as they come in a message, with so many idle bytes.
    fn in_one_allocation(rows: &RecordBatch, idle: usize) -> RecordBatch {
        let (mut bytes, mut places) = (Vec::new(), Vec::new());
        let data: Vec<ArrayData> = rows.columns().iter().map(Array::to_data).collect();
        for buffer in data.iter().flat_map(|data| data.buffers()) {
            bytes.resize(bytes.len().next_multiple_of(8), 0);
            places.push((bytes.len(), buffer.len()));
            bytes.extend_from_slice(buffer);
        }
        bytes.resize(bytes.len() + idle, 0);
        let all = Buffer::from(bytes.as_slice());
        let mut places = places.into_iter().map(|(at, length)| all.slice_with_length(at, length));
        let columns = data.into_iter().map(|data| {
            let buffers = places.by_ref().take(data.buffers().len()).collect();
            make_array(data.into_builder().buffers(buffers).build().expect("array"))
        });
        RecordBatch::try_new(rows.schema(), columns.collect()).expect("batch")
    }

    #[test]
    fn rows_stay_where_they_are_if_they_fill_it() {
        let message = in_one_allocation(&rows(10_000), 0);
        let taken = taken_over(&message).expect("nothing is idle");
        assert_eq!(
            taken.column(0).to_data().buffers()[0].as_ptr(),
            message.column(0).to_data().buffers()[0].as_ptr()
        );
        assert_eq!(owned(&message).expect("copy"), taken);
    }

    #[test]
    fn rows_do_not_hold_much_more_than_themselves() {
        assert!(taken_over(&in_one_allocation(&rows(10_000), 100_000)).is_none());
        assert!(taken_over(&rows(10_000).slice(10, 20)).is_none());
        let dictionary = arrow::compute::cast(
            rows(9).column(1),
            &DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
        );
        let dictionary = RecordBatch::try_from_iter([("d", dictionary.expect("cast"))]).expect("batch");
        assert!(taken_over(&dictionary).is_none(), "values of a dictionary are those of other batches too");
        // What is left when a column goes.
        let left = in_one_allocation(&rows(10_000), 0).project(&[0]).expect("batch");
        assert!(holds_more(&left) && !holds_more(&owned(&left).expect("copy")));
    }
}
